#pragma once
// Floating-point formats and exact rounding.
//
// Method: whatever a single f64 operation cannot give exactly is computed in f64 *rounded to odd*
// (an inexact result has its last bit set). Rounding such a value once more, to any format of at
// most 51 bits and in any direction, gives the correctly rounded result.
#include "emu/scalar/level/lanes.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {

constexpr U32 kNan32 = 0x7fffffff;

// Mant: explicit mantissa bits; Emin: exponent of the smallest normal number.
template <class U, int Bits, int Mant, int Emin>
struct Format {
  using Word = U;
  static constexpr int kBits = Bits, kMant = Mant, kEmin = Emin;
  static constexpr U kSign = static_cast<U>(U{1} << (Bits - 1));
  static constexpr U kAbs = static_cast<U>(kSign - 1);
  static constexpr U kInf = static_cast<U>(kAbs & ~((U{1} << Mant) - 1));
  static constexpr U kNan = kAbs;
  static constexpr U kOne = static_cast<U>(static_cast<U>(1 - Emin) << Mant);
  static constexpr U kQuiet = static_cast<U>(U{1} << (Mant - 1));
  static constexpr U kMinNormal = static_cast<U>(U{1} << Mant);
};
using F16 = Format<U16, 16, 10, -14>;
using BF16 = Format<U16, 16, 7, -126>;
using F32 = Format<U32, 32, 23, -126>;
using F64 = Format<U64, 64, 52, -1022>;

template <class F>
LANE_INLINE bool is_nan(typename F::Word x) {
  return static_cast<typename F::Word>(x & F::kAbs) > F::kInf;
}
// Subnormals to zero of the same sign.
template <class F>
LANE_INLINE typename F::Word flush(typename F::Word x) {
  using U = typename F::Word;
  return static_cast<U>(x & F::kAbs) < F::kMinNormal ? static_cast<U>(x & F::kSign) : x;
}
LANE_INLINE float flush(float x) { return bits_as<float>(flush<F32>(bits_as<U32>(x))); }

// ------------------------------------------------------------------------------------ widening,
// exact
LANE_INLINE float widen(F16, U16 h) {
  U32 a = U32{h} & 0x7fff;
  // Subnormals: an integer times 2^-24.
  float small = static_cast<float>(static_cast<S32>(a)) * 0x1p-24f;
  U32 normal = (a << 13) + (a >= 0x7c00 ? 0x70000000u : 0x38000000u);
  U32 r = a < 0x400 ? bits_as<U32>(small) : normal;
  return bits_as<float>(r | (U32{h} & 0x8000) << 16);
}
LANE_INLINE float widen(BF16, U16 h) { return bits_as<float>(U32{h} << 16); }
LANE_INLINE float widen(F32, U32 x) { return bits_as<float>(x); }
LANE_INLINE double widen(F64, U64 x) { return bits_as<double>(x); }

// ------------------------------------------------------------------------------------ f64 NaN
// An f64 operation on NaNs returns one operand's payload, made quiet: the first NaN in the given
// order.
LANE_INLINE double keep_nan(double r, double first, double second) {
  r = second != second ? bits_as<double>(bits_as<U64>(second) | U64{1} << 51) : r;
  return first != first ? bits_as<double>(bits_as<U64>(first) | U64{1} << 51) : r;
}

// ------------------------------------------------------------------------------------ round to odd
LANE_INLINE double to_odd(double s, double error) {
  U64 b = bits_as<U64>(s);
  bool inexact = (error < 0) | (error > 0);
  U64 step = (error > 0) == (s > 0) ? U64{1} : ~U64{0};
  return bits_as<double>(inexact && (b & 1) == 0 ? b + step : b);
}
// For |a|, |b| below 2^1000 or infinite or NaN. Exact zeros: as round to nearest gives them.
LANE_INLINE double add_odd(double a, double b) {
  double s = a + b;
  double t = s - a;
  double error = (a - (s - t)) + (b - t);
  return to_odd(s, error);
}

// ------------------------------------------------------------------------------------ narrowing
enum Rounding : int { kRn, kRz, kRm, kRp, kRna };

LANE_INLINE Rounding rounding(U64 imm) {
  return imm & mod::rz    ? kRz
         : imm & mod::rm  ? kRm
         : imm & mod::rp  ? kRp
         : imm & mod::rna ? kRna
                          : kRn;
}

// x (exact or rounded to odd) to format F. NaN becomes the canonical one.
template <class F>
LANE_INLINE typename F::Word narrow(double x, Rounding mode) {
  U64 all = bits_as<U64>(x), sign = all >> 63, mag = all & ~(U64{1} << 63);
  S64 exponent = static_cast<S64>(mag >> 52) - 1023;
  U64 m = (mag & ((U64{1} << 52) - 1)) | (mag >> 52 ? U64{1} << 52 : 0);
  S64 below = exponent < F::kEmin ? F::kEmin - exponent : 0;
  S64 shift = 52 - F::kMant + below;
  shift = shift > 60 ? 60 : shift;
  U64 keep = m >> shift, rest = m & ((U64{1} << shift) - 1), half = U64{1} << (shift - 1);
  bool away = mode == kRn    ? (rest > half) | ((rest == half) & ((keep & 1) != 0))
              : mode == kRna ? rest >= half
              : mode == kRm  ? (sign != 0) & (rest != 0)
              : mode == kRp  ? (sign == 0) & (rest != 0)
                             : false;
  keep += away;
  U64 lead = below ? 0 : static_cast<U64>(exponent - F::kEmin) << F::kMant;
  U64 r = lead + keep;
  bool to_inf = mode == kRn || mode == kRna || mode == (sign ? kRm : kRp);
  r = r >= F::kInf ? (to_inf ? U64{F::kInf} : U64{F::kInf} - 1) : r;
  constexpr U64 kInf64 = U64{0x7ff} << 52;
  r = mag == kInf64 ? U64{F::kInf} : r;
  r = mag > kInf64 ? U64{F::kNan} : (r | sign << (F::kBits - 1));
  return static_cast<typename F::Word>(r);
}

// As narrow, but a NaN keeps its sign and the top of its payload, made quiet: conversions from f64.
template <class F>
LANE_INLINE typename F::Word narrow_keeping_nan(double x, Rounding mode) {
  U64 b = bits_as<U64>(x);
  U64 payload = (b & ((U64{1} << 52) - 1)) >> (52 - F::kMant);
  U64 nan = payload | F::kQuiet | F::kInf | (b >> 63) << (F::kBits - 1);
  return x != x ? static_cast<typename F::Word>(nan) : narrow<F>(x, mode);
}

// Whether .ftz makes x (exact or rounded to odd) a zero: its value rounded to F's precision but
// with an unbounded exponent is below the smallest normal number. So 2^-126 - 2^-150 is flushed
// although IEEE rounding would give 2^-126.
template <class F>
LANE_INLINE bool flushes(double x, Rounding mode) {
  constexpr double kMin = F::kEmin == -126 ? 0x1p-126 : 0x1p-14;
  constexpr double kUnit = F::kMant == 23 ? 0x1p-24 : F::kMant == 10 ? 0x1p-11 : 0x1p-8;
  double m = x < 0 ? -x : x;
  bool away = mode == (x < 0 ? kRm : kRp);
  return mode == kRn ? m < kMin * (1 - kUnit / 2) : away ? m <= kMin * (1 - kUnit) : m < kMin;
}
template <class F>
LANE_INLINE typename F::Word narrow_ftz(double x, U64 imm) {
  const Rounding mode = rounding(imm);
  typename F::Word r = narrow<F>(x, mode);
  bool zero = (imm & mod::ftz) && flushes<F>(x, mode);
  return zero ? static_cast<typename F::Word>(r & F::kSign) : r;
}

// f64 to f32 rounded to odd.
LANE_INLINE float odd32(double x) {
  float f = static_cast<float>(x);
  double error = x - f;  // exact; infinite when f overflowed, NaN when x is infinite or NaN
  U32 b = bits_as<U32>(f);
  bool inexact = (error < 0) | (error > 0);
  U32 step = (error > 0) == (x > 0) ? 1u : ~0u;
  return bits_as<float>(inexact && (b & 1) == 0 ? b + step : b);
}

// f32 to nearest-even f16 and bf16; canonical NaN.
LANE_INLINE U16 nearest(F16, float x) {
  U32 b = bits_as<U32>(x), a = b & 0x7fffffff;
  // Adding 0.5 aligns a subnormal result's unit 2^-24 with the last bit of the sum.
  U32 small = bits_as<U32>(bits_as<float>(a) + 0.5f) - 0x3f000000u;
  U32 normal = (a + 0xc8000fffu + ((a >> 13) & 1)) >> 13;
  U32 r = a < 0x38800000u ? small : normal;
  r = a >= 0x47800000u ? (a > 0x7f800000u ? 0x7fffu : 0x7c00u) : r;
  return static_cast<U16>(r | (a > 0x7f800000u ? 0 : (b >> 16 & 0x8000u)));
}
LANE_INLINE U16 nearest(BF16, float x) {
  U32 b = bits_as<U32>(x);
  U32 r = (b + 0x7fffu + ((b >> 16) & 1)) >> 16;
  return static_cast<U16>((b & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : r);
}

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
