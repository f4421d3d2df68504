#pragma once
// Activations in fp32. GELU in its tanh form (Hendrycks & Gimpel 2016), written with the logistic
// function: 0.5 (1 + tanh u) = s(2u), u = sqrt(2/pi) (x + 0.044715 x^3). That keeps the relative
// accuracy of the small side, which 1 - tanh^2 from an approximate tanh loses.
//
// The instructions of an element decide whether these kernels are bound by memory, so the argument
// is clamped to where exp(-z) neither overflows nor vanishes; beyond, s is 0 or 1 to less than
// 1e-37, and s (1 - s) = e s^2 needs no case. NaN passes the clamp. gelu(-inf) = silu(-inf) = 0 up
// to 1e-36.

#include <cstdint>

namespace ptxbench::te::device {

__device__ __forceinline__ float at_least(float x, float low) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(low));
  return x;
}
__device__ __forceinline__ float at_most(float x, float high) {
  asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(high));
  return x;
}

struct Logistic {
  float value, slope;  // s and s (1 - s)
};

// Of z, given -z * log2(e), which must be at most 126.5.
__device__ __forceinline__ Logistic logistic(float exponent) {
  float e, value;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(exponent));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(1.0f + e));
  return {value, e * value * value};
}

constexpr float kLog2e = 1.4426950408889634f;
constexpr float kGeluA = 1.5957691216057308f;  // 2 sqrt(2/pi)
constexpr float kGeluB = 0.044715f * kGeluA;   // of x^3
constexpr float kGeluBound = 10.0f;            // 2u(10) log2(e) = 126.0

__device__ __forceinline__ float gelu(float x) {
  const float low = at_least(x, -kGeluBound), c = at_most(low, kGeluBound), c2 = c * c;
  return low * logistic(c * (-kLog2e * kGeluA - kLog2e * kGeluB * c2)).value;
}
__device__ __forceinline__ float gelu_derivative(float x) {
  const float c = at_most(at_least(x, -kGeluBound), kGeluBound), c2 = c * c;
  const Logistic s = logistic(c * (-kLog2e * kGeluA - kLog2e * kGeluB * c2));
  return s.value + c * s.slope * (kGeluA + 3 * kGeluB * c2);
}

constexpr float kSiluBound = 87.0f;

__device__ __forceinline__ float silu(float x) {
  const float low = at_least(x, -kSiluBound);
  return low * logistic(-kLog2e * low).value;
}
// Both at once: silu(x) and its derivative.
struct Silu {
  float value, derivative;
};
__device__ __forceinline__ Silu silu_with_derivative(float x) {
  const float low = at_least(x, -kSiluBound), c = at_most(low, kSiluBound);
  const Logistic s = logistic(-kLog2e * c);
  return {low * s.value, s.value + c * s.slope};
}

}  // namespace ptxbench::te::device
