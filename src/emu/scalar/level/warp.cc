// Operations across the lanes of a warp. `mask` holds the lanes that have met; each lane names its
// partners in a member mask, and lanes of one instruction may form several groups (two half-warps,
// say).
#include "emu/scalar/level/floats.h"
#include "emu/scalar/level/tables.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Op;
using enum ptx::Type;

LANE_INLINE bool has_second(const MicroOp& op) { return (op.imm >> 48 & kHasSecond) != 0; }

// Calls f(group) once for every group of lanes that name the same members.
template <class F>
LANE_INLINE void for_each_group(const U32* members, U32 mask, F&& f) {
  while (mask) {
    const int leader = __builtin_ctz(mask);
    const U32 named = members[leader] & mask;
    U32 group = 1u << leader;
    for (int i = leader + 1; i < 32; ++i) {
      group |= static_cast<U32>(members[i] == members[leader]) << i & named;
    }
    f(group);
    mask &= ~group;
  }
}
template <class T>
LANE_INLINE void spread(T* d, T value, U32 group) {
  for (int i = 0; i < 32; ++i) d[i] = (group >> i) & 1 ? value : d[i];
}

// ------------------------------------------------------------------------------------------ shfl
// Leaves d[, p], a, b, c, members. c: bits 0..4 clamp, bits 8..12 segment mask. A lane whose source
// lies outside its segment keeps its own value, p is false. (A source lane that takes no part is
// undefined in the ISA; here its register's value is read.)
enum ShuffleMode { kUp, kDown, kButterfly, kIndex };
template <ShuffleMode Mode>
void shfl(RegisterView& v, const MicroOp& op, U32 mask) {
  const int first = has_second(op) ? 2 : 1;
  const U32* a = source<U32>(v, op.operand[first]);
  const U32* b = source<U32>(v, op.operand[first + 1]);
  const U32* c = source<U32>(v, op.operand[first + 2]);
  alignas(64) U32 from[32];
  alignas(64) U32 aside[32];
  alignas(64) U8 truth[32];
  for (int i = 0; i < 32; ++i) {
    const int lane = i, offset = static_cast<int>(b[i] & 31), clamp = static_cast<int>(c[i] & 31);
    const int segment = static_cast<int>(c[i] >> 8 & 31);
    const int low = lane & segment, high = low | (clamp & ~segment);
    int j = Mode == kUp          ? lane - offset
            : Mode == kDown      ? lane + offset
            : Mode == kButterfly ? lane ^ offset
                                 : low | (offset & ~segment);
    bool inside = Mode == kUp ? j >= high : j <= high;
    from[i] = static_cast<U32>(inside ? j : lane);
    truth[i] = inside;
  }
  for (int i = 0; i < 32; ++i) aside[i] = a[from[i] & 31];
  copy_lanes(destination<U32>(v, op.operand[0]), aside, mask);
  if (first == 2) write_predicate(v, op.operand[1], pack_truth(truth), mask);
}

// ------------------------------------------------------------------------------------------ vote
enum VoteMode { kAll, kAny, kUni };
template <VoteMode Mode>
void vote(RegisterView& v, const MicroOp& op, U32 mask) {
  const U32 a = predicate(v, op, 1);
  U32 result = 0;
  for_each_group(source<U32>(v, op.operand[2]), mask, [&](U32 group) {
    const U32 yes = a & group;
    bool t = Mode == kAny ? yes != 0 : Mode == kAll ? yes == group : yes == group || yes == 0;
    result |= t ? group : 0;
  });
  write_predicate(v, op.operand[0], result, mask);
}
void ballot(RegisterView& v, const MicroOp& op, U32 mask) {
  const U32 a = predicate(v, op, 1);
  alignas(64) U32 aside[32] = {};
  for_each_group(source<U32>(v, op.operand[2]), mask,
                 [&](U32 group) { spread(aside, a & group, group); });
  copy_lanes(destination<U32>(v, op.operand[0]), aside, mask);
}
void activemask(RegisterView& v, const MicroOp& op, U32 mask) {
  spread(destination<U32>(v, op.operand[0]), mask, mask);
}

// Leaves d, p, members: the lowest lane of each group is elected.
void elect(RegisterView& v, const MicroOp& op, U32 mask) {
  alignas(64) U32 aside[32] = {};
  U32 leaders = 0;
  for_each_group(source<U32>(v, op.operand[2]), mask, [&](U32 group) {
    const U32 leader = static_cast<U32>(__builtin_ctz(group));
    leaders |= 1u << leader;
    spread(aside, leader, group);
  });
  copy_lanes(destination<U32>(v, op.operand[0]), aside, mask);
  write_predicate(v, op.operand[1], leaders, mask);
}

// ----------------------------------------------------------------------------------------- match
template <class T>
LANE_INLINE U32 equal_lanes(const T* a, T value) {
  alignas(64) U8 truth[32];
  for (int i = 0; i < 32; ++i) truth[i] = a[i] == value;
  return pack_truth(truth);
}
template <class T>
void match_any(RegisterView& v, const MicroOp& op, U32 mask) {
  const T* a = source<T>(v, op.operand[1]);
  alignas(64) U32 aside[32] = {};
  for_each_group(source<U32>(v, op.operand[2]), mask, [&](U32 group) {
    for (U32 left = group; left;) {
      const U32 same_value = equal_lanes(a, a[__builtin_ctz(left)]) & group;
      spread(aside, same_value, same_value);
      left &= ~same_value;
    }
  });
  copy_lanes(destination<U32>(v, op.operand[0]), aside, mask);
}
template <class T>
void match_all(RegisterView& v, const MicroOp& op, U32 mask) {
  const int first = has_second(op) ? 2 : 1;
  const T* a = source<T>(v, op.operand[first]);
  alignas(64) U32 aside[32] = {};
  U32 all = 0;
  for_each_group(source<U32>(v, op.operand[first + 1]), mask, [&](U32 group) {
    if ((equal_lanes(a, a[__builtin_ctz(group)]) & group) != group) return;
    spread(aside, group, group);
    all |= group;
  });
  copy_lanes(destination<U32>(v, op.operand[0]), aside, mask);
  if (first == 2) write_predicate(v, op.operand[1], all, mask);
}

// ----------------------------------------------------------------------------------------- redux
struct Sum {
  template <class T>
  LANE_INLINE static T run(T a, T b) {
    return a + b;
  }
};
struct Least {
  template <class T>
  LANE_INLINE static T run(T a, T b) {
    return b < a ? b : a;
  }
};
struct Most {
  template <class T>
  LANE_INLINE static T run(T a, T b) {
    return a < b ? b : a;
  }
};
struct Both {
  template <class T>
  LANE_INLINE static T run(T a, T b) {
    return a & b;
  }
};
struct Either {
  template <class T>
  LANE_INLINE static T run(T a, T b) {
    return a | b;
  }
};
struct Odd {
  template <class T>
  LANE_INLINE static T run(T a, T b) {
    return a ^ b;
  }
};
template <class F, class T>
void redux(RegisterView& v, const MicroOp& op, U32 mask) {
  const T* a = source<T>(v, op.operand[1]);
  alignas(64) T aside[32] = {};
  for_each_group(source<U32>(v, op.operand[2]), mask, [&](U32 group) {
    T r = a[__builtin_ctz(group)];
    for (U32 left = group & (group - 1); left; left &= left - 1)
      r = F::run(r, a[__builtin_ctz(left)]);
    spread(aside, r, group);
  });
  copy_lanes(destination<T>(v, op.operand[0]), aside, mask);
}

constexpr Flags kSync = may(mod::sync | mod::aligned);
#define SHFL(mode, Mode)                                                                          \
  {                                                                                               \
    Op::shfl_sync, b32, kSync + need(mod::mode), sig({b32}, {b32, u32, u32, u32}), shfl<Mode>, 0, \
        0, 0, Shape::optional_predicate                                                           \
  }
#define VOTE(mode, Mode) \
  { Op::vote_sync, pred, kSync + need(mod::mode), sig({pred}, {pred, u32}), vote<Mode> }
#define MATCH(T, L)                                                                         \
  {Op::match_sync, T, kSync + need(mod::any), sig({b32}, {T, u32}), match_any<L>}, {        \
    Op::match_sync, T, kSync + need(mod::all), sig({b32}, {T, u32}), match_all<L>, 0, 0, 0, \
        Shape::optional_predicate                                                           \
  }
#define REDUX(op, T, F, L) \
  { Op::redux_sync, T, kSync + need(mod::op), sig({T}, {T, u32}), redux<F, L> }

constexpr Row kRows[] = {
    SHFL(up, kUp),
    SHFL(down, kDown),
    SHFL(bfly, kButterfly),
    SHFL(idx, kIndex),
    VOTE(all, kAll),
    VOTE(any, kAny),
    VOTE(uni, kUni),
    {Op::vote_sync, b32, kSync + need(mod::ballot), sig({b32}, {pred, u32}), ballot},
    {Op::activemask, b32, kNoFlags, sig({b32}, {}), activemask},
    {Op::elect_sync, Types(), kSync, sig({b32, pred}, {u32}), elect},
    MATCH(b32, U32),
    MATCH(b64, U64),
    REDUX(add, u32, Sum, U32),
    REDUX(min, u32, Least, U32),
    REDUX(max, u32, Most, U32),
    REDUX(add, s32, Sum, U32),
    REDUX(min, s32, Least, S32),
    REDUX(max, s32, Most, S32),
    REDUX(and_, b32, Both, U32),
    REDUX(or_, b32, Either, U32),
    REDUX(xor_, b32, Odd, U32),
};

}  // namespace

Rows warp_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
