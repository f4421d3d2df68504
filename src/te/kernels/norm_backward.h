#pragma once
// Gradients of LayerNorm and RMSNorm, in two launches: dx with the partial column sums, then dgamma
// and dbeta from those. With n = (x - mean) * rstd and g = dy * gamma, rows reduced by mean():
//
//   layer  dx = rstd * (g - mean(g) - n * mean(g * n)) + residual
//   rms    dx = rstd * (g - n * mean(g * n)) + residual
//   dgamma = column sums of dy * n,  dbeta = column sums of dy      (fp32)
//
// dy, x, gamma, residual and dx are bf16. Sums of columns are added in a fixed order.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "te/kernels/cast_op.h"

namespace ptxbench::te {

struct NormBackward {
  NormKind kind = NormKind::layer;
  int64_t rows = 0, cols = 0;        // cols <= kWidestNorm
  const void* dy = nullptr;          // [rows][cols]
  const void* x = nullptr;           // [rows][cols]
  const void* gamma = nullptr;       // [cols]
  bool zero_centered_gamma = false;  // the factor is 1 + gamma
  const float* mean = nullptr;       // [rows], layer only
  const float* rstd = nullptr;       // [rows]
  const void* residual = nullptr;    // gradient that bypasses the norm, [rows][cols], or null
  void* dx = nullptr;                // [rows][cols]; may be residual or dy
  float* dgamma = nullptr;           // [cols]
  float* dbeta = nullptr;            // [cols], layer only; null: not wanted
  void* workspace = nullptr;         // norm_backward_workspace() bytes, 16-byte aligned
  size_t workspace_bytes = 0;
};

struct NormBackwardPlan {
  int threads = 0;       // of a CTA; each owns eight columns
  uint32_t cluster = 0;  // CTAs that share a row
  uint32_t groups = 0;   // clusters, each with every groups-th batch of four rows
  bool vector = false;
  std::string describe()
      const;  // "512 threads, clusters of 1, 132 groups of rows, 16-byte accesses"
};

NormBackwardPlan plan_norm_backward(const NormBackward& call, int sms);
size_t norm_backward_workspace(int64_t cols, int sms);

// Errors "usage" (names the argument) and "cuda".
Result<void> norm_backward(const NormBackward& call, cudaStream_t stream);

}  // namespace ptxbench::te
