// selp, slct, mov in all shapes, and logic on predicates.
#include "emu/scalar/level/floats.h"
#include "emu/scalar/level/tables.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Op;
using enum ptx::Type;

template <class T>
void selp(RegisterView& v, const MicroOp& op, U32 mask) {
  T* d = destination<T>(v, op.operand[0]);
  const T* a = source<T>(v, op.operand[1]);
  const T* b = source<T>(v, op.operand[2]);
  const U32 c = predicate(v, op, 3);
  alignas(64) T aside[32];
  T* to = mask == kFull ? d : aside;
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) to[i] = (c >> i) & 1 ? a[i] : b[i];
  if (to != d) copy_lanes(d, aside, mask);
}

struct ByInteger {
  template <class T>
  LANE_INLINE static T run(T a, T b, S32 c, U64) {
    return c >= 0 ? a : b;
  }
};
struct ByFloat {
  template <class T>
  LANE_INLINE static T run(T a, T b, float c, U64 imm) {
    return (imm & mod::ftz ? flush(c) : c) >= 0.0f ? a : b;
  }
};

// ------------------------------------------------------------------------------------------- mov
template <class T>
void copy(RegisterView& v, const MicroOp& op, U32 mask) {
  const T* a = source<T>(v, op.operand[1]);
  T* d = destination<T>(v, op.operand[0]);
  if (d != a) copy_lanes(d, a, mask);
}
void copy_predicate(RegisterView& v, const MicroOp& op, U32 mask) {
  write_predicate(v, op.operand[0], predicate(v, op, 1), mask);
}

// Parts narrower than 16 bits live in 16-bit registers.
template <class Part>
using PartRegister = typename Word<(sizeof(Part) < 2 ? 2 : sizeof(Part))>::type;

template <class Whole, class Part>
void pack(RegisterView& v, const MicroOp& op, U32 mask) {
  using R = PartRegister<Part>;
  constexpr int kParts = sizeof(Whole) / sizeof(Part);
  alignas(64) Whole aside[32];
  const R* part[kParts];
  for (int k = 0; k < kParts; ++k) part[k] = source<R>(v, op.operand[1 + k]);
  for (int i = 0; i < 32; ++i) {
    Whole w = 0;
    for (int k = 0; k < kParts; ++k) {
      w |= static_cast<Whole>(static_cast<Whole>(static_cast<Part>(part[k][i]))
                              << (8 * sizeof(Part) * k));
    }
    aside[i] = w;
  }
  copy_lanes(destination<Whole>(v, op.operand[0]), aside, mask);
}

template <class Whole, class Part>
void unpack(RegisterView& v, const MicroOp& op, U32 mask) {
  using R = PartRegister<Part>;
  constexpr int kParts = sizeof(Whole) / sizeof(Part);
  const Whole* a = source<Whole>(v, op.operand[kParts]);
  alignas(64) R aside[kParts][32];
  for (int i = 0; i < 32; ++i) {
    for (int k = 0; k < kParts; ++k) {
      aside[k][i] = static_cast<Part>(a[i] >> (8 * sizeof(Part) * k));
    }
  }
  for (int k = 0; k < kParts; ++k) copy_lanes(destination<R>(v, op.operand[k]), aside[k], mask);
}

// ------------------------------------------------------------------------------- predicate logic
void not_predicate(RegisterView& v, const MicroOp& op, U32 mask) {
  write_predicate(v, op.operand[0], ~predicate(v, op, 1), mask);
}
void and_predicate(RegisterView& v, const MicroOp& op, U32 mask) {
  write_predicate(v, op.operand[0], predicate(v, op, 1) & predicate(v, op, 2), mask);
}
void or_predicate(RegisterView& v, const MicroOp& op, U32 mask) {
  write_predicate(v, op.operand[0], predicate(v, op, 1) | predicate(v, op, 2), mask);
}
void xor_predicate(RegisterView& v, const MicroOp& op, U32 mask) {
  write_predicate(v, op.operand[0], predicate(v, op, 1) ^ predicate(v, op, 2), mask);
}

#define SELP(T, L) \
  { Op::selp, T, kNoFlags, sig({T}, {T, T, pred}), selp<L> }
#define SLCT(T, L)                                                                             \
  {Op::slct, {T, s32}, kNoFlags, sig({T}, {T, T, s32}), ternary<ByInteger, L, L, L, S32>}, {   \
    Op::slct, {T, f32}, may(mod::ftz), sig({T}, {T, T, f32}), ternary<ByFloat, L, L, L, float> \
  }
#define MOV(T, L) \
  { Op::mov, T, kNoFlags, same(T, 1), copy<L> }
#define PACK2(T, P, L, M)                                                        \
  {Op::mov, T, kNoFlags, sig({T}, {P, P}), pack<L, M>, 0, 0, 0, Shape::pack}, {  \
    Op::mov, T, kNoFlags, sig({P, P}, {T}), unpack<L, M>, 0, 0, 0, Shape::unpack \
  }
#define PACK4(T, P, L, M)                                                              \
  {Op::mov, T, kNoFlags, sig({T}, {P, P, P, P}), pack<L, M>, 0, 0, 0, Shape::pack}, {  \
    Op::mov, T, kNoFlags, sig({P, P, P, P}, {T}), unpack<L, M>, 0, 0, 0, Shape::unpack \
  }

constexpr Row kRows[] = {
    SELP(b16, U16),
    SELP(u16, U16),
    SELP(s16, U16),
    SELP(f16, U16),
    SELP(bf16, U16),
    SELP(b32, U32),
    SELP(u32, U32),
    SELP(s32, U32),
    SELP(f32, U32),
    SELP(b64, U64),
    SELP(u64, U64),
    SELP(s64, U64),
    SELP(f64, U64),
    SLCT(b16, U16),
    SLCT(u16, U16),
    SLCT(s16, U16),
    SLCT(b32, U32),
    SLCT(u32, U32),
    SLCT(s32, U32),
    SLCT(f32, U32),
    SLCT(b64, U64),
    SLCT(u64, U64),
    SLCT(s64, U64),
    SLCT(f64, U64),

    PACK2(b16, b8, U16, U8),
    PACK2(b32, b16, U32, U16),
    PACK4(b32, b8, U32, U8),
    PACK2(b64, b32, U64, U32),
    PACK4(b64, b16, U64, U16),
    PACK2(b128, b64, U128, U64),
    PACK4(b128, b32, U128, U32),

    MOV(b16, U16),
    MOV(u16, U16),
    MOV(s16, U16),
    MOV(f16, U16),
    MOV(bf16, U16),
    MOV(b32, U32),
    MOV(u32, U32),
    MOV(s32, U32),
    MOV(f32, U32),
    MOV(b64, U64),
    MOV(u64, U64),
    MOV(s64, U64),
    MOV(f64, U64),
    MOV(b128, U128),
    {Op::mov, pred, kNoFlags, sig({pred}, {pred}), copy_predicate},

    {Op::not_, pred, kNoFlags, sig({pred}, {pred}), not_predicate},
    {Op::and_, pred, kNoFlags, sig({pred}, {pred, pred}), and_predicate},
    {Op::or_, pred, kNoFlags, sig({pred}, {pred, pred}), or_predicate},
    {Op::xor_, pred, kNoFlags, sig({pred}, {pred, pred}), xor_predicate},
};

}  // namespace

Rows select_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
