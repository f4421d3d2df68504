#include "numeric/float_formats.h"

#include <array>
#include <cassert>
#include <cmath>

namespace ptxbench::numeric {

namespace {

// A format with sign, exponent and fraction bits like IEEE's, below `top` (the largest finite
// pattern).
struct Layout {
  int fraction_bits;
  int bias;
  uint32_t top;       // magnitude of the largest finite value
  uint32_t overflow;  // magnitude that larger values become
  uint32_t nan;       // whole pattern
  int sign_bit;
};

constexpr Layout kBf16{7, 127, 0x7f7f, 0x7f80, 0x7fff, 15};
constexpr Layout kF16{10, 15, 0x7bff, 0x7c00, 0x7fff, 15};
constexpr Layout kE4m3Sat{3, 7, 0x7e, 0x7e, 0x7f, 7};
constexpr Layout kE4m3{3, 7, 0x7e, 0x7f, 0x7f, 7};
constexpr Layout kE5m2Sat{2, 15, 0x7b, 0x7b, 0x7f, 7};
constexpr Layout kE5m2{2, 15, 0x7b, 0x7c, 0x7f, 7};

// Works on the integer pattern of the double: adding half an ulp of the target carries into the
// exponent where it must. Subnormal results use the fixed ulp of the target's smallest normal
// binade.
uint32_t round_double(double v, const Layout& f) {
  uint64_t u = std::bit_cast<uint64_t>(v);
  uint32_t sign = static_cast<uint32_t>(u >> 63) << f.sign_bit;
  uint64_t magnitude = u & ~(uint64_t{1} << 63);
  constexpr uint64_t kInf = uint64_t{0x7ff} << 52;
  if (magnitude > kInf) return f.nan;
  if (magnitude == kInf) return sign | f.overflow;
  int exponent = static_cast<int>(magnitude >> 52) - 1023;
  uint32_t result;
  if (exponent >= 1 - f.bias) {
    int drop = 52 - f.fraction_bits;
    uint64_t odd = (magnitude >> drop) & 1;
    uint64_t rounded = (magnitude + ((uint64_t{1} << (drop - 1)) - 1 + odd)) >> drop;
    uint64_t rebias = static_cast<uint64_t>(1023 - f.bias) << f.fraction_bits;
    uint64_t wide = rounded - rebias;
    result = wide > f.top ? f.overflow : static_cast<uint32_t>(wide);
  } else {
    // In units of the smallest subnormal; nearbyint-like rounding of an exact product.
    double unit = std::ldexp(std::fabs(v), f.bias - 1 + f.fraction_bits);
    double floor = std::floor(unit);
    double rest = unit - floor;
    uint32_t n = static_cast<uint32_t>(floor);
    if (rest > 0.5 || (rest == 0.5 && (n & 1))) ++n;
    result = n;
  }
  return sign | result;
}

float expand(uint32_t v, const Layout& f) {
  uint32_t sign = (v >> f.sign_bit) & 1;
  uint32_t magnitude = v & ((1u << f.sign_bit) - 1);
  uint32_t fraction = magnitude & ((1u << f.fraction_bits) - 1);
  int exponent = static_cast<int>(magnitude >> f.fraction_bits);
  float value = exponent == 0
                    ? std::ldexp(static_cast<float>(fraction), 1 - f.bias - f.fraction_bits)
                    : std::ldexp(static_cast<float>(fraction | (1u << f.fraction_bits)),
                                 exponent - f.bias - f.fraction_bits);
  return sign ? -value : value;
}

using Table = std::array<float, 256>;

Table make_e4m3() {
  Table table;
  for (uint32_t v = 0; v < 256; ++v)
    table[v] = (v & 0x7f) == 0x7f ? std::bit_cast<float>(0x7fffffffu) : expand(v, kE4m3);
  return table;
}

Table make_e5m2() {
  Table table;
  for (uint32_t v = 0; v < 256; ++v) {
    float inf = v & 0x80 ? -INFINITY : INFINITY;
    float special = (v & 3) ? std::bit_cast<float>(0x7fffffffu) : inf;
    table[v] = (v & 0x7c) == 0x7c ? special : expand(v, kE5m2);
  }
  return table;
}

const Table kE4m3Table = make_e4m3();
const Table kE5m2Table = make_e5m2();

template <class From, class To, class Convert>
void bulk(std::span<const From> from, std::span<To> to, Convert convert) {
  assert(from.size() == to.size());
  const From* __restrict in = from.data();
  To* __restrict out = to.data();
  size_t n = from.size();
  for (size_t i = 0; i < n; ++i) out[i] = convert(in[i]);
}

// Branch-free for the vectoriser. Normal results: round in the float's own pattern. Subnormal
// results: adding 0.5 aligns the fraction so that the addition itself rounds to a multiple of
// 2^-24.
inline uint16_t f16_round(float v) {
  uint32_t u = std::bit_cast<uint32_t>(v);
  uint32_t sign = (u >> 16) & 0x8000u;
  uint32_t magnitude = u & 0x7fffffffu;
  uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
  uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
                   std::bit_cast<uint32_t>(0.5f);
  uint32_t result = magnitude < (113u << 23) ? small : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result;  // 65520 and above
  result |= sign;
  return static_cast<uint16_t>(magnitude > 0x7f800000u ? 0x7fffu : result);
}

// The same for the 8-bit formats; the subnormal's ulp is that of `magic`.
template <int kFraction, int kBias>
inline uint8_t fp8_round(float v, uint32_t top, uint32_t overflow) {
  uint32_t u = std::bit_cast<uint32_t>(v);
  uint32_t sign = (u >> 24) & 0x80u;
  uint32_t magnitude = u & 0x7fffffffu;
  constexpr int kDrop = 23 - kFraction;
  uint32_t odd = (magnitude >> kDrop) & 1u;
  uint32_t normal =
      (magnitude + ((1u << (kDrop - 1)) - 1) + odd - (uint32_t{127 - kBias} << 23)) >> kDrop;
  // 2^(1 - bias - fraction) is the smallest subnormal; magic has it as its unit in the last place.
  constexpr float kMagic = std::bit_cast<float>(uint32_t{127 + 1 - kBias - kFraction + 23} << 23);
  uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + kMagic) -
                   std::bit_cast<uint32_t>(kMagic);
  uint32_t result =
      magnitude < (uint32_t{127 + 1 - kBias} << 23) ? small : (normal > top ? overflow : normal);
  result |= sign;
  return static_cast<uint8_t>(magnitude > 0x7f800000u ? 0x7fu : result);
}

inline uint8_t e4m3_round(float v, uint32_t overflow) { return fp8_round<3, 7>(v, 0x7e, overflow); }
inline uint8_t e5m2_round(float v, uint32_t overflow) {
  return fp8_round<2, 15>(v, 0x7b, overflow);
}

}  // namespace

uint16_t f16_from_float(float v) { return f16_round(v); }
uint16_t bf16_from_double(double v) { return static_cast<uint16_t>(round_double(v, kBf16)); }
uint16_t f16_from_double(double v) { return static_cast<uint16_t>(round_double(v, kF16)); }

uint32_t tf32_from_float(float v) {
  uint32_t u = std::bit_cast<uint32_t>(v);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
  return (u + 0xfffu + ((u >> 13) & 1u)) & ~0x1fffu;
}

uint32_t tf32_from_float_rna(float v) {
  uint32_t u = std::bit_cast<uint32_t>(v);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
  return (u + 0x1000u) & ~0x1fffu;
}

float e4m3_to_float(uint8_t v) { return kE4m3Table[v]; }
float e5m2_to_float(uint8_t v) { return kE5m2Table[v]; }
uint8_t e4m3_from_float(float v, bool satfinite) { return e4m3_round(v, satfinite ? 0x7e : 0x7f); }
uint8_t e5m2_from_float(float v, bool satfinite) { return e5m2_round(v, satfinite ? 0x7b : 0x7c); }

uint8_t e4m3_from_double(double v, bool satfinite) {
  return static_cast<uint8_t>(round_double(v, satfinite ? kE4m3Sat : kE4m3));
}

uint8_t e5m2_from_double(double v, bool satfinite) {
  return static_cast<uint8_t>(round_double(v, satfinite ? kE5m2Sat : kE5m2));
}

float float_from_double(double v) { return static_cast<float>(v); }

void bf16_to_float(std::span<const uint16_t> from, std::span<float> to) {
  bulk(from, to, [](uint16_t v) { return bf16_to_float(v); });
}
void bf16_from_float(std::span<const float> from, std::span<uint16_t> to) {
  bulk(from, to, [](float v) { return bf16_from_float(v); });
}
void f16_to_float(std::span<const uint16_t> from, std::span<float> to) {
  bulk(from, to, [](uint16_t v) { return f16_to_float(v); });
}
void f16_from_float(std::span<const float> from, std::span<uint16_t> to) {
  bulk(from, to, [](float v) { return f16_round(v); });
}
void e4m3_to_float(std::span<const uint8_t> from, std::span<float> to) {
  bulk(from, to, [](uint8_t v) { return kE4m3Table[v]; });
}
void e5m2_to_float(std::span<const uint8_t> from, std::span<float> to) {
  bulk(from, to, [](uint8_t v) { return kE5m2Table[v]; });
}
void e4m3_from_float(std::span<const float> from, std::span<uint8_t> to, bool satfinite) {
  uint32_t overflow = satfinite ? 0x7e : 0x7f;
  bulk(from, to, [overflow](float v) { return e4m3_round(v, overflow); });
}
void e5m2_from_float(std::span<const float> from, std::span<uint8_t> to, bool satfinite) {
  uint32_t overflow = satfinite ? 0x7b : 0x7c;
  bulk(from, to, [overflow](float v) { return e5m2_round(v, overflow); });
}

}  // namespace ptxbench::numeric
