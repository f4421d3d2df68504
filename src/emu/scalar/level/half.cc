// f16 and bf16 arithmetic, single and packed.
#include "emu/scalar/level/floats.h"
#include "emu/scalar/level/tables.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Op;
using enum ptx::Type;

// f32 rounded to odd, for sums that f64 is not needed for: no overflow, no subnormals.
LANE_INLINE float add_odd32(float a, float b) {
  float s = a + b, t = s - a;
  float error = (a - (s - t)) + (b - t);
  U32 bits = bits_as<U32>(s);
  bool inexact = (error < 0) | (error > 0);
  U32 step = (error > 0) == (s > 0) ? 1u : ~0u;
  return bits_as<float>(inexact && (bits & 1) == 0 ? bits + step : bits);
}

// ----------------------------------------------------------------------------- without modifiers
// Sums, differences and products of f16 are innocuously rounded twice (24 >= 2*11+2 bits); so are
// sums of bf16. A product of bf16 may leave f32's normal range, so it goes through f64.
template <class F>
struct AddHalf {
  LANE_INLINE static U16 run(U16 a, U16 b, U64) {
    return nearest(F{}, widen(F{}, a) + widen(F{}, b));
  }
};
template <class F>
struct SubHalf {
  LANE_INLINE static U16 run(U16 a, U16 b, U64) {
    return nearest(F{}, widen(F{}, a) - widen(F{}, b));
  }
};
LANE_INLINE float product(F16, U16 a, U16 b) { return widen(F16{}, a) * widen(F16{}, b); }
LANE_INLINE float product(BF16, U16 a, U16 b) {
  return odd32(static_cast<double>(widen(BF16{}, a)) * widen(BF16{}, b));
}
template <class F>
struct MulHalf {
  LANE_INLINE static U16 run(U16 a, U16 b, U64) { return nearest(F{}, product(F{}, a, b)); }
};
LANE_INLINE float fused(U16 a, U16 b, U16 c) {
  return add_odd32(product(F16{}, a, b), widen(F16{}, c));
}
struct FmaF16 {
  LANE_INLINE static U16 run(U16 a, U16 b, U16 c, U64) { return nearest(F16{}, fused(a, b, c)); }
};
LANE_INLINE U16 exact_fma(BF16, U16 a, U16 b, U16 c) {
  const double p = static_cast<double>(widen(BF16{}, a)) * widen(BF16{}, b);
  return narrow<BF16>(add_odd(p, widen(BF16{}, c)), kRn);
}
// The product of two bf16 is exact in f32 unless it is near the ends of f32's range; such lanes are
// rare, and when there is one the warp's lanes are computed in f64.
template <int N>
void fma_bf16(RegisterView& v, const MicroOp& op, U32 mask) {
  const U16* a = source<U16>(v, op.operand[1]);
  const U16* b = source<U16>(v, op.operand[2]);
  const U16* c = source<U16>(v, op.operand[3]);
  alignas(64) U16 aside[N];
  U32 doubtful = 0;
  for (int i = 0; i < N; ++i) {
    const float x = widen(BF16{}, a[i]), y = widen(BF16{}, b[i]), z = widen(BF16{}, c[i]);
    const float p = x * y;
    const U32 m = bits_as<U32>(p) & 0x7fffffffu, n = bits_as<U32>(z) & 0x7fffffffu;
    const bool zero = (x == 0) | (y == 0);
    doubtful |= ((m < 0x0d800000u) & !zero) | (m >= 0x7e800000u) | (n >= 0x7e800000u);
    aside[i] = nearest(BF16{}, add_odd32(p, z));
  }
  if (doubtful) {
    for (int i = 0; i < N; ++i) aside[i] = exact_fma(BF16{}, a[i], b[i], c[i]);
  }
  commit<N>(destination<U16>(v, op.operand[0]), aside, mask);
}

// -------------------------------------------------------------------------------- with modifiers
template <class F>
LANE_INLINE double in(U16 x, U64 imm) {
  return widen(F{}, imm & mod::ftz ? flush<F>(x) : x);
}
template <class F>
LANE_INLINE U16 finish(double x, U64 imm) {
  if (imm & mod::sat) {
    x = x > 0 ? x : 0.0;
    x = x < 1 ? x : 1.0;
  }
  if (imm & mod::relu) x = x <= 0 ? 0.0 : x;
  return narrow_ftz<F>(x, imm & ~(mod::rz | mod::rm | mod::rp));
}
template <class F>
struct AddFlagged {
  LANE_INLINE static U16 run(U16 a, U16 b, U64 imm) {
    return finish<F>(add_odd(in<F>(a, imm), in<F>(b, imm)), imm);
  }
};
template <class F>
struct SubFlagged {
  LANE_INLINE static U16 run(U16 a, U16 b, U64 imm) {
    return finish<F>(add_odd(in<F>(a, imm), -in<F>(b, imm)), imm);
  }
};
template <class F>
struct MulFlagged {
  LANE_INLINE static U16 run(U16 a, U16 b, U64 imm) {
    return finish<F>(in<F>(a, imm) * in<F>(b, imm), imm);
  }
};
template <class F>
struct FmaFlagged {
  LANE_INLINE static U16 run(U16 a, U16 b, U16 c, U64 imm) {
    U16 r = finish<F>(add_odd(in<F>(a, imm) * in<F>(b, imm), in<F>(c, imm)), imm);
    // The pattern with which tensor copies fill what lies out of bounds.
    constexpr U16 kOutOfBounds = 0x7ff7;
    bool oob = (imm & mod::oob) && ((a == kOutOfBounds) | (b == kOutOfBounds));
    return oob ? U16{0} : r;
  }
};

constexpr Flags kPlain = may(mod::rn);
constexpr Flags kFlagged = may(mod::rn | mod::ftz | mod::sat);
constexpr Flags kFmaF16 = need(mod::rn) + may(mod::ftz | mod::sat | mod::relu | mod::oob);
constexpr Flags kFmaBf16 = need(mod::rn) + may(mod::relu | mod::oob);

#define TWO(op, T, F, N, flags, Functor) \
  { Op::op, T, flags, same(T, 2), binary<Functor<F>, U16, U16, U16, N> }
#define THREE(op, T, F, N, flags, Functor) \
  { Op::op, T, flags, same(T, 3), ternary<Functor<F>, U16, U16, U16, U16, N> }
#define ARITHMETIC(T, F, N)                                               \
  TWO(add, T, F, N, kPlain, AddHalf), TWO(sub, T, F, N, kPlain, SubHalf), \
      TWO(mul, T, F, N, kPlain, MulHalf)
#define FLAGGED(T, F, N)                                                            \
  TWO(add, T, F, N, kFlagged, AddFlagged), TWO(sub, T, F, N, kFlagged, SubFlagged), \
      TWO(mul, T, F, N, kFlagged, MulFlagged), THREE(fma, T, F, N, kFmaF16, FmaFlagged)

constexpr Row kRows[] = {
    ARITHMETIC(f16, F16, 32),
    ARITHMETIC(f16x2, F16, 64),
    ARITHMETIC(bf16, BF16, 32),
    ARITHMETIC(bf16x2, BF16, 64),
    {Op::fma, f16, need(mod::rn), same(f16, 3), ternary<FmaF16, U16>},
    {Op::fma, f16x2, need(mod::rn), same(f16x2, 3), ternary<FmaF16, U16, U16, U16, U16, 64>},
    {Op::fma, bf16, need(mod::rn), same(bf16, 3), fma_bf16<32>},
    {Op::fma, bf16x2, need(mod::rn), same(bf16x2, 3), fma_bf16<64>},
    FLAGGED(f16, F16, 32),
    FLAGGED(f16x2, F16, 64),
    THREE(fma, bf16, BF16, 32, kFmaBf16, FmaFlagged),
    THREE(fma, bf16x2, BF16, 64, kFmaBf16, FmaFlagged),
};

}  // namespace

Rows half_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
