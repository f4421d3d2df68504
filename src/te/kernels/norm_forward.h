#pragma once
// LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019) over the last dimension, with the
// result in FP8, transposed FP8, bf16, or all of them, in one launch:
//
//   layer  y = (x - mean) / sqrt(variance + eps) * gamma + beta
//   rms    y = x / sqrt(mean of squares + eps) * gamma
//
// x, gamma, beta are bf16, statistics fp32; the amax is that of the fp32 y, so this is not the same
// bits as a norm to bf16 followed by a cast. FP8 is e4m3, as both recipes want forward.
//
// A cluster of CTAs holds a block of rows in registers (fp32 statistics cross it through
// distributed shared memory), so x is read once although the transposed copy needs many rows at a
// time.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "te/fp8/tensor.h"
#include "te/kernels/cast_op.h"

namespace ptxbench::te {

inline constexpr int64_t kWidestNorm = 32768;

struct NormForward {
  NormKind kind = NormKind::layer;
  int64_t rows = 0, cols = 0;        // cols <= kWidestNorm
  const void* x = nullptr;           // bf16 [rows][cols]
  const void* gamma = nullptr;       // bf16 [cols]
  const void* beta = nullptr;        // bf16 [cols], layer only; null: 0
  float epsilon = 1e-5f;             // > 0
  bool zero_centered_gamma = false;  // the factor is 1 + gamma
  Fp8Target out;                     // any part may be null
  void* y = nullptr;                 // bf16 [rows][cols], or null
  float* mean = nullptr;             // [rows], or null; layer only
  float* rstd = nullptr;             // [rows], or null: 1 / sqrt(...)
};

struct NormPlan {
  NormTile tile = NormTile::t32x512;
  bool vector = false;   // 16-byte accesses throughout
  uint32_t cluster = 0;  // CTAs that share a block of rows, 1..8
  uint32_t row_blocks = 0;
  uint32_t prefetch = 0;  // blocks of rows ahead that are fetched into L2; 0: none
  std::string describe()
      const;  // "32x512 tiles, clusters of 8, 256 blocks of rows, 16-byte accesses"
};

// A plan with a given tile: only cluster and blocks of rows are filled in.
NormPlan cut(const NormForward& call, NormTile tile);
// How a shape is cut, from its size, alignment and the number of multiprocessors alone.
NormPlan plan_norm_forward(const NormForward& call, int sms);

// One kernel launch on `stream`. Errors "usage" (names the argument) and "cuda".
Result<void> norm_forward(const NormForward& call, cudaStream_t stream);
Result<void> norm_forward(const NormForward& call, const NormPlan& plan, cudaStream_t stream);

}  // namespace ptxbench::te
