#pragma once
// One tensor-core step in integers: the arithmetic that an H200 shows (tests/data/hw/README.md),
// for any operand type, written for correctness. The fast kernels hand over the outputs they cannot
// do.

#include <cstdint>

#include "ptx/opcodes.h"

namespace ptxbench::emu {

// The accumulator after one step of k products. `a` and `b` are k elements side by side, low half
// first; `c` is an f32 or, with 16-bit accumulators, an f16 bit pattern. Types as in WgmmaForm,
// integers excluded.
uint32_t exact_step(ptx::Type a_type, ptx::Type b_type, ptx::Type d_type, const uint8_t* a,
                    const uint8_t* b, int k, uint32_t c);

}  // namespace ptxbench::emu
