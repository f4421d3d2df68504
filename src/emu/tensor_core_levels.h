#pragma once
// wgmma at a chosen instruction-set level, for tests and benchmarks.

#include "emu/tensor_core.h"
#include "emu/tensor_core_kernels.h"

namespace ptxbench::emu::tensor {

void wgmma_at(const WgmmaForm& form, const WgmmaOperands& operands, plan::TensorMode mode,
              const Kernels& kernels);

}  // namespace ptxbench::emu::tensor
