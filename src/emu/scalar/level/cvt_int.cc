// Conversions from and to integers.
#include "emu/scalar/level/cvt.h"
#include "emu/scalar/level/floats.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Type;

// ------------------------------------------------------------------------------ integer to integer
template <class D, class S>
struct Plain {
  LANE_INLINE static D run(S a, U64) { return static_cast<D>(a); }
};

template <bool Signed, class W>
LANE_INLINE W extend(W x, U32 bits) {
  const U32 unused = 8 * sizeof(W) - bits;
  if (sizeof(W) == 4) {
    U32 u = static_cast<U32>(x) << unused;
    return static_cast<W>(Signed ? static_cast<U32>(static_cast<S32>(u) >> unused) : u >> unused);
  }
  U64 u = static_cast<U64>(x) << unused;
  return static_cast<W>(Signed ? static_cast<U64>(static_cast<S64>(u) >> unused) : u >> unused);
}

template <class D, class S, bool ToSigned, bool FromSigned>
struct Resize {
  LANE_INLINE static D run(S a, U64 imm) {
    using W = typename Word<(sizeof(D) > 4 || sizeof(S) > 4 ? 8 : 4)>::type;
    W x = extend<FromSigned, W>(a, static_cast<U32>(imm >> 56) & 0x7f);
    return static_cast<D>(extend<ToSigned, W>(x, static_cast<U32>(imm >> 48) & 0x7f));
  }
};

template <class D, class S, bool FromSigned>
struct Saturate {
  LANE_INLINE static D run(S a, U64 imm) {
    const U32 bits = static_cast<U32>(imm >> 48) & 0x7f;
    const bool to_signed = (imm >> 48 & kSignedInteger) != 0;
    U64 x = extend<FromSigned, U64>(a, static_cast<U32>(imm >> 56) & 0x7f);
    const U64 most = ~U64{0} >> (64 - bits + to_signed);
    const U64 least = to_signed ? ~most : 0;
    if (FromSigned) {
      bool negative = static_cast<S64>(x) < 0;
      U64 low = static_cast<S64>(x) < static_cast<S64>(least) ? least : x;
      x = negative ? low : (x > most ? most : x);
    } else {
      x = x > most ? most : x;
    }
    return static_cast<D>(x);
  }
};

template <class D, class S>
Handler resize(bool to_signed, bool from_signed) {
  if (to_signed) {
    return from_signed ? unary<Resize<D, S, true, true>, D, S>
                       : unary<Resize<D, S, true, false>, D, S>;
  }
  return from_signed ? unary<Resize<D, S, false, true>, D, S>
                     : unary<Resize<D, S, false, false>, D, S>;
}

template <class D, class S, class Signed>
Handler int_to_int(U16 extra, bool saturate) {
  const U32 to_bits = extra & 0x7f, from_bits = extra >> 8 & 0x7f;
  const bool to_signed = extra & kSignedInteger, from_signed = extra >> 8 & kSignedInteger;
  if (saturate) {
    return from_signed ? unary<Saturate<D, S, true>, D, S> : unary<Saturate<D, S, false>, D, S>;
  }
  if (to_bits == 8 * sizeof(D) && from_bits == 8 * sizeof(S)) {
    return from_signed ? unary<Plain<D, Signed>, D, Signed> : unary<Plain<D, S>, D, S>;
  }
  return resize<D, S>(to_signed, from_signed);
}
template <class D>
Handler int_to_int(int from_bytes, U16 extra, bool saturate) {
  switch (from_bytes) {
    case 2:
      return int_to_int<D, U16, S16>(extra, saturate);
    case 4:
      return int_to_int<D, U32, S32>(extra, saturate);
    case 8:
      return int_to_int<D, U64, S64>(extra, saturate);
  }
  return nullptr;
}

// -------------------------------------------------------------------------------- integer to float
LANE_INLINE double step_toward(double s, double error, Rounding mode) {
  U64 b = bits_as<U64>(s);
  bool up = (mode == kRp || (mode == kRz && s < 0)) & (error > 0);
  bool down = (mode == kRm || (mode == kRz && s > 0)) & (error < 0);
  b = up ? (s < 0 ? b - 1 : b + 1) : b;
  b = down ? (s < 0 ? b + 1 : b - 1) : b;
  return bits_as<double>(b);
}

template <class F, class S, bool FromSigned>
struct IntToFloat {
  LANE_INLINE static typename F::Word run(S a, U64 imm) {
    const Rounding mode = rounding(imm);
    U64 x = extend<FromSigned, U64>(a, static_cast<U32>(imm >> 48) & 0x7f);
    // Two exact halves; their sum's error is exact too.
    double hi = FromSigned ? static_cast<double>(static_cast<S32>(x >> 32))
                           : static_cast<double>(static_cast<U32>(x >> 32));
    hi *= 0x1p32;
    double lo = static_cast<double>(static_cast<U32>(x));
    double s = hi + lo, error = lo - (s - hi);
    if (imm & mod::sat) {
      s = s <= 0 ? 0.0 : 1.0;
      error = 0;
    }
    if (sizeof(typename F::Word) == 8) {
      return static_cast<typename F::Word>(bits_as<U64>(step_toward(s, error, mode)));
    }
    return narrow<F>(to_odd(s, error), mode);
  }
};
template <class D, class S>
struct Nearest {
  LANE_INLINE static D run(S a, U64) { return static_cast<D>(a); }
};

template <class F, class S>
Handler int_to_float(bool from_signed) {
  using D = typename F::Word;
  return from_signed ? unary<IntToFloat<F, S, true>, D, S> : unary<IntToFloat<F, S, false>, D, S>;
}
template <class F>
Handler int_to_float(int from_bytes, bool from_signed) {
  switch (from_bytes) {
    case 2:
      return int_to_float<F, U16>(from_signed);
    case 4:
      return int_to_float<F, U32>(from_signed);
    case 8:
      return int_to_float<F, U64>(from_signed);
  }
  return nullptr;
}

// -------------------------------------------------------------------------------- float to integer
LANE_INLINE double round_to_int(double x, U64 imm) {
  if (imm & mod::rzi) return __builtin_trunc(x);
  if (imm & mod::rmi) return __builtin_floor(x);
  if (imm & mod::rpi) return __builtin_ceil(x);
  return __builtin_rint(x);
}

template <class D, class F>
struct FloatToInt {
  LANE_INLINE static D run(typename F::Word a, U64 imm) {
    const U32 bits = static_cast<U32>(imm >> 48) & 0x7f;
    const bool to_signed = (imm >> 48 & kSignedInteger) != 0;
    double x = round_to_int(widen(F{}, imm & mod::ftz ? flush<F>(a) : a), imm);
    bool negative = x < 0, nan = x != x;
    double m = negative ? -x : x;
    bool high = m >= 0x1p63;
    double low = high ? m - 0x1p63 : m;
    low = low < 0x1p63 ? low : 0.0;  // also NaN; beyond 2^64 the limit below decides
    U64 u = static_cast<U64>(static_cast<S64>(low)) | (high ? U64{1} << 63 : 0);
    u = m >= 0x1p64 ? ~U64{0} : u;
    const U64 most = ~U64{0} >> (64 - bits + to_signed);
    const U64 limit = negative ? (to_signed ? most + 1 : 0) : most;
    u = u > limit ? limit : u;
    u = negative ? U64{0} - u : u;
    // NaN: the most negative number if f64 or 64 bits are involved, else 0.
    const U64 lowest = to_signed ? ~most : most ^ (most >> 1);
    u = nan ? (bits == 64 || F::kMant == 52 ? lowest : 0) : u;
    return static_cast<D>(u);
  }
};
// The frequent case: f32 to 32 bits, toward zero.
struct TruncateS32 {
  LANE_INLINE static S32 run(float a, U64) {
    float x = a < 0x1p31f ? a : 0.0f;
    S32 r = static_cast<S32>(x < -0x1p31f ? -0x1p31f : x);
    return a >= 0x1p31f ? 0x7fffffff : r;
  }
};

template <class D>
Handler float_to_int(Type from) {
  switch (from) {
    case Type::f16:
      return unary<FloatToInt<D, F16>, D, U16>;
    case Type::bf16:
      return unary<FloatToInt<D, BF16>, D, U16>;
    case Type::f32:
      return unary<FloatToInt<D, F32>, D, U32>;
    case Type::f64:
      return unary<FloatToInt<D, F64>, D, U64>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler cvt_int_to_int(int to_bytes, int from_bytes, uint16_t extra, bool saturate) {
  switch (to_bytes) {
    case 2:
      return int_to_int<U16>(from_bytes, extra, saturate);
    case 4:
      return int_to_int<U32>(from_bytes, extra, saturate);
    case 8:
      return int_to_int<U64>(from_bytes, extra, saturate);
  }
  return nullptr;
}

Handler cvt_int_to_float(Type to, int from_bytes, uint16_t extra, uint64_t flags) {
  const bool from_signed = extra & kSignedInteger;
  const bool plain = flags == mod::rn && (extra & 0x7f) == 8 * from_bytes;
  if (plain && to == Type::f32 && from_bytes == 4) {
    return from_signed ? unary<Nearest<float, S32>, float, S32>
                       : unary<Nearest<float, U32>, float, U32>;
  }
  if (plain && to == Type::f64 && from_bytes == 4) {
    return from_signed ? unary<Nearest<double, S32>, double, S32>
                       : unary<Nearest<double, U32>, double, U32>;
  }
  switch (to) {
    case Type::f16:
      return int_to_float<F16>(from_bytes, from_signed);
    case Type::bf16:
      return int_to_float<BF16>(from_bytes, from_signed);
    case Type::f32:
      return int_to_float<F32>(from_bytes, from_signed);
    case Type::f64:
      return int_to_float<F64>(from_bytes, from_signed);
    default:
      return nullptr;
  }
}

Handler cvt_float_to_int(int to_bytes, Type from, uint16_t extra, uint64_t flags) {
  if (from == Type::f32 && to_bytes == 4 && (flags & ~(mod::ftz | mod::sat)) == mod::rzi &&
      extra == (32 | kSignedInteger)) {
    return unary<TruncateS32, S32, float>;
  }
  switch (to_bytes) {
    case 2:
      return float_to_int<U16>(from);
    case 4:
      return float_to_int<U32>(from);
    case 8:
      return float_to_int<U64>(from);
  }
  return nullptr;
}

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
