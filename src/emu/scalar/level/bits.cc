// Logic, shifts, bit fields, counting and byte permutation.
#include "emu/scalar/level/lanes.h"
#include "emu/scalar/level/tables.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Op;
using enum ptx::Type;

template <class T>
constexpr U32 kBits = 8 * sizeof(T);

struct And {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    return a & b;
  }
};
struct Or {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  LANE_INLINE static T run(T a, T b, U64) {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  LANE_INLINE static T run(T a, U64) {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  LANE_INLINE static T run(T a, U64) {
    return a == 0;
  }
};

// ---------------------------------------------------------------------------------------- shifts
struct Shl {
  template <class T>
  LANE_INLINE static T run(T a, U32 n, U64) {
    return n >= kBits<T> ? T{0} : static_cast<T>(a << (n & (kBits<T> - 1)));
  }
};
struct Shr {  // arithmetic for signed T
  template <class T>
  LANE_INLINE static T run(T a, U32 n, U64) {
    const U32 last = kBits<T> - 1;
    if (T(-1) < T(0)) return static_cast<T>(a >> (n > last ? last : n));
    return n > last ? T{0} : static_cast<T>(a >> (n & last));
  }
};
LANE_INLINE U32 funnel_count(U32 n, U64 imm) { return imm & mod::wrap ? n & 31 : n > 32 ? 32 : n; }
struct FunnelLeft {  // the high word of {b, a} << n
  LANE_INLINE static U32 run(U32 a, U32 b, U32 n, U64 imm) {
    return static_cast<U32>(((U64{b} << 32 | a) << funnel_count(n, imm)) >> 32);
  }
};
struct FunnelRight {
  LANE_INLINE static U32 run(U32 a, U32 b, U32 n, U64 imm) {
    return static_cast<U32>((U64{b} << 32 | a) >> funnel_count(n, imm));
  }
};

// ------------------------------------------------------------------------------------------ lop3
LANE_INLINE U32 truth_table(U32 a, U32 b, U32 c, const U32 (&row)[8]) {
  U32 c00 = (row[0] & ~c) | (row[1] & c), c01 = (row[2] & ~c) | (row[3] & c);
  U32 c10 = (row[4] & ~c) | (row[5] & c), c11 = (row[6] & ~c) | (row[7] & c);
  return (((c00 & ~b) | (c01 & b)) & ~a) | (((c10 & ~b) | (c11 & b)) & a);
}
// d = table(a, b, c); with a predicate: p = (d != 0) op q. Leaves: d[, p], a, b, c, table[, q].
template <bool WithPredicate>
void lop3(RegisterView& v, const MicroOp& op, U32 mask) {
  constexpr int first = WithPredicate ? 2 : 1;
  const U32* a = source<U32>(v, op.operand[first]);
  const U32* b = source<U32>(v, op.operand[first + 1]);
  const U32* c = source<U32>(v, op.operand[first + 2]);
  const U32 table = static_cast<U32>(op.imm >> 48);
  U32 row[8];
  for (int k = 0; k < 8; ++k) row[k] = (table >> k) & 1 ? ~0u : 0u;
  alignas(64) U32 aside[32];
  U32* d = destination<U32>(v, op.operand[0]);
  U32* to = mask == kFull && !WithPredicate ? d : aside;
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) to[i] = truth_table(a[i], b[i], c[i], row);
  if (to == d) return;
  if (WithPredicate) {
    alignas(64) U8 truth[32];
    for (int i = 0; i < 32; ++i) truth[i] = aside[i] != 0;
    U32 q = predicate(v, op, first + 4), t = pack_truth(truth);
    t = op.imm & mod::and_ ? t & q : op.imm & mod::or_ ? t | q : t ^ q;
    write_predicate(v, op.operand[1], t, mask);
  }
  copy_lanes(d, aside, mask);
}

// ------------------------------------------------------------------------------------ bit fields
template <class U>
LANE_INLINE U ones(U32 n) {
  return n >= kBits<U> ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << n) - 1);
}
// Positions and lengths: the 32-bit instructions look at 8 bits, the 64-bit sequences at all.
template <class T>
LANE_INLINE U32 field_count(U32 n) {
  return sizeof(T) == 8 ? (n > 255 ? 255 : n) : n & 255;
}
// The field [pos, pos+len); bits at or above the width repeat the sign (bit min(pos+len-1, msb)) or
// are 0.
struct Bfe {
  template <class T>
  LANE_INLINE static T run(T a, U32 position, U32 length, U64) {
    using U = WordOf<T>;
    const U32 last = kBits<T> - 1;
    U32 pos = field_count<T>(position), len = field_count<T>(length);
    U u = static_cast<U>(a);
    U32 end = pos + len - 1 < last ? pos + len - 1 : last;
    bool negative = T(-1) < T(0) && len != 0 && ((u >> end) & 1) != 0;
    U shifted = pos > last ? U{0} : static_cast<U>(u >> pos);
    // Field bits that exist in a: from pos to the width's end.
    U32 real = pos > last ? 0 : (len < kBits<T> - pos ? len : kBits<T> - pos);
    U field = ones<U>(real);
    return static_cast<T>((shifted & field) | (negative ? static_cast<U>(~field) : U{0}));
  }
};
template <class T>
LANE_INLINE T insert_field(T a, T b, U32 position, U32 length) {
  U32 pos = field_count<T>(position), len = field_count<T>(length);
  if (pos >= kBits<T>) return b;
  T field = static_cast<T>(ones<T>(len) << pos);
  return static_cast<T>((b & ~field) | (static_cast<T>(a << pos) & field));
}
template <class T>
void bfi(RegisterView& v, const MicroOp& op, U32 mask) {
  const T* a = source<T>(v, op.operand[1]);
  const T* b = source<T>(v, op.operand[2]);
  const U32* position = source<U32>(v, op.operand[3]);
  const U32* length = source<U32>(v, op.operand[4]);
  alignas(64) T aside[32];
  for (int i = 0; i < 32; ++i) aside[i] = insert_field(a[i], b[i], position[i], length[i]);
  copy_lanes(destination<T>(v, op.operand[0]), aside, mask);
}
struct Szext {  // sign- or zero-extend the low n bits
  template <class T>
  LANE_INLINE static T run(T a, U32 n, U64 imm) {
    if (imm & mod::wrap) n &= 31;
    U32 u = static_cast<U32>(a), field = ones<U32>(n);
    bool negative = T(-1) < T(0) && n != 0 && ((u >> (n > 32 ? 31 : n - 1)) & 1) != 0;
    return static_cast<T>((u & field) | (negative ? ~field : 0u));
  }
};
struct Bmsk {
  LANE_INLINE static U32 run(U32 position, U32 length, U64 imm) {
    if (imm & mod::wrap) {
      position &= 31;
      length &= 31;
    }
    return position >= 32 ? 0u : ones<U32>(length) << position;
  }
};

// -------------------------------------------------------------------------------------- counting
LANE_INLINE U32 count(U32 x) { return static_cast<U32>(__builtin_popcount(x)); }
LANE_INLINE U32 count(U64 x) { return static_cast<U32>(__builtin_popcountll(x)); }
LANE_INLINE U32 leading(U32 x) { return x == 0 ? 32u : static_cast<U32>(__builtin_clz(x)); }
LANE_INLINE U32 leading(U64 x) { return x == 0 ? 64u : static_cast<U32>(__builtin_clzll(x)); }
struct Popc {
  template <class T>
  LANE_INLINE static U32 run(T a, U64) {
    return count(a);
  }
};
struct Clz {
  template <class T>
  LANE_INLINE static U32 run(T a, U64) {
    return leading(a);
  }
};
// The highest bit that differs from the sign (unsigned: the highest set bit); -1 if there is none.
template <bool ShiftAmount>
struct Bfind {
  template <class T>
  LANE_INLINE static U32 run(T a, U64) {
    using U = WordOf<T>;
    U u = static_cast<U>(T(-1) < T(0) && a < 0 ? ~a : a);
    if (u == 0) return ~0u;
    return ShiftAmount ? leading(u) : kBits<T> - 1 - leading(u);
  }
};
struct Brev {
  LANE_INLINE static U32 run(U32 x, U64) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
  }
  LANE_INLINE static U64 run(U64 x, U64) {
    return U64{run(static_cast<U32>(x), U64{0})} << 32 | run(static_cast<U32>(x >> 32), U64{0});
  }
};
// Position of the n-th set bit from `base` on (upward for n > 0, downward for n < 0; n = 0: base
// itself if set); -1 if there is none.
struct Fns {
  LANE_INLINE static U32 run(U32 bits, U32 base, S32 n, U64) {
    if (base > 31) return ~0u;
    if (n == 0) return (bits >> base) & 1 ? base : ~0u;
    const int step = n > 0 ? 1 : -1;
    S64 left = n > 0 ? S64{n} : -S64{n};
    for (int i = static_cast<int>(base); i >= 0 && i < 32; i += step) {
      left -= (bits >> i) & 1;
      if (left == 0) return static_cast<U32>(i);
    }
    return ~0u;
  }
};

// ------------------------------------------------------------------------------------------ prmt
LANE_INLINE U32 byte_of(U64 pool, U32 index) {
  return static_cast<U32>(pool >> (8 * (index & 7))) & 255;
}
struct Prmt {
  LANE_INLINE static U32 run(U32 a, U32 b, U32 selector, U64) {
    U64 pool = U64{b} << 32 | a;
    U32 d = 0;
    for (int k = 0; k < 4; ++k) {
      U32 s = selector >> (4 * k);
      U32 x = byte_of(pool, s);
      U32 sign = x & 0x80 ? 0xffu : 0u;
      d |= (s & 8 ? sign : x) << (8 * k);
    }
    return d;
  }
};
// The special modes take a two-bit selector; each is a table of byte indices, four nibbles per
// selector value.
constexpr U32 kPrmtF4e[4] = {0x3210, 0x4321, 0x5432, 0x6543};
constexpr U32 kPrmtB4e[4] = {0x5670, 0x6701, 0x7012, 0x0123};
constexpr U32 kPrmtRc8[4] = {0x0000, 0x1111, 0x2222, 0x3333};
constexpr U32 kPrmtEcl[4] = {0x3210, 0x3211, 0x3222, 0x3333};
constexpr U32 kPrmtEcr[4] = {0x0000, 0x1110, 0x2210, 0x3210};
constexpr U32 kPrmtRc16[4] = {0x1010, 0x3232, 0x1010, 0x3232};
template <const U32 (&Table)[4]>
struct PrmtMode {
  LANE_INLINE static U32 run(U32 a, U32 b, U32 selector, U64 imm) {
    return Prmt::run(a, b, Table[selector & 3], imm);
  }
};

// ------------------------------------------------------------------------------------- dot
// products
template <class A>
LANE_INLINE S64 byte_value(U32 x, int k) {
  return static_cast<A>(x >> (8 * k));
}
template <class A, class B>
struct Dp4a {
  LANE_INLINE static U32 run(U32 a, U32 b, U32 c, U64) {
    S64 s = 0;
    for (int k = 0; k < 4; ++k) s += byte_value<A>(a, k) * byte_value<B>(b, k);
    return c + static_cast<U32>(s);
  }
};
// Two halves of a times the low or high two bytes of b.
template <class A, class B, int First>
struct Dp2a {
  LANE_INLINE static U32 run(U32 a, U32 b, U32 c, U64) {
    S64 s = 0;
    for (int k = 0; k < 2; ++k) {
      s += S64{static_cast<A>(a >> (16 * k))} * byte_value<B>(b, First + k);
    }
    return c + static_cast<U32>(s);
  }
};

#define LOGIC(T, L)                                         \
  {Op::and_, T, kNoFlags, same(T, 2), binary<And, L>},      \
      {Op::or_, T, kNoFlags, same(T, 2), binary<Or, L>},    \
      {Op::xor_, T, kNoFlags, same(T, 2), binary<Xor, L>},  \
      {Op::not_, T, kNoFlags, same(T, 1), unary<Not, L>}, { \
    Op::cnot, T, kNoFlags, same(T, 1), unary<Cnot, L>       \
  }
#define SHIFT(op, T, F, L) \
  { Op::op, T, kNoFlags, sig({T}, {T, u32}), binary<F, L, L, U32> }
#define BFE(T, L) \
  { Op::bfe, T, kNoFlags, sig({T}, {T, u32, u32}), ternary<Bfe, L, L, U32, U32> }
#define BFIND(T, L)                                                                \
  {Op::bfind, T, kNoFlags, sig({u32}, {T}), unary<Bfind<false>, U32, L>}, {        \
    Op::bfind, T, need(mod::shiftamt), sig({u32}, {T}), unary<Bfind<true>, U32, L> \
  }
#define PRMT(mode, Table) \
  { Op::prmt, b32, need(mod::mode), same(b32, 3), ternary<PrmtMode<Table>, U32> }
#define DP(TA, TB, A8, B8, A16)                                                                  \
  {Op::dp4a, {TA, TB}, kNoFlags, sig({u32}, {TA, TB, u32}), ternary<Dp4a<A8, B8>, U32>},         \
      {Op::dp2a,                                                                                 \
       {TA, TB},                                                                                 \
       need(mod::lo),                                                                            \
       sig({u32}, {TA, TB, u32}),                                                                \
       ternary<Dp2a<A16, B8, 0>, U32>},                                                          \
  {                                                                                              \
    Op::dp2a, {TA, TB}, need(mod::hi), sig({u32}, {TA, TB, u32}), ternary<Dp2a<A16, B8, 2>, U32> \
  }

constexpr ModSet kClampWrap = mod::clamp | mod::wrap;
constexpr ModSet kBool = mod::and_ | mod::or_ | mod::xor_;

constexpr Row kRows[] = {
    LOGIC(b16, U16),
    LOGIC(b32, U32),
    LOGIC(b64, U64),
    {Op::lop3, b32, kNoFlags, sig({b32}, {b32, b32, b32, u32}), lop3<false>, 0, 0, 0, Shape::lop3},
    {Op::lop3, b32, one_of(kBool), sig({b32, pred}, {b32, b32, b32, u32, pred}), lop3<true>, 0, 0,
     0, Shape::lop3},

    SHIFT(shl, b16, Shl, U16),
    SHIFT(shl, b32, Shl, U32),
    SHIFT(shl, b64, Shl, U64),
    SHIFT(shr, b16, Shr, U16),
    SHIFT(shr, b32, Shr, U32),
    SHIFT(shr, b64, Shr, U64),
    SHIFT(shr, u16, Shr, U16),
    SHIFT(shr, u32, Shr, U32),
    SHIFT(shr, u64, Shr, U64),
    SHIFT(shr, s16, Shr, S16),
    SHIFT(shr, s32, Shr, S32),
    SHIFT(shr, s64, Shr, S64),
    {Op::shf, b32, need(mod::l) + one_of(kClampWrap), sig({b32}, {b32, b32, u32}),
     ternary<FunnelLeft, U32>},
    {Op::shf, b32, need(mod::r) + one_of(kClampWrap), sig({b32}, {b32, b32, u32}),
     ternary<FunnelRight, U32>},

    BFE(u32, U32),
    BFE(s32, S32),
    BFE(u64, U64),
    BFE(s64, S64),
    {Op::bfi, b32, kNoFlags, sig({b32}, {b32, b32, u32, u32}), bfi<U32>},
    {Op::bfi, b64, kNoFlags, sig({b64}, {b64, b64, u32, u32}), bfi<U64>},
    {Op::szext, u32, one_of(kClampWrap), sig({u32}, {u32, u32}), binary<Szext, U32>},
    {Op::szext, s32, one_of(kClampWrap), sig({s32}, {s32, u32}), binary<Szext, S32, S32, U32>},
    {Op::bmsk, b32, one_of(kClampWrap), sig({b32}, {u32, u32}), binary<Bmsk, U32>},

    {Op::popc, b32, kNoFlags, sig({u32}, {b32}), unary<Popc, U32>},
    {Op::popc, b64, kNoFlags, sig({u32}, {b64}), unary<Popc, U32, U64>},
    {Op::clz, b32, kNoFlags, sig({u32}, {b32}), unary<Clz, U32>},
    {Op::clz, b64, kNoFlags, sig({u32}, {b64}), unary<Clz, U32, U64>},
    BFIND(u32, U32),
    BFIND(s32, S32),
    BFIND(u64, U64),
    BFIND(s64, S64),
    {Op::brev, b32, kNoFlags, same(b32, 1), unary<Brev, U32>},
    {Op::brev, b64, kNoFlags, same(b64, 1), unary<Brev, U64>},
    {Op::fns, b32, kNoFlags, sig({b32}, {b32, u32, s32}), ternary<Fns, U32, U32, U32, S32>},

    {Op::prmt, b32, kNoFlags, same(b32, 3), ternary<Prmt, U32>},
    PRMT(f4e, kPrmtF4e),
    PRMT(b4e, kPrmtB4e),
    PRMT(rc8, kPrmtRc8),
    PRMT(ecl, kPrmtEcl),
    PRMT(ecr, kPrmtEcr),
    PRMT(rc16, kPrmtRc16),

    DP(u32, u32, U8, U8, U16),
    DP(u32, s32, U8, S8, U16),
    DP(s32, u32, S8, U8, S16),
    DP(s32, s32, S8, S8, S16),
};

}  // namespace

Rows bits_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
