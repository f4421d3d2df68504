// Conversions between floating-point types, pairs and 8-bit formats, and cvt.pack.
#include "emu/scalar/level/floats.h"
#include "emu/scalar/level/tables.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Op;
using enum ptx::Type;

constexpr ModSet kRoundInt = mod::rni | mod::rzi | mod::rmi | mod::rpi;

LANE_INLINE double round_to_int(double x, U64 imm) {
  if (imm & mod::rni) return __builtin_rint(x);
  if (imm & mod::rzi) return __builtin_trunc(x);
  if (imm & mod::rmi) return __builtin_floor(x);
  return __builtin_ceil(x);
}

constexpr U64 kNan32In64 = 0x7fffffffe0000000;

LANE_INLINE double limit(double x, U64 imm) {
  if (imm & mod::sat) {
    x = x > 0 ? x : 0.0;
    x = x < 1 ? x : 1.0;
  }
  if (imm & mod::relu) x = x <= 0 ? 0.0 : x;
  return x;
}

template <class F>
LANE_INLINE typename F::Word finite(typename F::Word r, U64 imm) {
  using U = typename F::Word;
  bool infinite = static_cast<U>(r & F::kAbs) == F::kInf;
  return imm & mod::satfinite && infinite ? static_cast<U>(r - 1) : r;
}

// .ftz concerns f32 (and bf16 made from it); conversions from or to f16 ignore it.
template <class S>
LANE_INLINE double read(typename S::Word a, U64 imm) {
  return widen(S{}, imm & mod::ftz && S::kMant != F16::kMant ? flush<S>(a) : a);
}
template <class D, class S>
struct Convert {
  LANE_INLINE static typename D::Word run(typename S::Word a, U64 imm) {
    if (D::kMant == F16::kMant) imm &= ~mod::ftz;
    double x = read<S>(a, imm);
    if (imm & kRoundInt) x = round_to_int(x, imm);
    x = limit(x, imm);
    const Rounding mode = rounding(imm);
    typename D::Word r = S::kMant == 52 ? narrow_keeping_nan<D>(x, mode) : narrow<D>(x, mode);
    r = finite<D>(r, imm);
    bool zero = (imm & mod::ftz) && flushes<D>(x, mode);
    return zero ? static_cast<typename D::Word>(r & D::kSign) : r;
  }
};
template <class S>
struct Convert<F64, S> {
  LANE_INLINE static U64 run(typename S::Word a, U64 imm) {
    double x = read<S>(a, imm);
    if (S::kMant == 23) x = imm & mod::ftz && x != x ? bits_as<double>(kNan32In64) : x;
    if (imm & kRoundInt) x = round_to_int(x, imm);
    return bits_as<U64>(limit(x, imm));
  }
};
template <class T>
struct Same {
  LANE_INLINE static T run(T a, U64) { return a; }
};

struct WidenF16 {
  LANE_INLINE static U32 run(U16 a, U64) {
    return is_nan<F16>(a) ? kNan32 : bits_as<U32>(widen(F16{}, a));
  }
};
struct WidenBF16 {
  LANE_INLINE static U32 run(U16 a, U64) { return U32{a} << 16; }
};
template <class F>
struct NearestOf {
  LANE_INLINE static U16 run(float a, U64) { return nearest(F{}, a); }
};

// tf32: f32 whose low 13 bits are zero.
using TF32 = Format<U32, 19, 10, -126>;
struct ToTf32 {
  LANE_INLINE static U32 run(float a, U64 imm) {
    return finite<TF32>(narrow<TF32>(limit(a, imm), rounding(imm)), imm) << 13;
  }
};
struct ToTf32Away {  // half a unit more, cut; a NaN is only cut
  LANE_INLINE static U32 run(U32 a, U64 imm) {
    const U32 r = (is_nan<F32>(a) ? a : a + 0x1000) & 0xffffe000u;
    const bool beyond = (r & 0x7fffffffu) >= 0x7f800000u;
    // Measured: whatever is not finite goes down by one unit, NaN too.
    return imm & mod::satfinite && beyond ? r - 0x2000 : r;
  }
};

// ---------------------------------------------------------------------------------------- pairs
// The first source goes to the high half.
template <class F>
struct PairNearest {
  LANE_INLINE static U32 run(float a, float b, U64) {
    return U32{nearest(F{}, a)} << 16 | nearest(F{}, b);
  }
};
template <class F>
LANE_INLINE U32 half(float a, U64 imm) {
  return finite<F>(narrow<F>(limit(a, imm), rounding(imm)), imm);
}
template <class F>
struct Pair {
  LANE_INLINE static U32 run(float a, float b, U64 imm) {
    return half<F>(a, imm) << 16 | half<F>(b, imm);
  }
};

// e4m3 has no infinity: only S.1111.111 is not finite.
struct E4M3 {
  static constexpr U32 kMant = 3, kBias = 7;
  static constexpr float kMax = 448, kMinNormal = 0x1p-6f;
  static constexpr float kAlign = 0x1p14f;  // its last bit is the unit of a subnormal
};
struct E5M2 {
  static constexpr U32 kMant = 2, kBias = 15;
  static constexpr float kMax = 57344, kMinNormal = 0x1p-14f, kAlign = 0x1p7f;
};
// Nearest even, saturating.
template <class F>
LANE_INLINE U32 eighth(float x, U64 imm) {
  constexpr U32 kDrop = 23 - F::kMant;
  const U32 bits = bits_as<U32>(x), sign = bits >> 24 & 0x80;
  float m = bits_as<float>(bits & 0x7fffffffu);
  m = m < F::kMax ? m : F::kMax;
  const U32 a = bits_as<U32>(m);
  const U32 small = bits_as<U32>(m + F::kAlign) - bits_as<U32>(F::kAlign);
  const U32 normal =
      ((a + (1u << (kDrop - 1)) - 1 + (a >> kDrop & 1)) >> kDrop) - ((127 - F::kBias) << F::kMant);
  U32 r = sign | (m < F::kMinNormal ? small : normal);
  r = imm & mod::relu && sign ? 0 : r;
  return x != x ? 0x7fu : r;
}
template <class F>
struct PairTo8 {
  LANE_INLINE static U16 run(float a, float b, U64 imm) {
    return static_cast<U16>(eighth<F>(a, imm) << 8 | eighth<F>(b, imm));
  }
};
template <class F, class S>
struct HalvesTo8 {
  LANE_INLINE static U16 run(U32 a, U64 imm) {
    U32 hi = eighth<F>(widen(S{}, static_cast<U16>(a >> 16)), imm);
    return static_cast<U16>(hi << 8 | eighth<F>(widen(S{}, static_cast<U16>(a)), imm));
  }
};
LANE_INLINE U32 half_of(E5M2, U32 x) { return (x & 0x7f) > 0x7c ? 0x7fffu : x << 8; }
LANE_INLINE U32 half_of(E4M3, U32 x) {
  U32 sign = (x & 0x80) << 8, m = x & 0x7f;
  // Shifted into f16's fields the exponent bias is 8 too small; the subnormals become normal.
  float small = static_cast<float>(static_cast<S32>(m)) * 0x1p-9f;
  U32 subnormal = nearest(F16{}, small);
  U32 r = m < 8 ? subnormal : (m << 7) + (8u << 10);
  return m == 0x7f ? 0x7fffu : sign | r;
}
template <class F>
struct Halves {
  LANE_INLINE static U32 one(U32 x, U64 imm) {
    U32 r = half_of(F{}, x);
    return imm & mod::relu && (r & 0x8000) ? 0u : r;
  }
  LANE_INLINE static U32 run(U16 a, U64 imm) {
    return one(a >> 8, imm) << 16 | one(a & 0xffu, imm);
  }
};

// ------------------------------------------------------------------------------------- cvt.pack
// Saturates a and b to N bits and appends them below c.
template <int N, bool Signed>
LANE_INLINE U32 saturate(S32 x) {
  constexpr S32 kMost = Signed ? (1 << (N - 1)) - 1 : (1 << N) - 1,
                kLeast = Signed ? -kMost - 1 : 0;
  S32 r = x < kLeast ? kLeast : x > kMost ? kMost : x;
  return static_cast<U32>(r) & ((1u << N) - 1);
}
template <bool Signed>
struct Pack16 {
  LANE_INLINE static U32 run(S32 a, S32 b, U64) {
    return saturate<16, Signed>(a) << 16 | saturate<16, Signed>(b);
  }
};
template <int N, bool Signed>
struct PackSmall {
  LANE_INLINE static U32 run(S32 a, S32 b, U32 c, U64) {
    return c << 2 * N | saturate<N, Signed>(a) << N | saturate<N, Signed>(b);
  }
};

constexpr ModSet kRound = mod::rn | mod::rz | mod::rm | mod::rp;

#define CVT(D, S, flags, DF, SF) \
  { Op::cvt, {D, S}, flags, sig({D}, {S}), unary<Convert<DF, SF>, DF::Word, SF::Word> }
#define PAIR(D, F)                                                                                \
  {Op::cvt, {D, f32}, need(mod::rn), sig({D}, {f32, f32}), binary<PairNearest<F>, U32, float>}, { \
    Op::cvt, {D, f32}, one_of(mod::rn | mod::rz) + may(mod::relu | mod::satfinite),               \
        sig({D}, {f32, f32}), binary<Pair<F>, U32, float>                                         \
  }
#define PAIR8(D, F)                                                         \
  {Op::cvt,                                                                 \
   {D, f32},                                                                \
   need(mod::rn | mod::satfinite) + may(mod::relu),                         \
   sig({D}, {f32, f32}),                                                    \
   binary<PairTo8<F>, U16, float>},                                         \
      {Op::cvt,                                                             \
       {D, f16x2},                                                          \
       need(mod::rn | mod::satfinite) + may(mod::relu),                     \
       sig({D}, {f16x2}),                                                   \
       unary<HalvesTo8<F, F16>, U16, U32>},                                 \
      {Op::cvt,                                                             \
       {D, bf16x2},                                                         \
       need(mod::rn | mod::satfinite) + may(mod::relu),                     \
       sig({D}, {bf16x2}),                                                  \
       unary<HalvesTo8<F, BF16>, U16, U32>},                                \
  {                                                                         \
    Op::cvt, {f16x2, D}, need(mod::rn) + may(mod::relu), sig({f16x2}, {D}), \
        unary<Halves<F>, U32, U16>                                          \
  }
#define PACK(T, N, Signed)                                                    \
  {                                                                           \
    Op::cvt_pack, {T, s32, b32}, need(mod::sat), sig({b32}, {s32, s32, b32}), \
        ternary<PackSmall<N, Signed>, U32, S32, S32, U32>                     \
  }

constexpr Row kRows[] = {
    {Op::cvt, {f32, f16}, kNoFlags, sig({f32}, {f16}), unary<WidenF16, U32, U16>},
    {Op::cvt, {f32, bf16}, may(kRound), sig({f32}, {bf16}), unary<WidenBF16, U32, U16>},
    {Op::cvt, {f16, f32}, need(mod::rn), sig({f16}, {f32}), unary<NearestOf<F16>, U16, float>},
    {Op::cvt, {bf16, f32}, need(mod::rn), sig({bf16}, {f32}), unary<NearestOf<BF16>, U16, float>},
    CVT(f16, f16, may(kRoundInt | mod::sat), F16, F16),
    CVT(f16, bf16, may(kRound | mod::sat), F16, BF16),
    CVT(f16, f32, one_of(kRound) + may(mod::ftz | mod::sat | mod::satfinite | mod::relu), F16, F32),
    CVT(f16, f64, one_of(kRound) + may(mod::sat), F16, F64),
    CVT(bf16, f16, may(kRound), BF16, F16),
    CVT(bf16, bf16, may(kRoundInt), BF16, BF16),
    CVT(bf16, f32, one_of(kRound) + may(mod::ftz | mod::satfinite | mod::relu), BF16, F32),
    CVT(bf16, f64, one_of(kRound), BF16, F64),
    CVT(f32, f16, may(mod::sat | mod::ftz), F32, F16),
    CVT(f32, bf16, may(kRound | mod::ftz), F32, BF16),
    {Op::cvt, {f32, f32}, kNoFlags, same(f32, 1), unary<Same<U32>, U32>},
    {Op::cvt, {f64, f64}, kNoFlags, same(f64, 1), unary<Same<U64>, U64>},
    CVT(f32, f32, may(kRoundInt | mod::sat | mod::ftz), F32, F32),
    CVT(f32, f64, one_of(kRound) + may(mod::sat | mod::ftz), F32, F64),
    CVT(f64, f16, may(mod::sat), F64, F16),
    CVT(f64, bf16, may(kRound), F64, BF16),
    CVT(f64, f32, may(mod::sat | mod::ftz), F64, F32),
    CVT(f64, f64, may(kRoundInt | mod::sat), F64, F64),
    {Op::cvt,
     {tf32, f32},
     one_of(mod::rn | mod::rz) + may(mod::relu | mod::satfinite),
     sig({b32}, {f32}),
     unary<ToTf32, U32, float>},
    {Op::cvt,
     {tf32, f32},
     need(mod::rna) + may(mod::satfinite),
     sig({b32}, {f32}),
     unary<ToTf32Away, U32>},
    PAIR(f16x2, F16),
    PAIR(bf16x2, BF16),
    PAIR8(e4m3x2, E4M3),
    PAIR8(e5m2x2, E5M2),
    {Op::cvt_pack,
     {s16, s32},
     need(mod::sat),
     sig({b32}, {s32, s32}),
     binary<Pack16<true>, U32, S32>},
    {Op::cvt_pack,
     {u16, s32},
     need(mod::sat),
     sig({b32}, {s32, s32}),
     binary<Pack16<false>, U32, S32>},
    PACK(s8, 8, true),
    PACK(u8, 8, false),
    PACK(s4, 4, true),
    PACK(u4, 4, false),
    PACK(s2, 2, true),
    PACK(u2, 2, false),
};

}  // namespace

Rows cvt_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
