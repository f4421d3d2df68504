#pragma once
// The two 8-bit floating-point formats of training (Micikevicius et al., "FP8 Formats for Deep
// Learning", 2022): e4m3 (no infinities, largest 448) for activations and weights, e5m2 (largest
// 57344) where gradients need range. Conversion is round to nearest, ties to even, saturating:
// what exceeds the largest value becomes the largest value, infinities too; NaN stays NaN; -0 stays
// -0.

#include <cstdint>

namespace ptxbench::te {

enum class Fp8Format : uint8_t { e4m3, e5m2 };

inline constexpr float kE4m3Max = 448, kE5m2Max = 57344;
constexpr float fp8_max(Fp8Format format) {
  return format == Fp8Format::e4m3 ? kE4m3Max : kE5m2Max;
}
constexpr const char* fp8_name(Fp8Format format) {
  return format == Fp8Format::e4m3 ? "e4m3" : "e5m2";
}

// On the CPU; the kernels use the GPU's own conversion, whose bits are the same.
uint8_t fp8_encode(Fp8Format format, float value);
float fp8_decode(Fp8Format format, uint8_t bits);

}  // namespace ptxbench::te
