#include "emu/tensor_core_exact.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ptxbench::emu {
namespace {

using ptx::Type;

struct Format {
  int mantissa, exponent;  // bits
  bool infinities = true;  // e4m3 has one NaN pattern and no infinity
  int ignored = 0;         // low bits that the hardware does not read (tf32)
};

Format format(Type t) {
  switch (t) {
    case Type::bf16:
      return {7, 8};
    case Type::f16:
      return {10, 5};
    case Type::e4m3:
      return {3, 4, false};
    case Type::e5m2:
      return {2, 5};
    case Type::tf32:
      return {23, 8, true, 13};
    default:
      return {23, 8};
  }
}

struct Term {
  enum Kind : uint8_t { finite, infinite, nan } kind = finite;
  bool negative = false;
  int64_t magnitude = 0;  // value = magnitude * 2^lsb
  int lsb = 0;
  int align = 0;  // exponent that alignment uses; subnormals are not normalised
};

Term decode(const Format& f, uint32_t bits) {
  Term t;
  bits = bits >> f.ignored << f.ignored;
  t.negative = (bits >> (f.mantissa + f.exponent)) & 1;
  const int top = (1 << f.exponent) - 1, bias = top >> 1;
  const int e = static_cast<int>(bits >> f.mantissa) & top;
  const uint32_t m = bits & ((1u << f.mantissa) - 1);
  if (e == top && (f.infinities || m == (1u << f.mantissa) - 1)) {
    t.kind = f.infinities && m == 0 ? Term::infinite : Term::nan;
    return t;
  }
  t.magnitude = e ? m | 1u << f.mantissa : m;
  t.align = std::max(e, 1) - bias;
  t.lsb = t.align - f.mantissa;
  return t;
}

Term multiply(const Term& x, const Term& y) {
  Term p;
  p.negative = x.negative != y.negative;
  if (x.kind == Term::nan || y.kind == Term::nan) {
    p.kind = Term::nan;
  } else if (x.kind == Term::infinite || y.kind == Term::infinite) {
    const Term& other = x.kind == Term::infinite ? y : x;
    p.kind = other.kind == Term::finite && other.magnitude == 0 ? Term::nan : Term::infinite;
  } else {
    p.magnitude = x.magnitude * y.magnitude;
    p.lsb = x.lsb + y.lsb;
    p.align = x.align + y.align;
  }
  return p;
}

// value * 2^lsb as bits of `f`: cut toward zero or rounded to nearest even; too large is infinity.
uint32_t encode(const Format& f, int64_t value, int lsb, bool nearest) {
  if (value == 0) return 0;
  const int bias = (1 << (f.exponent - 1)) - 1;
  const uint32_t sign = value < 0 ? 1u << (f.mantissa + f.exponent) : 0;
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? -value : value);
  int e = std::max(static_cast<int>(std::bit_width(magnitude)) - 1 + lsb, 1 - bias);
  const int drop = e - f.mantissa - lsb;  // low bits that do not fit
  uint64_t m;
  if (drop <= 0) {
    m = magnitude << -drop;
  } else if (drop > 63) {
    m = 0;
  } else {
    m = magnitude >> drop;
    const uint64_t rest = magnitude & ((uint64_t{1} << drop) - 1), half = uint64_t{1} << (drop - 1);
    if (nearest && (rest > half || (rest == half && (m & 1)))) ++m;
  }
  if (m >> (f.mantissa + 1)) m >>= 1, ++e;
  if (e > bias) return sign | ((1u << f.exponent) - 1) << f.mantissa;
  const uint32_t fraction = static_cast<uint32_t>(m) & ((1u << f.mantissa) - 1);
  return sign | fraction | (m >> f.mantissa ? static_cast<uint32_t>(e + bias) << f.mantissa : 0);
}

// What infinities and NaNs among the terms make of the result; 0 if there are none.
uint32_t special(const Format& f, const Term* terms, int n) {
  bool nan = false, plus = false, minus = false;
  for (int i = 0; i < n; ++i) {
    nan |= terms[i].kind == Term::nan;
    if (terms[i].kind == Term::infinite) (terms[i].negative ? minus : plus) = true;
  }
  const uint32_t sign = 1u << (f.mantissa + f.exponent);
  const uint32_t infinity = ((1u << f.exponent) - 1) << f.mantissa;
  if (nan || (plus && minus)) return sign - 1;
  if (plus || minus) return infinity | (minus ? sign : 0);
  return 0;
}

uint32_t load_element(const uint8_t* p, int bytes) {
  uint32_t v = 0;
  std::memcpy(&v, p, bytes);
  return v;
}

}  // namespace

uint32_t exact_step(Type a_type, Type b_type, Type d_type, const uint8_t* a, const uint8_t* b,
                    int k, uint32_t c) {
  const Format fa = format(a_type), fb = format(b_type), fd = format(d_type);
  const int bytes = (fa.mantissa + fa.exponent + 1) / 8;
  const bool fp8 = bytes == 1;
  const int kept = fp8 ? 13 : 25;  // bits below the largest exponent that survive alignment
  Term terms[33];
  // A NaN accumulator decides alone; a kernel that reads poison has whole tiles of them.
  if (const Term acc = decode(fd, c); acc.kind == Term::nan) return special(fd, &acc, 1);
  for (int i = 0; i < k; ++i)
    terms[i] = multiply(decode(fa, load_element(a + i * bytes, bytes)),
                        decode(fb, load_element(b + i * bytes, bytes)));
  terms[k] = decode(fd, c);
  if (uint32_t s = special(fd, terms, k + 1)) return s;
  int largest = -100000;
  for (int i = 0; i <= k; ++i)
    if (terms[i].magnitude) largest = std::max(largest, terms[i].align);
  const int lsb = largest - kept;
  int64_t sum = 0;
  for (int i = 0; i <= k; ++i) {
    const Term& t = terms[i];
    if (t.magnitude == 0) continue;
    const int up = t.lsb - lsb;  // at most `kept`: lsb <= align <= largest
    const int64_t m = up >= 0 ? t.magnitude << up : t.magnitude >> std::min(-up, 63);
    sum += t.negative ? -m : m;
  }
  const bool f16 = d_type == Type::f16;
  uint32_t d = encode(fd, sum, lsb, f16);
  if (fp8 && !f16 && (d >> 23 & 255) != 255) d &= ~0x3ffu;
  return d;
}

}  // namespace ptxbench::emu
