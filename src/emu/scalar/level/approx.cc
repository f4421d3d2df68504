// The .approx and .full instructions, within the errors that the ISA states and identical on every
// CPU: only f64 additions, multiplications, divisions and square roots are used, never the C
// library.
#include "emu/scalar/level/floats.h"
#include "emu/scalar/level/tables.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Op;
using enum ptx::Type;

// ------------------------------------------------------------------- elementary functions in f64
// 2^x, relative error below 1e-10, for |x| < 1000.
LANE_INLINE double exp2_f64(double x) {
  double n = __builtin_rint(x), y = (x - n) * 0.69314718055994530942;
  double p = 1.0 / 40320;
  p = p * y + 1.0 / 5040;
  p = p * y + 1.0 / 720;
  p = p * y + 1.0 / 120;
  p = p * y + 1.0 / 24;
  p = p * y + 1.0 / 6;
  p = p * y + 0.5;
  p = p * y + 1.0;
  p = p * y + 1.0;
  return p * bits_as<double>(static_cast<U64>(static_cast<S64>(n) + 1023) << 52);
}
// log2 of a positive, normal x.
LANE_INLINE double log2_f64(double x) {
  U64 b = bits_as<U64>(x);
  S64 e = static_cast<S64>(b >> 52) - 1023;
  double m = bits_as<double>((b & ((U64{1} << 52) - 1)) | U64{1023} << 52);
  bool big = m > 1.4142135623730951;
  m = big ? m * 0.5 : m;
  double s = (m - 1.0) / (m + 1.0), q = s * s;
  double p = 1.0 / 15;
  p = p * q + 1.0 / 13;
  p = p * q + 1.0 / 11;
  p = p * q + 1.0 / 9;
  p = p * q + 1.0 / 7;
  p = p * q + 1.0 / 5;
  p = p * q + 1.0 / 3;
  p = p * q + 1.0;
  return static_cast<double>(e + big) + 2.8853900817779268 * s * p;
}
// sin(2 pi r), |r| <= 1/4
LANE_INLINE double sin_turns(double r) {
  double y = r * 6.2831853071795864769, q = y * y;
  double p = -1.0 / 1307674368000.0;
  p = p * q + 1.0 / 6227020800.0;
  p = p * q - 1.0 / 39916800;
  p = p * q + 1.0 / 362880;
  p = p * q - 1.0 / 5040;
  p = p * q + 1.0 / 120;
  p = p * q - 1.0 / 6;
  p = p * q + 1.0;
  return p * y;
}
LANE_INLINE double tanh_f64(double x) {
  double q = x * x;
  double small = x * (1 + q * (-1.0 / 3 + q * (2.0 / 15 + q * (-17.0 / 315 + q * (62.0 / 2835)))));
  double m = x < 0 ? -x : x;
  double e = exp2_f64((m < 20 ? m : 20.0) * 2.8853900817779268);
  double large = 1 - 2 / (e + 1);
  return m >= 0.2 ? (x < 0 ? -large : large) : small;  // NaN: small
}

// ------------------------------------------------------------------------------------------- f32
LANE_INLINE float in(float x, U64 imm) { return imm & mod::ftz ? flush(x) : x; }
LANE_INLINE float out(double x, U64 imm) {
  float r = static_cast<float>(x);
  r = imm & mod::ftz ? flush(r) : r;
  return r == r ? r : bits_as<float>(kNan32);
}

LANE_INLINE double exp2_clamped(float x) {
  double y = x > -200.0f ? (x < 200.0f ? x : 200.0) : -200.0;  // NaN: -200
  double r = exp2_f64(y);
  return x != x ? static_cast<double>(x) : x < -200.0f ? 0.0 : r;
}
struct Ex2 {
  LANE_INLINE static float run(float x, U64 imm) { return out(exp2_clamped(in(x, imm)), imm); }
};
struct Lg2 {
  LANE_INLINE static float run(float x, U64 imm) {
    x = in(x, imm);
    bool positive = x > 0;
    double r = log2_f64(positive ? static_cast<double>(x) : 1.0);
    r = x > 0x1.fffffep127f ? __builtin_inf() : r;
    r = x == 0 ? -__builtin_inf() : r;
    return out(positive || x == 0 ? r : __builtin_nan(""), imm);
  }
};
struct Rcp {
  LANE_INLINE static float run(float x, U64 imm) { return out(1.0 / in(x, imm), imm); }
};
struct Rsqrt {
  LANE_INLINE static float run(float x, U64 imm) {
    x = in(x, imm);
    double r = 1.0 / __builtin_sqrt(static_cast<double>(x));
    return out(r, imm);
  }
};
struct Sqrt {
  LANE_INLINE static float run(float x, U64 imm) {
    return out(__builtin_sqrt(static_cast<double>(in(x, imm))), imm);
  }
};
// As measured: the argument is multiplied by the f32 nearest to 1/(2 pi) and the product cut to
// f32, which decides the phase of large arguments; subnormals count as zero.
LANE_INLINE double turns(float x) {
  double product = static_cast<double>(flush(x)) * 0.15915494309189535f;
  double cut = bits_as<double>(bits_as<U64>(product) & ~((U64{1} << 29) - 1));
  return cut - __builtin_rint(cut);
}
struct Sin {
  LANE_INLINE static float run(float x, U64) {
    double r = turns(x);
    r = r > 0.25 ? 0.5 - r : r < -0.25 ? -0.5 - r : r;
    return out(sin_turns(r), mod::ftz);
  }
};
struct Cos {
  LANE_INLINE static float run(float x, U64) {
    double r = turns(x);
    return out(sin_turns(0.25 - (r < 0 ? -r : r)), mod::ftz);
  }
};
struct Tanh {
  LANE_INLINE static float run(float x, U64) { return out(tanh_f64(x), 0); }
};

// a / b. div.approx multiplies by the reciprocal, which is zero for |b| above 2^126; div.full
// scales first.
struct DivApprox {
  LANE_INLINE static float run(float a, float b, U64 imm) {
    a = in(a, imm);
    b = in(b, imm);
    float m = b < 0 ? -b : b;
    bool huge = m > 0x1p126f && m <= 0x1.fffffep127f;
    double quotient = static_cast<double>(a) / b;
    double zero = a * bits_as<float>(bits_as<U32>(b) & 0x80000000u);  // NaN if a is infinite
    return out(huge ? zero : quotient, imm);
  }
};
struct DivFull {
  LANE_INLINE static float run(float a, float b, U64 imm) {
    return out(static_cast<double>(in(a, imm)) / in(b, imm), imm);
  }
};

// ------------------------------------------------------------------------------------ f16 and bf16
template <class F>
struct Ex2Half {
  LANE_INLINE static U16 run(U16 x, U64 imm) {
    float r = static_cast<float>(exp2_clamped(widen(F{}, imm & mod::ftz ? flush<F>(x) : x)));
    U16 h = nearest(F{}, r);
    return imm & mod::ftz ? flush<F>(h) : h;
  }
};
template <class F>
struct TanhHalf {
  LANE_INLINE static U16 run(U16 x, U64) {
    return nearest(F{}, static_cast<float>(tanh_f64(widen(F{}, x))));
  }
};

// ------------------------------------------------------------------------------------------- f64
// With .ftz only the high words are looked at and computed.
LANE_INLINE double high_word(double x) {
  return bits_as<double>(bits_as<U64>(x) & 0xffffffff00000000ull);
}
LANE_INLINE double high_result(double x) {
  return high_word(x != x ? bits_as<double>(U64{0x7fffffff00000000}) : x);
}
LANE_INLINE double flush64(double x) { return bits_as<double>(flush<F64>(bits_as<U64>(x))); }
struct Rcp64 {
  LANE_INLINE static double run(double x, U64) {
    return high_result(flush64(1.0 / flush64(high_word(x))));
  }
};
struct Rsqrt64 {
  LANE_INLINE static double run(double x, U64 imm) {
    x = imm & mod::ftz ? flush64(high_word(x)) : x;
    double r = 1.0 / __builtin_sqrt(x);
    return imm & mod::ftz ? high_result(r) : r;
  }
};

constexpr Flags kApprox = need(mod::approx) + may(mod::ftz);
constexpr Flags kApproxOnly = need(mod::approx);
constexpr Flags kApproxFtz = need(mod::approx | mod::ftz);
#define SINGLE(op, F) \
  { Op::op, f32, kApprox, same(f32, 1), unary<F, float> }
#define HALF(op, T, F, N, flags) \
  { Op::op, T, flags, same(T, 1), unary<F, U16, U16, N> }

constexpr Row kRows[] = {
    SINGLE(ex2, Ex2),
    SINGLE(lg2, Lg2),
    SINGLE(rcp, Rcp),
    SINGLE(rsqrt, Rsqrt),
    SINGLE(sqrt, Sqrt),
    SINGLE(sin, Sin),
    SINGLE(cos, Cos),
    {Op::tanh, f32, kApproxOnly, same(f32, 1), unary<Tanh, float>},
    HALF(ex2, f16, Ex2Half<F16>, 32, kApproxOnly),
    HALF(ex2, f16x2, Ex2Half<F16>, 64, kApproxOnly),
    HALF(ex2, bf16, Ex2Half<BF16>, 32, kApproxFtz),
    HALF(ex2, bf16x2, Ex2Half<BF16>, 64, kApproxFtz),
    HALF(tanh, f16, TanhHalf<F16>, 32, kApproxOnly),
    HALF(tanh, f16x2, TanhHalf<F16>, 64, kApproxOnly),
    HALF(tanh, bf16, TanhHalf<BF16>, 32, kApproxOnly),
    HALF(tanh, bf16x2, TanhHalf<BF16>, 64, kApproxOnly),
    {Op::rcp, f64, kApproxFtz, same(f64, 1), unary<Rcp64, double>},
    {Op::rsqrt, f64, kApprox, same(f64, 1), unary<Rsqrt64, double>},
    {Op::div, f32, kApprox, same(f32, 2), binary<DivApprox, float>},
    {Op::div, f32, need(mod::full) + may(mod::ftz), same(f32, 2), binary<DivFull, float>},
};

}  // namespace

Rows approx_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
