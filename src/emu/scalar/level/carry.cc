// Extended precision: add, sub and mad with carry in and out. The carry flags of a warp are
// preds[3]; after a subtraction they mean borrow.
#include "emu/scalar/level/lanes.h"
#include "emu/scalar/level/tables.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Op;
using enum ptx::Type;

constexpr int kCarry = 3;

// d = a + b + carry, or a - b - borrow.
template <class T, bool Subtract, bool In>
void sum(RegisterView& v, const MicroOp& op, U32 mask) {
  const T* a = source<T>(v, op.operand[1]);
  const T* b = source<T>(v, op.operand[2]);
  const U32 carry = In ? v.preds[kCarry] : 0;
  alignas(64) T aside[32];
  alignas(64) U8 out[32];
  for (int i = 0; i < 32; ++i) {
    T c = (carry >> i) & 1;
    T part = Subtract ? a[i] - b[i] : a[i] + b[i];
    T r = Subtract ? part - c : part + c;
    out[i] = Subtract ? (a[i] < b[i]) | (part < c) : (part < a[i]) | (r < part);
    aside[i] = r;
  }
  copy_lanes(destination<T>(v, op.operand[0]), aside, mask);
  if (op.imm & mod::cc) write_predicate(v, kCarry, pack_truth(out), mask);
}

// d = half of a * b, plus c and the carry. T unsigned; S gives the product's signedness.
template <class T, class S, class Wide, bool High, bool In>
void mad(RegisterView& v, const MicroOp& op, U32 mask) {
  const S* a = source<S>(v, op.operand[1]);
  const S* b = source<S>(v, op.operand[2]);
  const T* c = source<T>(v, op.operand[3]);
  const U32 carry = In ? v.preds[kCarry] : 0;
  alignas(64) T aside[32];
  alignas(64) U8 out[32];
  for (int i = 0; i < 32; ++i) {
    Wide p = static_cast<Wide>(a[i]) * static_cast<Wide>(b[i]);
    T half = static_cast<T>(High ? p >> (8 * sizeof(T)) : p);
    T part = half + c[i], r = part + ((carry >> i) & 1);
    out[i] = (part < half) | (r < part);
    aside[i] = r;
  }
  copy_lanes(destination<T>(v, op.operand[0]), aside, mask);
  if (op.imm & mod::cc) write_predicate(v, kCarry, pack_truth(out), mask);
}

#define SUMS(T, L)                                                    \
  {Op::add, T, need(mod::cc), same(T, 2), sum<L, false, false>},      \
      {Op::addc, T, may(mod::cc), same(T, 2), sum<L, false, true>},   \
      {Op::sub, T, need(mod::cc), same(T, 2), sum<L, true, false>}, { \
    Op::subc, T, may(mod::cc), same(T, 2), sum<L, true, true>         \
  }
#define MADS(T, L, S, W)                                                                    \
  {Op::mad, T, need(mod::lo | mod::cc), same(T, 3), mad<L, S, W, false, false>},            \
      {Op::mad, T, need(mod::hi | mod::cc), same(T, 3), mad<L, S, W, true, false>},         \
      {Op::madc, T, need(mod::lo) + may(mod::cc), same(T, 3), mad<L, S, W, false, true>}, { \
    Op::madc, T, need(mod::hi) + may(mod::cc), same(T, 3), mad<L, S, W, true, true>         \
  }

constexpr Row kRows[] = {
    SUMS(u32, U32),
    SUMS(s32, U32),
    SUMS(u64, U64),
    SUMS(s64, U64),
    MADS(u32, U32, U32, U64),
    MADS(s32, U32, S32, S64),
    MADS(u64, U64, U64, U128),
    MADS(s64, U64, S64, S128),
};

}  // namespace

Rows carry_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
