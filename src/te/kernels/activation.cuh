#pragma once
// Activations in fp32. GELU in its tanh form (Hendrycks & Gimpel 2016), written with the logistic
// function: 0.5 (1 + tanh u) = s(2u), u = sqrt(2/pi) (x + 0.044715 x^3). That keeps the relative
// accuracy of the small side, which 1 - tanh^2 from an approximate tanh loses.

#include <cstdint>

namespace ptxbench::te::device {

struct Logistic {
  float value, complement;  // s and 1 - s, each to a few ulp of itself
};

__device__ __forceinline__ Logistic logistic(float z) {
  const float e = __expf(-z);  // infinity for very negative z: value 0
  const float value = __fdividef(1.0f, 1.0f + e);
  return {value, z > 0 ? e * value : 1.0f - value};
}

constexpr float kGeluA = 0.7978845608f * 2, kGeluB = 0.044715f;

// gelu(-inf) is NaN, as the formula has it (-inf * 0).
__device__ __forceinline__ float gelu(float x) {
  return x * logistic(kGeluA * x * (1.0f + kGeluB * x * x)).value;
}
__device__ __forceinline__ float gelu_derivative(float x) {
  const Logistic s = logistic(kGeluA * x * (1.0f + kGeluB * x * x));
  const float d = s.value * s.complement;
  const float slope = kGeluA * (1.0f + 3 * kGeluB * x * x);
  return s.value + (d == 0 ? 0.0f : x * d * slope);
}

__device__ __forceinline__ float silu(float x) { return x * logistic(x).value; }
__device__ __forceinline__ float silu_derivative(float x) {
  const Logistic s = logistic(x);
  const float d = s.value * s.complement;
  return s.value + (d == 0 ? 0.0f : x * d);
}

}  // namespace ptxbench::te::device
