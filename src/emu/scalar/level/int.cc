// Integer arithmetic: add, sub, mul, mad, div, rem, min, max, abs, neg, sad and their packed forms.
#include "emu/scalar/level/lanes.h"
#include "emu/scalar/level/tables.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Op;
using enum ptx::Type;

// Arithmetic wraps, so it is done on unsigned words; U16 would be promoted to int.
template <class T>
struct WideOf;
template <>
struct WideOf<U16> {
  using type = U32;
};
template <>
struct WideOf<S16> {
  using type = S32;
};
template <>
struct WideOf<U32> {
  using type = U64;
};
template <>
struct WideOf<S32> {
  using type = S64;
};
template <>
struct WideOf<U64> {
  using type = U128;
};
template <>
struct WideOf<S64> {
  using type = S128;
};
template <class T>
using Wide = typename WideOf<T>::type;

template <class T>
constexpr T kMost = static_cast<T>(T(-1) < T(0) ? (U64{1} << (8 * sizeof(T) - 1)) - 1 : ~U64{0});
template <class T>
constexpr T kLeast = static_cast<T>(~kMost<T>);

struct Add {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    return static_cast<T>(a + b);
  }
};
struct Sub {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    return static_cast<T>(a - b);
  }
};
LANE_INLINE S32 clamp32(S64 x) {
  return static_cast<S32>(x < -0x80000000ll ? -0x80000000ll : x > 0x7fffffff ? 0x7fffffff : x);
}
struct AddSat {
  LANE_INLINE static S32 run(S32 a, S32 b, U64) { return clamp32(S64{a} + b); }
};
struct SubSat {
  LANE_INLINE static S32 run(S32 a, S32 b, U64) { return clamp32(S64{a} - b); }
};
struct MulLo {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    return static_cast<T>(U64(a) * U64(b));
  }
  LANE_INLINE static U32 run(U32 a, U32 b, U64) { return a * b; }
};
template <class T>
LANE_INLINE T high(T a, T b) {
  return static_cast<T>((Wide<T>(a) * Wide<T>(b)) >> (8 * sizeof(T)));
}
struct MulHi {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    return high(a, b);
  }
};
template <class D>
struct MulWide {
  template <class T>
  LANE_INLINE static D run(T a, T b, U64) {
    return static_cast<D>(D(a) * D(b));
  }
};
struct MadLo {
  template <class T>
  LANE_INLINE static T run(T a, T b, T c, U64) {
    return static_cast<T>(U64(a) * U64(b) + c);
  }
  LANE_INLINE static U32 run(U32 a, U32 b, U32 c, U64) { return a * b + c; }
};
struct MadHi {
  template <class T>
  LANE_INLINE static T run(T a, T b, T c, U64) {
    return static_cast<T>(U64(high(a, b)) + U64(c));
  }
};
struct MadHiSat {
  LANE_INLINE static S32 run(S32 a, S32 b, S32 c, U64) { return clamp32(S64{high(a, b)} + c); }
};
template <class D>
struct MadWide {  // D unsigned, T may be signed
  template <class T>
  LANE_INLINE static D run(T a, T b, D c, U64) {
    return static_cast<D>(D(Wide<T>(a)) * D(Wide<T>(b)) + c);
  }
};

// 24-bit multiplication: the operands' low 24 bits (sign-extended for S32); .hi is bits 47..16.
template <class T>
LANE_INLINE Wide<T> product24(T a, T b) {
  using W = Wide<T>;
  return W(static_cast<T>(U32(a) << 8) >> 8) * W(static_cast<T>(U32(b) << 8) >> 8);
}
struct Mul24Lo {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    return static_cast<T>(product24(a, b));
  }
};
struct Mul24Hi {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    return static_cast<T>(product24(a, b) >> 16);
  }
};
struct Mad24Lo {
  template <class T>
  LANE_INLINE static T run(T a, T b, T c, U64) {
    return static_cast<T>(U64(product24(a, b)) + U64(c));
  }
};
struct Mad24Hi {
  template <class T>
  LANE_INLINE static T run(T a, T b, T c, U64) {
    return static_cast<T>(U64(product24(a, b) >> 16) + U64(c));
  }
};
struct Mad24HiSat {
  LANE_INLINE static S32 run(S32 a, S32 b, S32 c, U64) {
    return clamp32(S64{static_cast<S32>(product24(a, b) >> 16)} + c);
  }
};

// The quotient of two words of up to 32 bits, rounded to f64, never reaches the next integer.
template <class T>
LANE_INLINE T quotient(T a, T b) {
  S64 q = static_cast<S64>(static_cast<double>(a) / static_cast<double>(b == 0 ? T(1) : b));
  return b == 0 ? T(-1) : static_cast<T>(q);
}
LANE_INLINE U64 quotient(U64 a, U64 b) { return b == 0 ? ~U64{0} : a / b; }
LANE_INLINE S64 quotient(S64 a, S64 b) {
  return b == 0 ? -1 : b == -1 ? static_cast<S64>(-U64(a)) : a / b;
}
struct Div {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    return quotient(a, b);
  }
};
struct Rem {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    return b == 0 ? T(-1) : static_cast<T>(U64(a) - U64(quotient(a, b)) * U64(b));
  }
};

struct Min {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    return a < b ? b : a;
  }
};
template <class F>
struct Relu {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    T r = F::run(a, b, U64{0});
    return r < 0 ? T(0) : r;
  }
};
struct Abs {
  template <class T>
  LANE_INLINE static T run(T a, U64) {
    return static_cast<T>(a < 0 ? -U64(a) : U64(a));
  }
};
struct Neg {
  template <class T>
  LANE_INLINE static T run(T a, U64) {
    return static_cast<T>(-U64(a));
  }
};
struct Sad {
  template <class T>
  LANE_INLINE static T run(T a, T b, T c, U64) {
    return static_cast<T>(U64(c) + (a < b ? U64(b) - U64(a) : U64(a) - U64(b)));
  }
};

#define ROW2(op, T, flags, F) \
  { Op::op, T, flags, same(T, 2), binary<F, T##_lane> }
#define ROW3(op, T, flags, F) \
  { Op::op, T, flags, same(T, 3), ternary<F, T##_lane> }
using u16_lane = U16;
using s16_lane = S16;
using u32_lane = U32;
using s32_lane = S32;
using u64_lane = U64;
using s64_lane = S64;

// Additions, products' low halves and the like do not depend on signedness: signed types share
// handlers.
constexpr Row kRows[] = {
    {Op::add, u16, kNoFlags, same(u16, 2), binary<Add, U16>},
    {Op::add, s16, kNoFlags, same(s16, 2), binary<Add, U16>},
    {Op::add, u32, kNoFlags, same(u32, 2), binary<Add, U32>},
    {Op::add, s32, kNoFlags, same(s32, 2), binary<Add, U32>},
    {Op::add, s32, need(mod::sat), same(s32, 2), binary<AddSat, S32>},
    {Op::add, u64, kNoFlags, same(u64, 2), binary<Add, U64>},
    {Op::add, s64, kNoFlags, same(s64, 2), binary<Add, U64>},
    {Op::add, u16x2, kNoFlags, same(u16x2, 2), binary<Add, U16, U16, U16, 64>},
    {Op::add, s16x2, kNoFlags, same(s16x2, 2), binary<Add, U16, U16, U16, 64>},
    {Op::sub, u16, kNoFlags, same(u16, 2), binary<Sub, U16>},
    {Op::sub, s16, kNoFlags, same(s16, 2), binary<Sub, U16>},
    {Op::sub, u32, kNoFlags, same(u32, 2), binary<Sub, U32>},
    {Op::sub, s32, kNoFlags, same(s32, 2), binary<Sub, U32>},
    {Op::sub, s32, need(mod::sat), same(s32, 2), binary<SubSat, S32>},
    {Op::sub, u64, kNoFlags, same(u64, 2), binary<Sub, U64>},
    {Op::sub, s64, kNoFlags, same(s64, 2), binary<Sub, U64>},

    {Op::mul, u16, need(mod::lo), same(u16, 2), binary<MulLo, U16>},
    {Op::mul, s16, need(mod::lo), same(s16, 2), binary<MulLo, U16>},
    {Op::mul, u32, need(mod::lo), same(u32, 2), binary<MulLo, U32>},
    {Op::mul, s32, need(mod::lo), same(s32, 2), binary<MulLo, U32>},
    {Op::mul, u64, need(mod::lo), same(u64, 2), binary<MulLo, U64>},
    {Op::mul, s64, need(mod::lo), same(s64, 2), binary<MulLo, U64>},
    ROW2(mul, u16, need(mod::hi), MulHi),
    ROW2(mul, s16, need(mod::hi), MulHi),
    ROW2(mul, u32, need(mod::hi), MulHi),
    ROW2(mul, s32, need(mod::hi), MulHi),
    ROW2(mul, u64, need(mod::hi), MulHi),
    ROW2(mul, s64, need(mod::hi), MulHi),
    {Op::mul, u16, need(mod::wide), sig({u32}, {u16, u16}), binary<MulWide<U32>, U32, U16>},
    {Op::mul, s16, need(mod::wide), sig({s32}, {s16, s16}), binary<MulWide<S32>, S32, S16>},
    {Op::mul, u32, need(mod::wide), sig({u64}, {u32, u32}), binary<MulWide<U64>, U64, U32>},
    {Op::mul, s32, need(mod::wide), sig({s64}, {s32, s32}), binary<MulWide<S64>, S64, S32>},

    {Op::mad, u16, need(mod::lo), same(u16, 3), ternary<MadLo, U16>},
    {Op::mad, s16, need(mod::lo), same(s16, 3), ternary<MadLo, U16>},
    {Op::mad, u32, need(mod::lo), same(u32, 3), ternary<MadLo, U32>},
    {Op::mad, s32, need(mod::lo), same(s32, 3), ternary<MadLo, U32>},
    {Op::mad, u64, need(mod::lo), same(u64, 3), ternary<MadLo, U64>},
    {Op::mad, s64, need(mod::lo), same(s64, 3), ternary<MadLo, U64>},
    ROW3(mad, u16, need(mod::hi), MadHi),
    ROW3(mad, s16, need(mod::hi), MadHi),
    ROW3(mad, u32, need(mod::hi), MadHi),
    ROW3(mad, s32, need(mod::hi), MadHi),
    ROW3(mad, s32, need(mod::hi | mod::sat), MadHiSat),
    ROW3(mad, u64, need(mod::hi), MadHi),
    ROW3(mad, s64, need(mod::hi), MadHi),
    {Op::mad, u16, need(mod::wide), sig({u32}, {u16, u16, u32}),
     ternary<MadWide<U32>, U32, U16, U16, U32>},
    {Op::mad, s16, need(mod::wide), sig({s32}, {s16, s16, s32}),
     ternary<MadWide<U32>, U32, S16, S16, U32>},
    {Op::mad, u32, need(mod::wide), sig({u64}, {u32, u32, u64}),
     ternary<MadWide<U64>, U64, U32, U32, U64>},
    {Op::mad, s32, need(mod::wide), sig({s64}, {s32, s32, s64}),
     ternary<MadWide<U64>, U64, S32, S32, U64>},

    ROW2(mul24, u32, need(mod::lo), Mul24Lo),
    ROW2(mul24, s32, need(mod::lo), Mul24Lo),
    ROW2(mul24, u32, need(mod::hi), Mul24Hi),
    ROW2(mul24, s32, need(mod::hi), Mul24Hi),
    ROW3(mad24, u32, need(mod::lo), Mad24Lo),
    ROW3(mad24, s32, need(mod::lo), Mad24Lo),
    ROW3(mad24, u32, need(mod::hi), Mad24Hi),
    ROW3(mad24, s32, need(mod::hi), Mad24Hi),
    ROW3(mad24, s32, need(mod::hi | mod::sat), Mad24HiSat),

    ROW2(div, u16, kNoFlags, Div),
    ROW2(div, s16, kNoFlags, Div),
    ROW2(div, u32, kNoFlags, Div),
    ROW2(div, s32, kNoFlags, Div),
    ROW2(div, u64, kNoFlags, Div),
    ROW2(div, s64, kNoFlags, Div),
    ROW2(rem, u16, kNoFlags, Rem),
    ROW2(rem, s16, kNoFlags, Rem),
    ROW2(rem, u32, kNoFlags, Rem),
    ROW2(rem, s32, kNoFlags, Rem),
    ROW2(rem, u64, kNoFlags, Rem),
    ROW2(rem, s64, kNoFlags, Rem),

    ROW2(min, u16, kNoFlags, Min),
    ROW2(min, s16, kNoFlags, Min),
    ROW2(min, u32, kNoFlags, Min),
    ROW2(min, s32, kNoFlags, Min),
    ROW2(min, u64, kNoFlags, Min),
    ROW2(min, s64, kNoFlags, Min),
    ROW2(min, s32, need(mod::relu), Relu<Min>),
    {Op::min, u16x2, kNoFlags, same(u16x2, 2), binary<Min, U16, U16, U16, 64>},
    {Op::min, s16x2, kNoFlags, same(s16x2, 2), binary<Min, S16, S16, S16, 64>},
    {Op::min, s16x2, need(mod::relu), same(s16x2, 2), binary<Relu<Min>, S16, S16, S16, 64>},
    ROW2(max, u16, kNoFlags, Max),
    ROW2(max, s16, kNoFlags, Max),
    ROW2(max, u32, kNoFlags, Max),
    ROW2(max, s32, kNoFlags, Max),
    ROW2(max, u64, kNoFlags, Max),
    ROW2(max, s64, kNoFlags, Max),
    ROW2(max, s32, need(mod::relu), Relu<Max>),
    {Op::max, u16x2, kNoFlags, same(u16x2, 2), binary<Max, U16, U16, U16, 64>},
    {Op::max, s16x2, kNoFlags, same(s16x2, 2), binary<Max, S16, S16, S16, 64>},
    {Op::max, s16x2, need(mod::relu), same(s16x2, 2), binary<Relu<Max>, S16, S16, S16, 64>},

    {Op::abs, s16, kNoFlags, same(s16, 1), unary<Abs, S16>},
    {Op::abs, s32, kNoFlags, same(s32, 1), unary<Abs, S32>},
    {Op::abs, s64, kNoFlags, same(s64, 1), unary<Abs, S64>},
    {Op::neg, s16, kNoFlags, same(s16, 1), unary<Neg, U16>},
    {Op::neg, s32, kNoFlags, same(s32, 1), unary<Neg, U32>},
    {Op::neg, s64, kNoFlags, same(s64, 1), unary<Neg, U64>},

    ROW3(sad, u16, kNoFlags, Sad),
    ROW3(sad, s16, kNoFlags, Sad),
    ROW3(sad, u32, kNoFlags, Sad),
    ROW3(sad, s32, kNoFlags, Sad),
    ROW3(sad, u64, kNoFlags, Sad),
    ROW3(sad, s64, kNoFlags, Sad),
};

}  // namespace

Rows int_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
