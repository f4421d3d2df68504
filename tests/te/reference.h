#pragma once
// Inputs and fp64 references, from the definitions; nothing of the kernels' own code.

#include <cmath>
#include <cstdint>
#include <vector>

#include "numeric/float_formats.h"
#include "numeric/random.h"
#include "te/fp8/format.h"

namespace ptxbench::te::test {

inline double bf16(uint16_t v) { return numeric::bf16_to_float(v); }

// N(0, sigma) rounded to bf16, a few large values among them.
inline std::vector<uint16_t> random_bf16(size_t count, uint64_t stream, float sigma = 1) {
  std::vector<float> values(count);
  numeric::Random({0x7e, 1}, stream).fill_normal(0, values);
  std::vector<uint16_t> bits(count);
  for (size_t i = 0; i < count; ++i)
    bits[i] = numeric::bf16_from_float(values[i] * sigma * (i % 97 == 13 ? 8 : 1));
  return bits;
}
inline std::vector<float> random_f32(size_t count, uint64_t stream, float sigma = 1) {
  std::vector<float> values(count);
  numeric::Random({0x7e, 2}, stream).fill_normal(0, values);
  for (float& v : values) v *= sigma;
  return values;
}

inline double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
inline double silu(double x) { return x / (1 + std::exp(-x)); }
// By central differences: independent of anybody's derivation. Error about 1e-10.
template <class F>
double derivative(F f, double x) {
  const double h = 1e-5 * (1 + std::fabs(x));
  return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}

// Is `bits` a correct cast of value * scale, where `value` is known to a relative error `slack` of
// `size`? The two ends of the interval are cast, in one rounding each.
inline bool is_cast_of(uint8_t bits, double value, double scale, Fp8Format format, double slack) {
  auto encode = [&](double v) {
    return format == Fp8Format::e4m3 ? numeric::e4m3_from_double(v * scale)
                                     : numeric::e5m2_from_double(v * scale);
  };
  if (std::isnan(value)) return (bits & 0x7f) == (encode(value) & 0x7f);
  auto decode = [&](uint8_t b) { return fp8_decode(format, b); };
  const float low = decode(encode(value - slack)), high = decode(encode(value + slack));
  const float got = decode(bits);
  return low <= got && got <= high;
}

}  // namespace ptxbench::te::test
