#pragma once
// Block scaling: every strip of 128 elements along the reduced dimension (activations, gradients),
// or every block of 128x128 (weights), has a scale of its own, found and used in the same launch.
// The transposed copy of strips is quantised anew from the input, along its own rows; that of
// blocks holds the same bytes. e4m3. Scales are fp32, and what is stored is scale_inv = 1/scale.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/result.h"
#include "te/fp8/recipe.h"

namespace ptxbench::te {

struct BlockCast {
  int64_t rows = 0, cols = 0;
  const void* in = nullptr;  // bf16 [rows][cols]
  bool square = false;       // 128x128 blocks instead of strips
  BlockScaling recipe;
  uint8_t* data = nullptr;       // [rows][cols]
  uint8_t* transpose = nullptr;  // [cols][rows]; either may be null, not both
  // Blocks counted up: strips [rows][ceil(cols/128)] and [cols][ceil(rows/128)],
  // squares [ceil(rows/128)][ceil(cols/128)] and transposed. Needed with the copy they belong to.
  float* scale_inv = nullptr;
  float* transpose_scale_inv = nullptr;
};

// One launch. Errors "usage" and "cuda".
Result<void> block_cast(const BlockCast& call, cudaStream_t stream);

}  // namespace ptxbench::te
