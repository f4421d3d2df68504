#pragma once
// From an amax to a scale: the arithmetic of the recipes, in one place for CPU and kernels. A scale
// multiplies before the cast, scale_inv = 1/scale (rounded to nearest) after it. All fp32.
//
// The rules are those of Transformer Engine's fused update (NVIDIA/TransformerEngine,
// common/recipe/delayed_scaling.cu and recipe_common.cuh), which its unfused Python path does not
// share in the corners: no roll when nothing was seen, and 2^-margin applied before the division.

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define PTXBENCH_TE_BOTH __host__ __device__ __forceinline__
#else
#define PTXBENCH_TE_BOTH inline
#endif

namespace ptxbench::te {

inline constexpr float kLargestScale = 3.402823466e+38f;  // FLT_MAX, in place of infinity

PTXBENCH_TE_BOTH uint32_t float_word(float v) {
  uint32_t u;
  memcpy(&u, &v, sizeof u);
  return u;
}
PTXBENCH_TE_BOTH float word_float(uint32_t u) {
  float v;
  memcpy(&v, &u, sizeof v);
  return v;
}
PTXBENCH_TE_BOTH bool is_finite_float(float v) {
  return (float_word(v) & 0x7f800000u) != 0x7f800000u;
}

// Delayed scaling. `scaled_max` = fp8_max * 2^-margin. 0, infinite and NaN amaxes keep `previous`;
// an amax so small that the quotient overflows gives FLT_MAX.
PTXBENCH_TE_BOTH float delayed_scale(float amax, float previous, float scaled_max) {
  if (!(is_finite_float(amax) && amax > 0)) return previous;
  const float scale = scaled_max / amax;
  return is_finite_float(scale) ? scale : kLargestScale;
}

// Current and block scaling: amax below `epsilon` counts as epsilon; 0, infinite and NaN amaxes
// give
// 1. A power of two is the next one down (mantissa cleared).
PTXBENCH_TE_BOTH float current_scale(float amax, float fp8_max, float epsilon, bool power_of_two) {
  if (amax < epsilon) amax = epsilon;
  if (!(is_finite_float(amax) && amax > 0)) return 1.0f;
  float scale = fp8_max / amax;
  if (!is_finite_float(scale)) scale = kLargestScale;
  return power_of_two ? word_float(float_word(scale) & 0xff800000u) : scale;
}

}  // namespace ptxbench::te
