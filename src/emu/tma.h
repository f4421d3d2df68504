#pragma once
// Bulk tensor copies, tiled and im2col mode (PTX ISA "cp.async.bulk.tensor"): which bytes go where.
// Rules as measured on an H200 (tests/data/hw, group "tma"): per-element bounds on loads, 16-byte
// chunks on stores, coordinates that kill a kernel, swizzle on the absolute shared address, the
// order of an im2col copy's pixels.

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "emu/atomics.h"
#include "plan/tensor_map.h"

namespace ptxbench::emu {

// Innermost first, beyond the rank ignored; then the offsets of an im2col load, by spatial
// dimension.
constexpr size_t kImageOffsets = 5;
using Coordinates = std::array<int32_t, kImageOffsets + 3>;

// Maps that this engine does not move, because no recording shows their rules: interleaved ones in
// im2col mode or with element strides, stores in im2col mode with element strides or pixels behind
// the image (with both they fault). kind "unsupported"; every function below relies on it having
// passed.
Result<void> supported(const plan::TensorMapArgs& map, bool is_store = false);

// Bytes that a load of the full box adds to an mbarrier's completed transactions.
uint32_t transaction_bytes(const plan::TensorMapArgs& map);
// Bytes of shared memory from `shared_address` that the box image may touch (pitch padding
// included).
uint32_t box_span(const plan::TensorMapArgs& map);

// Empty if the copy is legal, otherwise why silicon faults ("inner coordinate 3 times 2 bytes is
// not a multiple of 16", "negative coordinate in a store", "shared address not 128-byte aligned",
// ...).
std::string check_copy(const plan::TensorMapArgs& map, const Coordinates& at,
                       uint32_t shared_address, bool is_store);

// `shared` is the CTA's shared memory, indexed by shared address & 0xffffff; `global` is the host
// memory behind map.global_address. A load reads only elements inside the tensor's dims. A store or
// reduction also writes the padding behind an inner row up to the next multiple of 16 bytes, as
// silicon does.
void tma_load(const plan::TensorMapArgs& map, const Coordinates& at, uint32_t shared_address,
              uint8_t* shared, const uint8_t* global);
void tma_store(const plan::TensorMapArgs& map, const Coordinates& at, uint32_t shared_address,
               const uint8_t* shared, uint8_t* global);

using ReduceOp = AtomicOp;  // without exch and cas
void tma_reduce(const plan::TensorMapArgs& map, const Coordinates& at, uint32_t shared_address,
                const uint8_t* shared, uint8_t* global, ReduceOp op);
// The element operation of tma_reduce and cp.reduce.async.bulk on n contiguous elements.
void reduce_elements(plan::MapType type, ReduceOp op, uint8_t* destination, const uint8_t* source,
                     size_t n);

// Contiguous pieces of a copy, at most one inner row each: shared address (swizzled; pieces are cut
// at 16-byte chunks where swizzling scatters them), byte offset from the tensor's start in global
// memory (-1: outside, filled on loads and skipped on stores), bytes. For checkers and for the
// functions above.
struct CopyPiece {
  uint32_t shared_address;
  int64_t global_offset;
  uint32_t bytes;
};
template <class F>
void for_each_piece(const plan::TensorMapArgs& map, const Coordinates& at, uint32_t shared_address,
                    bool is_store, F&& f);  // defined in emu/tma_walk.h

}  // namespace ptxbench::emu
