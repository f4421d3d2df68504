#pragma once
// Between the norms' host code and their kernels: arguments without checks. Not for users.

#include <cuda_runtime_api.h>

#include "te/fp8/tensor.h"
#include "te/kernels/cast_op.h"

namespace ptxbench::te::device {

struct NormForwardArgs {
  const uint16_t* x = nullptr;
  const uint16_t* gamma = nullptr;
  const uint16_t* beta = nullptr;
  uint16_t* y = nullptr;
  float* mean = nullptr;
  float* rstd = nullptr;
  Fp8Target out;
  int64_t rows = 0, cols = 0;
  float epsilon = 0, gamma_offset = 0;
  uint32_t cluster = 1, row_blocks = 1;
  NormKind kind = NormKind::layer;
  NormTile tile = NormTile::t32x512;
  bool vector = false;
};

cudaError_t launch_norm_forward(const NormForwardArgs& args, cudaStream_t stream);

}  // namespace ptxbench::te::device
