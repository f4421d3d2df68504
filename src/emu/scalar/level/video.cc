// Video instructions: on words, halves or bytes of them, with a second operation or a merge with c.
// Rare in code for sm_80 and later, where the assembler replaces them by sequences; so one loop for
// all spellings of an opcode, which reads the form as it goes. Equal to recordings of those
// sequences (tests/data/hw, group forms).
#include "emu/scalar/level/video.h"

#include "emu/scalar/level/lanes.h"
#include "emu/scalar/video.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Op;
using Form = VideoForm;

LANE_INLINE S64 clamped(S64 x, S64 low, S64 high) { return x < low ? low : x > high ? high : x; }

// Within the range of an integer of so many bits.
LANE_INLINE S64 saturated(S64 x, int bits, bool is_signed) {
  return is_signed ? clamped(x, -(S64{1} << (bits - 1)), (S64{1} << (bits - 1)) - 1)
                   : clamped(x, 0, (S64{1} << bits) - 1);
}

// The low bits of x as a number.
LANE_INLINE S64 extended(U64 x, int bits, bool is_signed) {
  const U64 high = U64{1} << (bits - 1), low = x & (2 * high - 1);
  return is_signed ? static_cast<S64>((low ^ high) - high) : static_cast<S64>(low);
}

LANE_INLINE bool holds(S64 a, S64 b, U8 outcomes) {
  return (outcomes & (a == b ? 1 : a < b ? 2 : 4)) != 0;
}

// What the instruction is named after, on numbers of up to 33 bits.
struct Plus {
  LANE_INLINE static S64 run(S64 a, S64 b, const Form&) { return a + b; }
};
struct Minus {
  LANE_INLINE static S64 run(S64 a, S64 b, const Form&) { return a - b; }
};
struct Average {  // halves round away from zero
  LANE_INLINE static S64 run(S64 a, S64 b, const Form&) {
    const S64 s = a + b;
    return (s + (s >= 0 ? 1 : 0)) >> 1;
  }
};
struct Distance {
  LANE_INLINE static S64 run(S64 a, S64 b, const Form&) { return a < b ? b - a : a - b; }
};
struct Least {
  LANE_INLINE static S64 run(S64 a, S64 b, const Form&) { return a < b ? a : b; }
};
struct Most {
  LANE_INLINE static S64 run(S64 a, S64 b, const Form&) { return a < b ? b : a; }
};
struct Truth {
  LANE_INLINE static S64 run(S64 a, S64 b, const Form& f) { return holds(a, b, f.outcomes); }
};
LANE_INLINE int shift_count(S64 b, const Form& f) {
  return static_cast<int>(f.wrap ? b & 31 : b > 32 ? 32 : b);
}
struct Left {
  LANE_INLINE static S64 run(S64 a, S64 b, const Form& f) {
    return static_cast<S64>(static_cast<U64>(a) << shift_count(b, f));
  }
};
struct Right {
  LANE_INLINE static S64 run(S64 a, S64 b, const Form& f) { return a >> shift_count(b, f); }
};

// Which bits of a word a scalar selector names.
struct Part {
  int at, bits;
};
LANE_INLINE Part part(int selector) {
  return selector == 0  ? Part{0, 32}
         : selector < 5 ? Part{8 * (selector - 1), 8}
                        : Part{16 * (selector - 5), 16};
}

template <class F>
struct Scalar {
  LANE_INLINE static U32 run(U32 a, U32 b, U32 c, const Form& f) {
    const Part pa = part(f.a_part), pb = part(f.b_part), pd = part(f.d_part);
    S64 x = F::run(extended(a >> pa.at, pa.bits, f.a_signed),
                   extended(b >> pb.at, pb.bits, f.b_signed), f);
    if (f.saturate) x = saturated(x, pd.bits, f.d_signed);
    if (f.merge) {
      const U32 all = pd.bits == 32 ? ~0u : ((1u << pd.bits) - 1) << pd.at;
      return (static_cast<U32>(x) << pd.at & all) | (c & ~all);
    }
    const S64 word = extended(static_cast<U64>(x), 32, f.d_signed),
              other = extended(c, 32, f.d_signed);
    switch (f.second) {
      case VideoSecond::add:
        return static_cast<U32>(x) + c;
      case VideoSecond::min:
        return static_cast<U32>(word < other ? word : other);
      case VideoSecond::max:
        return static_cast<U32>(word < other ? other : word);
      case VideoSecond::none:
        break;
    }
    return static_cast<U32>(x);
  }
};

template <class F, int kLanes>
struct Simd {
  LANE_INLINE static U32 run(U32 a, U32 b, U32 c, const Form& f) {
    constexpr int kBits = 32 / kLanes;
    constexpr U32 kOnes = (1u << kBits) - 1;
    const U64 both = a | U64{b} << 32;
    U32 merged = c, sum = c;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!(f.d_part >> lane & 1)) continue;
      const int pa = f.a_part >> (3 * lane) & 7, pb = f.b_part >> (3 * lane) & 7;
      S64 x = F::run(extended(both >> (kBits * pa), kBits, f.a_signed),
                     extended(both >> (kBits * pb), kBits, f.b_signed), f);
      if (f.saturate) x = saturated(x, kBits, f.d_signed);
      merged = (merged & ~(kOnes << (kBits * lane))) | (static_cast<U32>(x) & kOnes)
                                                           << (kBits * lane);
      sum += static_cast<U32>(x);
    }
    return f.second == VideoSecond::add ? sum : merged;
  }
};

struct MultiplyAdd {
  LANE_INLINE static U32 run(U32 a, U32 b, U32 c, const Form& f) {
    const Part pa = part(f.a_part), pb = part(f.b_part);
    const bool minus = f.negate_a != f.negate_b;
    const bool is_signed = f.a_signed || f.b_signed || minus || f.negate_c;
    S128 x = static_cast<S128>(extended(a >> pa.at, pa.bits, f.a_signed)) *
             extended(b >> pb.at, pb.bits, f.b_signed);
    S128 addend = extended(c, 32, is_signed);
    if (minus) x = -x;
    if (f.negate_c) addend = -addend;
    x = (x + addend + f.plus_one) >> f.shift;
    if (f.saturate) {
      const S128 low = is_signed ? -(S128{1} << 31) : 0;
      const S128 high = is_signed ? (S128{1} << 31) - 1 : (S128{1} << 32) - 1;
      x = x < low ? low : x > high ? high : x;
    }
    return static_cast<U32>(x);
  }
};

template <class F, bool kHasC>
void walk(RegisterView& v, const MicroOp& op, U32 mask) {
  U32* d = destination<U32>(v, op.operand[0]);
  const U32* a = source<U32>(v, op.operand[1]);
  const U32* b = source<U32>(v, op.operand[2]);
  const U32* c = kHasC ? source<U32>(v, op.operand[3]) : a;
  const Form f = Form::unpack(op.imm);
  alignas(64) U32 aside[32];
  for (int i = 0; i < 32; ++i) aside[i] = F::run(a[i], b[i], kHasC ? c[i] : 0, f);
  commit<32>(d, aside, mask);
}

template <class F>
Handler with(int sources) {
  return sources == 3 ? walk<F, true> : walk<F, false>;
}

}  // namespace

Handler video(Op op, int sources) {
  switch (op) {
#define FORM(name, ...) \
  case Op::name:        \
    return with<__VA_ARGS__>(sources);
#define SIMD(name, F) FORM(name##2, Simd<F, 2>) FORM(name##4, Simd<F, 4>)
#define ALL(name, F) FORM(name, Scalar<F>) SIMD(name, F)
    ALL(vadd, Plus)
    ALL(vsub, Minus)
    ALL(vabsdiff, Distance)
    ALL(vmin, Least)
    ALL(vmax, Most)
    ALL(vset, Truth)
    SIMD(vavrg, Average)
    FORM(vshl, Scalar<Left>)
    FORM(vshr, Scalar<Right>)
    FORM(vmad, MultiplyAdd)
    default:
      return nullptr;
  }
}

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
