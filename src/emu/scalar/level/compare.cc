// setp and set.
#include "emu/scalar/level/floats.h"
#include "emu/scalar/level/tables.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Op;
using enum ptx::Type;

// ------------------------------------------------------------------ how a register's word is
// compared
template <class T>
struct Integer {
  using Word = T;
  LANE_INLINE static T value(T x, U64) { return x; }
};
template <class F>
struct Real {
  using Word = typename F::Word;
  LANE_INLINE static auto value(Word x, U64 imm) {
    return widen(F{}, imm & mod::ftz ? flush<F>(x) : x);
  }
};

template <Relation R, class T>
LANE_INLINE bool holds(T a, T b) {
  switch (R) {
    case kIsEqual:
      return a == b;
    case kIsLess:
      return a < b;
    case kIsLessEqual:
      return a <= b;
    case kIsLessGreater:
      return (a < b) | (a > b);
    case kIsOrdered:
      return (a == a) & (b == b);
  }
}

LANE_INLINE U32 combine(RegisterView& v, const MicroOp& op, U32 truth, int i) {
  U32 c = predicate(v, op, i);
  if (op.imm & mod::and_) return truth & c;
  if (op.imm & mod::or_) return truth | c;
  return truth ^ c;
}

// p = truth (op c), q = !truth (op c)
LANE_INLINE void conclude(RegisterView& v, const MicroOp& op, U32 truth, U32 mask) {
  const U32 extra = static_cast<U32>(op.imm >> 48);
  if (extra & kInverted) truth = ~truth;
  U32 other = ~truth;
  const int sources = extra & kHasSecond ? 2 : 1;
  if (extra & kHasCombine) {
    truth = combine(v, op, truth, sources + 2);
    other = combine(v, op, other, sources + 2);
  }
  write_predicate(v, op.operand[0], truth, mask);
  if (extra & kHasSecond) write_predicate(v, op.operand[1], other, mask);
}

template <class V, Relation R>
void setp(RegisterView& v, const MicroOp& op, U32 mask) {
  using W = typename V::Word;
  const U64 imm = op.imm;
  const int first = imm >> 48 & kHasSecond ? 2 : 1;
  const int swapped = imm >> 48 & kSwapped ? 1 : 0;
  const W* a = source<W>(v, op.operand[first + swapped]);
  const W* b = source<W>(v, op.operand[first + 1 - swapped]);
  alignas(64) U8 truth[32];
  for (int i = 0; i < 32; ++i) truth[i] = holds<R>(V::value(a[i], imm), V::value(b[i], imm));
  conclude(v, op, pack_truth(truth), mask);
}

// Packed operands compare halves: p is the low half's result, q the high half's. (Operands are
// never swapped here in effect differently from above; inversion applies to both.)
template <class F, Relation R>
void setp_packed(RegisterView& v, const MicroOp& op, U32 mask) {
  const U64 imm = op.imm;
  const U32 extra = static_cast<U32>(imm >> 48);
  const int swapped = extra & kSwapped ? 1 : 0;
  const U16* a = source<U16>(v, op.operand[2 + swapped]);
  const U16* b = source<U16>(v, op.operand[3 - swapped]);
  for (int half = 0; half < 2; ++half) {
    alignas(64) U8 truth[32];
    for (int i = 0; i < 32; ++i) {
      truth[i] =
          holds<R>(Real<F>::value(a[2 * i + half], imm), Real<F>::value(b[2 * i + half], imm));
    }
    U32 t = pack_truth(truth);
    if (extra & kInverted) t = ~t;
    if (extra & kHasCombine) t = combine(v, op, t, 4);
    write_predicate(v, op.operand[half], t, mask);
  }
}

// -------------------------------------------------------------------------------------------- set
template <class T>
LANE_INLINE bool related(T a, T b, U32 outcomes) {
  return ((a == b) & (outcomes & kEqual)) | ((a < b) & (outcomes >> 1 & 1)) |
         ((a > b) & (outcomes >> 2 & 1)) | (((a != a) | (b != b)) & (outcomes >> 3 & 1));
}

// Bits 4..5 of extra: what "true" is. 0: all ones, 1: 1.0f, 2: f16 1.0, 3: bf16 1.0.
template <class D>
LANE_INLINE D true_value(U32 extra) {
  constexpr U32 kTrue[4] = {0xffffffffu, 0x3f800000u, 0x3c00u, 0x3f80u};
  return static_cast<D>(kTrue[extra >> 4 & 3]);
}

template <class V, class D, int N = 32>
void set(RegisterView& v, const MicroOp& op, U32 mask) {
  using W = typename V::Word;
  const U64 imm = op.imm;
  const U32 extra = static_cast<U32>(imm >> 48);
  const W* a = source<W>(v, op.operand[1]);
  const W* b = source<W>(v, op.operand[2]);
  const D one = true_value<D>(extra);
  U32 c = 0;
  if (extra & kHasCombine) c = predicate(v, op, 3);
  alignas(64) D aside[N];
  for (int i = 0; i < N; ++i) {
    bool t = related(V::value(a[i], imm), V::value(b[i], imm), extra & 15);
    if (extra & kHasCombine) {
      bool other = (c >> (i * 32 / N)) & 1;
      t = imm & mod::and_ ? t & other : imm & mod::or_ ? t | other : t != other;
    }
    aside[i] = t ? one : D{0};
  }
  commit<N>(destination<D>(v, op.operand[0]), aside, mask);
}

constexpr ModSet kBool = mod::and_ | mod::or_ | mod::xor_;
constexpr ModSet kIntCompare = mod::eq | mod::ne | mod::lt | mod::le | mod::gt | mod::ge;
constexpr ModSet kUnsignedCompare = kIntCompare | mod::lo | mod::ls | mod::hi | mod::hs;
constexpr ModSet kRealCompare = kIntCompare | mod::equ | mod::neu | mod::ltu | mod::leu | mod::gtu |
                                mod::geu | mod::num | mod::nan;

#define SETP(T, V, R, compares, more)                                                     \
  {                                                                                       \
    Op::setp, T, one_of(compares) + may(kBool | more), sig({}, {T}), setp<V, R>, R, 0, 0, \
        Shape::setp                                                                       \
  }
#define SETP_INT(T, L, compares) \
  SETP(T, Integer<L>, kIsEqual, compares, 0), SETP(T, Integer<L>, kIsLess, compares, 0)
#define SETP_REAL(T, F, ftz)                                                                   \
  SETP(T, Real<F>, kIsEqual, kRealCompare, ftz), SETP(T, Real<F>, kIsLess, kRealCompare, ftz), \
      SETP(T, Real<F>, kIsLessEqual, kRealCompare, ftz),                                       \
      SETP(T, Real<F>, kIsLessGreater, kRealCompare, ftz),                                     \
      SETP(T, Real<F>, kIsOrdered, kRealCompare, ftz)
#define SETP_PACKED_ONE(T, F, R, ftz)                                                            \
  {                                                                                              \
    Op::setp, T, one_of(kRealCompare) + may(kBool | ftz), sig({}, {T}), setp_packed<F, R>, R, 0, \
        0, Shape::setp                                                                           \
  }
#define SETP_PACKED(T, F, ftz)                                                              \
  SETP_PACKED_ONE(T, F, kIsEqual, ftz), SETP_PACKED_ONE(T, F, kIsLess, ftz),                \
      SETP_PACKED_ONE(T, F, kIsLessEqual, ftz), SETP_PACKED_ONE(T, F, kIsLessGreater, ftz), \
      SETP_PACKED_ONE(T, F, kIsOrdered, ftz)

#define SET(D, T, V, L, N, one, compares, more)                                            \
  {                                                                                        \
    Op::set, {D, T}, one_of(compares) + may(kBool | more), sig({D}, {T, T}), set<V, L, N>, \
        one << 4, 0, 0, Shape::set                                                         \
  }
#define SET_ALL(T, V, compares, more)                                                          \
  SET(u32, T, V, U32, 32, 0, compares, more), SET(s32, T, V, U32, 32, 0, compares, more),      \
      SET(f32, T, V, U32, 32, 1, compares, more), SET(f16, T, V, U16, 32, 2, compares, more),  \
      SET(bf16, T, V, U16, 32, 3, compares, more), SET(u16, T, V, U16, 32, 0, compares, more), \
      SET(s16, T, V, U16, 32, 0, compares, more)

constexpr Row kRows[] = {
    SETP_INT(b16, U16, mod::eq | mod::ne),
    SETP_INT(b32, U32, mod::eq | mod::ne),
    SETP_INT(b64, U64, mod::eq | mod::ne),
    SETP_INT(u16, U16, kUnsignedCompare),
    SETP_INT(u32, U32, kUnsignedCompare),
    SETP_INT(u64, U64, kUnsignedCompare),
    SETP_INT(s16, S16, kIntCompare),
    SETP_INT(s32, S32, kIntCompare),
    SETP_INT(s64, S64, kIntCompare),
    SETP_REAL(f32, F32, mod::ftz),
    SETP_REAL(f64, F64, 0),
    SETP_REAL(f16, F16, mod::ftz),
    SETP_REAL(bf16, BF16, 0),
    SETP_PACKED(f16x2, F16, mod::ftz),
    SETP_PACKED(bf16x2, BF16, 0),
    SET_ALL(b16, Integer<U16>, mod::eq | mod::ne, 0),
    SET_ALL(b32, Integer<U32>, mod::eq | mod::ne, 0),
    SET_ALL(b64, Integer<U64>, mod::eq | mod::ne, 0),
    SET_ALL(u16, Integer<U16>, kUnsignedCompare, 0),
    SET_ALL(u32, Integer<U32>, kUnsignedCompare, 0),
    SET_ALL(u64, Integer<U64>, kUnsignedCompare, 0),
    SET_ALL(s16, Integer<S16>, kIntCompare, 0),
    SET_ALL(s32, Integer<S32>, kIntCompare, 0),
    SET_ALL(s64, Integer<S64>, kIntCompare, 0),
    SET_ALL(f32, Real<F32>, kRealCompare, mod::ftz),
    SET_ALL(f64, Real<F64>, kRealCompare, 0),
    SET_ALL(f16, Real<F16>, kRealCompare, mod::ftz),
    SET_ALL(bf16, Real<BF16>, kRealCompare, 0),
    SET(f16x2, f16x2, Real<F16>, U16, 64, 2, kRealCompare, mod::ftz),
    SET(u32, f16x2, Real<F16>, U16, 64, 0, kRealCompare, mod::ftz),
    SET(s32, f16x2, Real<F16>, U16, 64, 0, kRealCompare, mod::ftz),
    SET(bf16x2, bf16x2, Real<BF16>, U16, 64, 3, kRealCompare, 0),
    SET(u32, bf16x2, Real<BF16>, U16, 64, 0, kRealCompare, 0),
    SET(s32, bf16x2, Real<BF16>, U16, 64, 0, kRealCompare, 0),
};

}  // namespace

Rows compare_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
