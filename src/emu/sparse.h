#pragma once
// 2:4 structured sparsity (PTX ISA "Sparse matrix storage"): half of a row of A is stored, and four
// bits of metadata for each chunk say where its two (tf32: its one) stored elements belong.
//
// A product with such a row is a dense one of half the K with the matching elements of B picked
// out, which is how both mma.sp and sparse wgmma are computed here.

#include <array>
#include <cstdint>

#include "ptx/opcodes.h"

namespace ptxbench::emu {

using SparsePattern = std::array<uint8_t, 16>;  // four bits of each chunk of a row

// Chunks of a row with K elements.
int sparse_chunks(ptx::Type type, int k);

// Metadata of row `row` (0..15) of a warp's 16. `lanes` is the metadata register; the selector says
// which threads of each four hold it. 16-bit types and tf32: eight chunks in two threads, or four
// in one, a thread having row g in its low and row g + 8 in its high half. Narrower types: rows g
// and g + 8 in neighbours, the second half of K in the next pair.
SparsePattern sparse_pattern(ptx::Type type, int k, const uint32_t* lanes, int selector, int row);
int sparse_selectors(ptx::Type type, int k);  // selectors are 0 .. this - 1

// The elements of a dense row of B that meet a row of A: k/2 elements at `to`.
void gather_sparse(ptx::Type type, int k, const SparsePattern& pattern, const uint8_t* dense,
                   uint8_t* to);

}  // namespace ptxbench::emu
