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
  float inverse_cols = 0;  // 1 / cols
  float epsilon = 0, gamma_offset = 0;
  uint32_t cluster = 1, row_blocks = 1;
  uint32_t prefetch = 0;  // blocks of rows ahead that are fetched into L2; 0: none
  NormKind kind = NormKind::layer;
  NormTile tile = NormTile::t32x512;
  bool vector = false;
};

struct NormBackwardArgs {
  const uint16_t* dy = nullptr;
  const uint16_t* x = nullptr;
  const uint16_t* gamma = nullptr;
  const uint16_t* residual = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  uint16_t* dx = nullptr;
  float* dgamma = nullptr;
  float* dbeta = nullptr;
  float* partial = nullptr;  // [groups][2][cols]: dgamma, dbeta
  int64_t rows = 0, cols = 0;
  float gamma_offset = 0;
  uint32_t cluster = 1, groups = 1;
  int threads = 512;  // 64, 128, 256 or 512
  NormKind kind = NormKind::layer;
  bool vector = false;
};

cudaError_t launch_norm_forward(const NormForwardArgs& args, cudaStream_t stream);

cudaError_t launch_norm_backward(const NormBackwardArgs& args, cudaStream_t stream);

}  // namespace ptxbench::te::device
