#pragma once
// Fetching wgmma operands: rows of 32 bytes, element (mn, k) at row mn, whatever the layout in
// memory.

#include "emu/tensor_core.h"
#include "emu/tensor_core_kernels.h"

namespace ptxbench::emu::tensor {

// `shared_bytes` as in WgmmaOperands. `first`: the rows start at this byte of K, a multiple of 32.
void fetch_shared(const MatrixDescriptor& d, bool mn_major, int element_bytes, int mn,
                  const uint8_t* shared, uint32_t shared_bytes, uint8_t (*rows)[kRowBytes],
                  uint32_t first = 0);
void fetch_registers(const uint32_t* const (*a)[4], uint32_t warps, uint8_t (*rows)[kRowBytes]);

// Flips the sign of every element.
void negate(int element_bytes, int mn, uint8_t (*rows)[kRowBytes]);

}  // namespace ptxbench::emu::tensor
