#pragma once
// Activations in fp32. GELU in its tanh form (Hendrycks & Gimpel 2016), written with the logistic
// function: 0.5 (1 + tanh u) = s(2u), u = sqrt(2/pi) (x + 0.044715 x^3). That keeps the relative
// accuracy of the small side, which 1 - tanh^2 from an approximate tanh loses.
//
// The instructions of an element decide whether these kernels are bound by memory, so the argument
// is clamped below, where exp(-z) would overflow: there s is 0 to less than 1e-37, and s (1 - s) =
// e s^2 needs no case. NaN passes the clamp. gelu(-inf) and silu(-inf) are 0 to 1e-36; derivatives
// at +inf and where x^2 overflows are NaN, as the textbook formula's are.

#include <cstdint>

namespace ptxbench::te::device {

__device__ __forceinline__ float at_least(float x, float low) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(low));
  return x;
}
// e = exp(-z) and s = 1 / (1 + e), given -z * log2(e), which must be at most 127.
struct Logistic {
  float e, value;
};
__device__ __forceinline__ Logistic logistic(float exponent) {
  Logistic s;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(s.e) : "f"(exponent));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(s.value) : "f"(1.0f + s.e));
  return s;
}

constexpr float kLog2e = 1.4426950408889634f;
constexpr float kGeluA = 1.5957691216057308f;  // 2 sqrt(2/pi)
constexpr float kGeluB = 0.044715f * kGeluA;   // of x^3
constexpr float kGeluLow = -10.0f;             // where -z * log2(e) is 126.0

__device__ __forceinline__ float gelu(float x) {
  x = at_least(x, kGeluLow);
  return x * logistic(x * (-kLog2e * kGeluA - kLog2e * kGeluB * (x * x))).value;
}
// s + x z' s (1 - s), as s + s (x z' e s)
__device__ __forceinline__ float gelu_derivative(float x) {
  x = at_least(x, kGeluLow);
  const float square = x * x;
  const Logistic s = logistic(x * (-kLog2e * kGeluA - kLog2e * kGeluB * square));
  return s.value + s.value * (x * (kGeluA + 3 * kGeluB * square) * (s.e * s.value));
}

constexpr float kSiluLow = -87.0f;

__device__ __forceinline__ float silu(float x) {
  x = at_least(x, kSiluLow);
  return x * logistic(-kLog2e * x).value;
}
// Both at once: silu(x) and its derivative.
struct Silu {
  float value, derivative;
};
__device__ __forceinline__ Silu silu_with_derivative(float x) {
  x = at_least(x, kSiluLow);
  const Logistic s = logistic(-kLog2e * x);
  return {x * s.value, s.value + s.value * (x * (s.e * s.value))};
}

}  // namespace ptxbench::te::device
