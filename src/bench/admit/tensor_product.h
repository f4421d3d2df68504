#pragma once
// The emulator's model of a Hopper tensor core as a matrix product: what honest implementations on
// the CPU multiply with.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plan/run_result.h"
#include "ptx/opcodes.h"

namespace ptxbench::bench::admit {

using Words = std::vector<uint16_t>;  // bits of bf16 or fp16

struct TensorProduct {
  int64_t m = 0, n = 0, k = 0;
  std::span<const uint16_t> a, b;  // [m,k], [n,k]
  // Whether the step of 16 that begins at k takes part; empty: all do.
  std::function<bool(int64_t k)> takes;
  // f32 with operands of bf16, or f16 with operands of fp16.
  ptx::Type accumulator = ptx::Type::f32;
  plan::TensorMode mode = plan::TensorMode::hw;
};

// sums[m,n] are the accumulators: the products are added to them in the order of k. An f16
// accumulator begins at zero, and its result is added.
void accumulate(const TensorProduct& product, float* sums);

}  // namespace ptxbench::bench::admit
