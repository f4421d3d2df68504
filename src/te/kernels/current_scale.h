#pragma once
// Current scaling: the amax of a tensor and the scale that follows from it, in one launch; the cast
// that uses the scale is a second one (fused_cast). With several ranks: `amax` alone, an all-reduce
// (maximum) on it, then scale_from_amax.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/result.h"
#include "te/fp8/recipe.h"

namespace ptxbench::te {

struct AmaxCall {
  const void* x = nullptr;  // [count], bf16 or fp32
  bool f32 = false;
  int64_t count = 0;
  float* amax = nullptr;   // written: largest magnitude; NaN is not recorded, infinity is
  float* scale = nullptr;  // written, or null
  CurrentScaling recipe;
  Fp8Format format = Fp8Format::e4m3;
  // amax_workspace() bytes, 16-byte aligned, zero before the first use, fit for the next call after
  // each; one call at a time.
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

size_t amax_workspace();
// Errors "usage" and "cuda".
Result<void> compute_amax(const AmaxCall& call, cudaStream_t stream);
// One launch: *scale from *amax.
Result<void> scale_from_amax(const float* amax, float* scale, const CurrentScaling& recipe,
                             Fp8Format format, cudaStream_t stream);

}  // namespace ptxbench::te
