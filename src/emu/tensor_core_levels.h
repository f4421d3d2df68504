#pragma once
// wgmma and mma.sync at a chosen instruction-set level, for tests and benchmarks.

#include "emu/mma.h"
#include "emu/tensor_core.h"
#include "emu/tensor_core_kernels.h"

namespace ptxbench::emu::tensor {

void wgmma_at(const WgmmaForm& form, const WgmmaOperands& operands, plan::TensorMode mode,
              const Kernels& kernels);
void mma_at(const MmaForm& form, const MmaOperands& operands, plan::TensorMode mode,
            const Kernels& kernels);

}  // namespace ptxbench::emu::tensor
