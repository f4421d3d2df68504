// min, max, abs, neg, copysign and testp of floating-point types: all on bit patterns.
#include "emu/scalar/level/floats.h"
#include "emu/scalar/level/tables.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Op;
using enum ptx::Type;

template <class U>
struct SignedOf;
template <>
struct SignedOf<U16> {
  using type = S16;
};
template <>
struct SignedOf<U32> {
  using type = S32;
};
template <>
struct SignedOf<U64> {
  using type = S64;
};

// Floats in the order of integers; -0 comes before +0.
template <class F>
LANE_INLINE auto order(typename F::Word x) {
  using S = typename SignedOf<typename F::Word>::type;
  return static_cast<S>(x & F::kSign ? x ^ F::kAbs : x);
}

// One NaN: the other operand. Two: canonical, except that f64 keeps a payload (min the second's,
// max the first's).
template <class F, bool Max, bool Flags>
LANE_INLINE typename F::Word pick(typename F::Word a, typename F::Word b, U64 imm) {
  using U = typename F::Word;
  U sign = 0;
  if (Flags) {
    if (imm & mod::ftz) {
      a = flush<F>(a);
      b = flush<F>(b);
    }
    if (imm & mod::xorsign) sign = static_cast<U>((a ^ b) & F::kSign);
    if (imm & mod::abs) {
      a &= F::kAbs;
      b &= F::kAbs;
    }
  }
  const bool an = is_nan<F>(a), bn = is_nan<F>(b);
  const bool first = (order<F>(a) < order<F>(b)) != Max;
  U r = first ? a : b;
  r = an ? b : bn ? a : r;
  r = static_cast<U>(r | sign);
  U both = sizeof(U) == 8 ? static_cast<U>((Max ? a : b) | F::kQuiet) : F::kNan;
  r = an & bn ? both : r;
  if (Flags) r = imm & mod::NaN && (an | bn) ? F::kNan : r;
  return r;
}
template <class F, bool Max, bool Flags>
struct Pick2 {
  using U = typename F::Word;
  LANE_INLINE static U run(U a, U b, U64 imm) { return pick<F, Max, Flags>(a, b, imm); }
};
template <class F, bool Max>
struct Pick3 {
  using U = typename F::Word;
  LANE_INLINE static U run(U a, U b, U c, U64 imm) {
    return pick<F, Max, true>(pick<F, Max, true>(a, b, imm), c, imm);
  }
};

// a with another sign; a NaN becomes canonical, in f64 it is a's own made quiet.
template <class F>
LANE_INLINE typename F::Word clean(typename F::Word a, typename F::Word r, U64 imm) {
  if (sizeof(r) == 8) return is_nan<F>(a) ? a | F::kQuiet : r;
  r = imm & mod::ftz ? flush<F>(r) : r;
  return is_nan<F>(r) ? F::kNan : r;
}
template <class F>
struct AbsOf {
  using U = typename F::Word;
  LANE_INLINE static U run(U a, U64 imm) { return clean<F>(a, static_cast<U>(a & F::kAbs), imm); }
};
template <class F>
struct NegOf {
  using U = typename F::Word;
  LANE_INLINE static U run(U a, U64 imm) { return clean<F>(a, static_cast<U>(a ^ F::kSign), imm); }
};
template <class F>
struct CopySign {  // b with the sign of a
  using U = typename F::Word;
  LANE_INLINE static U run(U a, U b, U64) { return (a & F::kSign) | (b & F::kAbs); }
};

enum TestKind : U16 { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };
template <class F>
void testp(RegisterView& v, const MicroOp& op, U32 mask) {
  using U = typename F::Word;
  const U* a = source<U>(v, op.operand[1]);
  const U32 kind = static_cast<U32>(op.imm >> 48);
  // A class is a range of magnitudes [low, high]; zero counts as normal.
  constexpr U kLow[] = {0, F::kInf, 0, F::kInf + 1, F::kMinNormal, 1};
  constexpr U kHigh[] = {F::kInf - 1, F::kInf, F::kInf, F::kAbs, F::kInf - 1, F::kMinNormal - 1};
  const U low = kLow[kind], high = kHigh[kind];
  const bool zero = kind == kNormal;
  alignas(64) U8 truth[32];
  for (int i = 0; i < 32; ++i) {
    U m = a[i] & F::kAbs;
    truth[i] = ((m >= low) & (m <= high)) | (zero & (m == 0));
  }
  write_predicate(v, op.operand[0], pack_truth(truth), mask);
}

constexpr ModSet kXorsign = mod::xorsign | mod::abs;
#define PICK(T, F, N, flags)                                                                       \
  {Op::min, T, kNoFlags, same(T, 2),                                                               \
   binary<Pick2<F, false, false>, F::Word, F::Word, F::Word, N>},                                  \
      {Op::max, T, kNoFlags, same(T, 2),                                                           \
       binary<Pick2<F, true, false>, F::Word, F::Word, F::Word, N>},                               \
      {Op::min, T, may(flags), same(T, 2),                                                         \
       binary<Pick2<F, false, true>, F::Word, F::Word, F::Word, N>},                               \
  {                                                                                                \
    Op::max, T, may(flags), same(T, 2), binary<Pick2<F, true, true>, F::Word, F::Word, F::Word, N> \
  }
#define SIGN(T, F, N, flags)                                                    \
  {Op::abs, T, may(flags), same(T, 1), unary<AbsOf<F>, F::Word, F::Word, N>}, { \
    Op::neg, T, may(flags), same(T, 1), unary<NegOf<F>, F::Word, F::Word, N>    \
  }
#define TESTP(T, F)                                                                   \
  {Op::copysign, T, kNoFlags, same(T, 2), binary<CopySign<F>, F::Word>},              \
      {Op::testp, T, need(mod::finite), sig({pred}, {T}), testp<F>, kFinite},         \
      {Op::testp, T, need(mod::infinite), sig({pred}, {T}), testp<F>, kInfinite},     \
      {Op::testp, T, need(mod::number), sig({pred}, {T}), testp<F>, kNumber},         \
      {Op::testp, T, need(mod::notanumber), sig({pred}, {T}), testp<F>, kNotANumber}, \
      {Op::testp, T, need(mod::normal), sig({pred}, {T}), testp<F>, kNormal}, {       \
    Op::testp, T, need(mod::subnormal), sig({pred}, {T}), testp<F>, kSubnormal        \
  }

constexpr Row kRows[] = {
    PICK(f32, F32, 32, mod::ftz | mod::NaN | kXorsign),
    PICK(f64, F64, 32, 0),
    PICK(f16, F16, 32, mod::ftz | mod::NaN | kXorsign),
    PICK(f16x2, F16, 64, mod::ftz | mod::NaN | kXorsign),
    PICK(bf16, BF16, 32, mod::NaN | kXorsign),
    PICK(bf16x2, BF16, 64, mod::NaN | kXorsign),
    {Op::min, f32, may(mod::ftz | mod::NaN | mod::abs), same(f32, 3),
     ternary<Pick3<F32, false>, U32>},
    {Op::max, f32, may(mod::ftz | mod::NaN | mod::abs), same(f32, 3),
     ternary<Pick3<F32, true>, U32>},
    SIGN(f32, F32, 32, mod::ftz),
    SIGN(f64, F64, 32, 0),
    SIGN(f16, F16, 32, mod::ftz),
    SIGN(f16x2, F16, 64, mod::ftz),
    SIGN(bf16, BF16, 32, 0),
    SIGN(bf16x2, BF16, 64, 0),
    TESTP(f32, F32),
    TESTP(f64, F64),
};

}  // namespace

Rows minmax_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
