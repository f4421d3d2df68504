#pragma once
// How a handler walks over the lanes. Everything in level/ is compiled once per instruction-set
// level into a namespace of its own (PTXBENCH_LEVEL). No function of the standard library may be
// called here: its inline copies are shared between levels by the linker.
//
// A full warp writes its destination directly; a partial one computes all 32 lanes aside (handlers
// have no side effects and never trap) and copies the active ones.

#include "emu/scalar/row.h"

#ifndef PTXBENCH_LEVEL
#error "level/ files are compiled once per instruction-set level"
#endif

#define LANE_INLINE [[gnu::always_inline]] inline

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {

constexpr uint32_t kFull = 0xffffffffu;

using U8 = uint8_t;
using U16 = uint16_t;
using U32 = uint32_t;
using U64 = uint64_t;
using S8 = int8_t;
using S16 = int16_t;
using S32 = int32_t;
using S64 = int64_t;
__extension__ typedef unsigned __int128 U128;
__extension__ typedef __int128 S128;

template <class To, class From>
LANE_INLINE To bits_as(From from) {
  return __builtin_bit_cast(To, from);
}

template <int bytes>
struct Word;
template <>
struct Word<1> {
  using type = U8;
};
template <>
struct Word<2> {
  using type = U16;
};
template <>
struct Word<4> {
  using type = U32;
};
template <>
struct Word<8> {
  using type = U64;
};
template <>
struct Word<16> {
  using type = U128;
};
template <class T>
using WordOf = typename Word<sizeof(T)>::type;

template <class T>
[[gnu::noinline]] void copy_lanes(T* __restrict to, const T* __restrict from, U32 mask) {
  if (mask == kFull) {
    __builtin_memcpy(to, from, 32 * sizeof(T));
    return;
  }
  for (int i = 0; i < 32; ++i) to[i] = (mask >> i) & 1 ? from[i] : to[i];
}

// Packed destinations have N = 64 elements in 32 registers.
template <int N, class D>
LANE_INLINE void commit(D* to, const D* from, U32 mask) {
  using W = typename Word<sizeof(D) * N / 32>::type;
  copy_lanes(reinterpret_cast<W*>(to), reinterpret_cast<const W*>(from), mask);
}

template <class F, class D, class A = D, int N = 32>
void unary(RegisterView& v, const MicroOp& op, U32 mask) {
  D* d = destination<D>(v, op.operand[0]);
  const A* a = source<A>(v, op.operand[1]);
  alignas(64) D aside[N];
  D* to = sizeof(A) == sizeof(D) && mask == kFull ? d : aside;
  const U64 imm = op.imm;
#pragma GCC ivdep
  for (int i = 0; i < N; ++i) to[i] = F::run(a[i], imm);
  if (to != d) commit<N>(d, aside, mask);
}

template <class F, class D, class A = D, class B = A, int N = 32>
void binary(RegisterView& v, const MicroOp& op, U32 mask) {
  D* d = destination<D>(v, op.operand[0]);
  const A* a = source<A>(v, op.operand[1]);
  const B* b = source<B>(v, op.operand[2]);
  alignas(64) D aside[N];
  D* to = sizeof(A) == sizeof(D) && sizeof(B) == sizeof(D) && mask == kFull ? d : aside;
  const U64 imm = op.imm;
#pragma GCC ivdep
  for (int i = 0; i < N; ++i) to[i] = F::run(a[i], b[i], imm);
  if (to != d) commit<N>(d, aside, mask);
}

template <class F, class D, class A = D, class B = A, class C = B, int N = 32>
void ternary(RegisterView& v, const MicroOp& op, U32 mask) {
  D* d = destination<D>(v, op.operand[0]);
  const A* a = source<A>(v, op.operand[1]);
  const B* b = source<B>(v, op.operand[2]);
  const C* c = source<C>(v, op.operand[3]);
  alignas(64) D aside[N];
  constexpr bool kSame = sizeof(A) == sizeof(D) && sizeof(B) == sizeof(D) && sizeof(C) == sizeof(D);
  D* to = kSame && mask == kFull ? d : aside;
  const U64 imm = op.imm;
#pragma GCC ivdep
  for (int i = 0; i < N; ++i) to[i] = F::run(a[i], b[i], c[i], imm);
  if (to != d) commit<N>(d, aside, mask);
}

// Lane masks: bit i of the result is truth[i] (0 or 1). The one place that names an instruction
// (SSE2).
LANE_INLINE U32 pack_truth(const U8* truth) {
  typedef char Bytes __attribute__((vector_size(16)));
  typedef short Words __attribute__((vector_size(16)));
  Words low, high;
  __builtin_memcpy(&low, truth, 16);
  __builtin_memcpy(&high, truth + 16, 16);
  const int l = __builtin_ia32_pmovmskb128((Bytes)(low << 7));
  const int h = __builtin_ia32_pmovmskb128((Bytes)(high << 7));
  return static_cast<U32>(l) | static_cast<U32>(h) << 16;
}

LANE_INLINE void write_predicate(RegisterView& v, Slot slot, U32 value, U32 mask) {
  v.preds[slot] = (v.preds[slot] & ~mask) | (value & mask);
}

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
