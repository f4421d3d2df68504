#pragma once
// One step of a tensor core on fetched operands: what wgmma and mma.sync share.

#include "emu/tensor_core_kernels.h"
#include "plan/run_result.h"
#include "ptx/opcodes.h"

namespace ptxbench::emu::tensor {

// D = A*B (+ D) with f32 or f16 accumulators. A is `rows` (64, or 16 of mma.sync's one warp) and B
// `n` rows of the panels; elements past an instruction's K are zero, which changes nothing but the
// sign of a zero in mode f32. Registers of `d` as in WgmmaOperands.
struct FloatStep {
  ptx::Type a{}, b{}, d{};
  int rows = 64, n = 8, k = 16;  // k: 8, 16 or 32, such that a row is full
  uint32_t* const (*registers)[128] = nullptr;
  bool scale_d = true;
  uint32_t warps = 0xf;
};
void float_step(const FloatStep& step, Panels& panels, plan::TensorMode mode,
                const Kernels& kernels);

Panels& scratch();  // of this thread
inline const Kernels& best_kernels() {
  const Levels& l = levels();
  return *l.level[l.count - 1];
}

}  // namespace ptxbench::emu::tensor
