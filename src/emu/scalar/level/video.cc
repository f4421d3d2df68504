// The byte-wise video instructions in their plain forms (no selectors, masks or secondary
// operation), and the saturating 32-bit ones.
#include "emu/scalar/level/lanes.h"
#include "emu/scalar/level/tables.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Op;
using enum ptx::Type;

struct Plus {
  LANE_INLINE static S64 run(S64 a, S64 b) { return a + b; }
};
struct Minus {
  LANE_INLINE static S64 run(S64 a, S64 b) { return a - b; }
};
struct Average {  // halves round away from zero
  LANE_INLINE static S64 run(S64 a, S64 b) {
    S64 s = a + b;
    return (s + (s >= 0 ? 1 : 0)) >> 1;
  }
};
struct Distance {
  LANE_INLINE static S64 run(S64 a, S64 b) { return a < b ? b - a : a - b; }
};
struct Least {
  LANE_INLINE static S64 run(S64 a, S64 b) { return a < b ? a : b; }
};
struct Most {
  LANE_INLINE static S64 run(S64 a, S64 b) { return a < b ? b : a; }
};

// All four bytes are written, so c's bytes never show.
template <class F, class Byte>
struct Quad {
  LANE_INLINE static U32 run(U32 a, U32 b, U32, U64 imm) {
    constexpr bool kSigned = Byte(-1) < Byte(0);
    constexpr S64 kMin = kSigned ? -128 : 0, kMax = kSigned ? 127 : 255;
    U32 d = 0;
    for (int k = 0; k < 32; k += 8) {
      S64 x = F::run(static_cast<Byte>(a >> k), static_cast<Byte>(b >> k));
      if (imm & mod::sat) x = x < kMin ? kMin : x > kMax ? kMax : x;
      d |= (static_cast<U32>(x) & 0xffu) << k;
    }
    return d;
  }
};
template <class F>
struct Word32 {
  LANE_INLINE static S32 run(S32 a, S32 b, U64) {
    S64 x = F::run(a, b);
    constexpr S64 kMin = -0x80000000ll, kMax = 0x7fffffff;
    return static_cast<S32>(x < kMin ? kMin : x > kMax ? kMax : x);
  }
};

#define QUAD(op, F)                                                                    \
  {Op::op, {u32, u32, u32}, may(mod::sat), same(u32, 3), ternary<Quad<F, U8>, U32>}, { \
    Op::op, {s32, s32, s32}, may(mod::sat), same(s32, 3), ternary<Quad<F, S8>, U32>    \
  }
#define WORD(op, F) \
  { Op::op, {s32, s32, s32}, need(mod::sat), same(s32, 2), binary<Word32<F>, S32> }

constexpr Row kRows[] = {
    QUAD(vadd4, Plus),        QUAD(vsub4, Minus), QUAD(vavrg4, Average), QUAD(vabsdiff4, Distance),
    QUAD(vmin4, Least),       QUAD(vmax4, Most),  WORD(vadd, Plus),      WORD(vsub, Minus),
    WORD(vabsdiff, Distance), WORD(vmin, Least),  WORD(vmax, Most),
};

}  // namespace

Rows video_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
