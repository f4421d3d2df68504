#pragma once
// A plain model of a tensor-core step and generators of adversarial operands. The model works in
// doubles (products of two operands are exact there), the implementation in integers and f32
// vectors.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "ptx/opcodes.h"

namespace ptxbench::emu {

using ptx::Type;

struct Bits {
  int mantissa, exponent;
};
inline Bits bits_of(Type t) {
  switch (t) {
    case Type::bf16:
      return {7, 8};
    case Type::f16:
      return {10, 5};
    case Type::tf32:
      return {23, 8};
    case Type::e4m3:
      return {3, 4};
    default:
      return {2, 5};
  }
}

inline double value_of(Type t, uint32_t x) {
  const Bits f = bits_of(t);
  if (t == Type::tf32) x &= ~0x1fffu;
  const int top = (1 << f.exponent) - 1, e = static_cast<int>(x >> f.mantissa) & top;
  const uint32_t m = x & ((1u << f.mantissa) - 1);
  double v =
      std::ldexp(e ? m + std::ldexp(1.0, f.mantissa) : m, std::max(e, 1) - top / 2 - f.mantissa);
  if (t == Type::e4m3) {
    if ((x & 0x7f) == 0x7f) v = NAN;
  } else if (e == top) {
    v = m ? NAN : INFINITY;
  }
  return x >> (f.mantissa + f.exponent) & 1 ? -v : v;
}

inline int align_exponent(double v, int smallest) { return std::max(std::ilogb(v), smallest); }

inline float cut_to_f32(double r) {
  float f = static_cast<float>(r);
  if (std::fabs(static_cast<double>(f)) > std::fabs(r)) f = std::nextafterf(f, 0.0f);
  return f;
}

// One hw step: `kept` bits below the largest exponent survive; the accumulator is f32, or f16.
inline uint32_t model_step(Type at, Type bt, bool half, int kept, const std::vector<double>& a,
                           const std::vector<double>& b, double c) {
  auto smallest = [](Type t) { return 2 - (1 << (bits_of(t).exponent - 1)); };
  double plain = c;
  int largest = c != 0 && std::isfinite(c) ? align_exponent(c, half ? -14 : -126) : -9999;
  for (size_t k = 0; k < a.size(); ++k) {
    plain += a[k] * b[k];
    if (std::isfinite(a[k] * b[k]) && a[k] * b[k] != 0)
      largest = std::max(largest,
                         align_exponent(a[k], smallest(at)) + align_exponent(b[k], smallest(bt)));
  }
  auto result = [&](double exact) -> uint32_t {
    if (half) {
      const _Float16 h = static_cast<_Float16>(exact);
      uint16_t bits;
      std::memcpy(&bits, &h, 2);
      return std::isnan(exact) ? 0x7fff : bits;
    }
    const float f = std::fabs(exact) >= 0x1p128 ? static_cast<float>(std::copysign(INFINITY, exact))
                                                : cut_to_f32(exact);
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    return std::isnan(exact) ? 0x7fffffff : bits;
  };
  if (!std::isfinite(plain)) return result(plain);
  double sum = std::trunc(std::ldexp(c, kept - largest));
  for (size_t k = 0; k < a.size(); ++k) sum += std::trunc(std::ldexp(a[k] * b[k], kept - largest));
  return sum == 0 ? 0 : result(std::ldexp(sum, largest - kept));
}

// wgmma, f32 accumulator.
inline uint32_t model_hw(Type at, Type bt, const std::vector<double>& a,
                         const std::vector<double>& b, float c) {
  if (bits_of(at).mantissa > 3) return model_step(at, bt, false, 25, a, b, c);
  const uint32_t bits = model_step(at, bt, false, 13, a, b, c);
  return (bits >> 23 & 255) == 255 ? bits : bits & ~0x3ffu;
}

inline uint32_t model_f32(const std::vector<double>& a, const std::vector<double>& b, float c) {
  float f = c;
  for (size_t k = 0; k < a.size(); ++k)
    f = std::fma(static_cast<float>(a[k]), static_cast<float>(b[k]), f);
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return std::isnan(f) ? 0x7fffffff : bits;
}

enum class Fill { narrow, wide, bits, largest_mantissas, cancelling, tiny, huge, sparse, specials };
inline constexpr Fill kFills[] = {Fill::narrow,     Fill::wide, Fill::bits, Fill::largest_mantissas,
                                  Fill::cancelling, Fill::tiny, Fill::huge, Fill::sparse,
                                  Fill::specials};

struct Generator {
  std::mt19937 random{7};
  uint32_t next(uint32_t bound) {
    return static_cast<uint32_t>((uint64_t{random()} * bound) >> 32);
  }

  uint32_t element(Bits f, Fill fill) {
    const uint32_t top = (1u << f.exponent) - 1, bias = top / 2, mantissas = 1u << f.mantissa;
    const uint32_t sign = next(2) << (f.mantissa + f.exponent);
    auto make = [&](uint32_t e, uint32_t m) { return sign | e << f.mantissa | m; };
    switch (fill) {
      case Fill::narrow:
        return make(bias - 2 + next(4), next(mantissas));
      case Fill::wide:
        return make(bias / 2 + next(bias), next(mantissas));
      case Fill::largest_mantissas:
        return (bias << f.mantissa) | (mantissas - 1);
      case Fill::cancelling:
        return make(bias, next(2) ? mantissas - 1 : 0);
      case Fill::tiny:
        return make(next(3), next(mantissas));
      case Fill::huge:
        return make(top - 1 - next(3), next(mantissas - 1));
      case Fill::sparse:
        return next(8) ? sign : make(bias - 8 + next(12), next(mantissas));
      case Fill::specials:
        if (next(40)) return make(bias - 2 + next(4), next(mantissas));
        return next(2) ? make(top, 0) : make(top, next(mantissas));
      default:
        return random() >> (31 - f.mantissa - f.exponent);
    }
  }
};

}  // namespace ptxbench::emu
