// f32 and f64 arithmetic: add, sub, mul, fma, mad, div, rcp, sqrt in all roundings, and f32x2.
#include "emu/scalar/level/f64_directed.h"
#include "emu/scalar/level/floats.h"
#include "emu/scalar/level/tables.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

using ptx::Op;
using enum ptx::Type;

// --------------------------------------------------------------------------------- f32, nearest
// even Ftz and Sat at compile time: these are the hot forms.
template <bool Ftz, bool Sat>
LANE_INLINE float finish(float r) {
  if (Sat) {
    r = r > 0.0f ? r : 0.0f;  // NaN and -0 give +0
    r = r < 1.0f ? r : 1.0f;
  }
  if (Ftz) r = flush(r);
  return Sat || r == r ? r : bits_as<float>(kNan32);
}
template <bool Ftz>
LANE_INLINE float input(float x) {
  return Ftz ? flush(x) : x;
}

LANE_INLINE float fused(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return static_cast<float>(add_odd(static_cast<double>(a) * b, c));
#endif
}

struct AddOp {
  LANE_INLINE static float run(float a, float b) { return a + b; }
};
struct SubOp {
  LANE_INLINE static float run(float a, float b) { return a - b; }
};
struct MulOp {
  LANE_INLINE static float run(float a, float b) { return a * b; }
};
struct DivOp {
  LANE_INLINE static float run(float a, float b) { return a / b; }
};
template <class F, bool Ftz, bool Sat>
struct Near2 {
  LANE_INLINE static float run(float a, float b, U64) {
    return finish<Ftz, Sat>(F::run(input<Ftz>(a), input<Ftz>(b)));
  }
};
template <bool Sat>
struct NearFma {
  LANE_INLINE static float run(float a, float b, float c, U64) {
    return finish<false, Sat>(fused(a, b, c));
  }
};
// A product that rounds to the smallest normal number may have been below it, and then .ftz makes
// it zero. The fast loop only notes that there is such a lane.
LANE_INLINE U32 at_threshold(float r) { return (bits_as<U32>(r) & 0x7fffffffu) == 0x00800000u; }

template <class Exact, bool Sat, int N>
void mul_ftz(RegisterView& v, const MicroOp& op, U32 mask) {
  const float* a = source<float>(v, op.operand[1]);
  const float* b = source<float>(v, op.operand[2]);
  alignas(64) float aside[N];
  U32 doubtful = 0;
  for (int i = 0; i < N; ++i) {
    float r = flush(a[i]) * flush(b[i]);
    doubtful |= at_threshold(r);
    aside[i] = finish<true, Sat>(r);
  }
  if (doubtful) {
    for (int i = 0; i < N; ++i) aside[i] = Exact::run(a[i], b[i], op.imm);
  }
  commit<N>(destination<float>(v, op.operand[0]), aside, mask);
}
template <class Exact, bool Sat, int N>
void fma_ftz(RegisterView& v, const MicroOp& op, U32 mask) {
  const float* a = source<float>(v, op.operand[1]);
  const float* b = source<float>(v, op.operand[2]);
  const float* c = source<float>(v, op.operand[3]);
  alignas(64) float aside[N];
  U32 doubtful = 0;
  for (int i = 0; i < N; ++i) {
    float r = fused(flush(a[i]), flush(b[i]), flush(c[i]));
    doubtful |= at_threshold(r);
    aside[i] = finish<true, Sat>(r);
  }
  if (doubtful) {
    for (int i = 0; i < N; ++i) aside[i] = Exact::run(a[i], b[i], c[i], op.imm);
  }
  commit<N>(destination<float>(v, op.operand[0]), aside, mask);
}
template <bool Ftz>
struct NearRcp {
  LANE_INLINE static float run(float a, U64) { return finish<Ftz, false>(1.0f / input<Ftz>(a)); }
};
template <bool Ftz>
struct NearSqrt {
  LANE_INLINE static float run(float a, U64) {
    return finish<Ftz, false>(__builtin_sqrtf(input<Ftz>(a)));
  }
};

// --------------------------------------------------------------------------------- f32, exact
// Any rounding, at run time.
// Quotients and roots of f32 in f64 never fall so near an f32 value that f64's rounding hides a
// remainder.
LANE_INLINE float directed(double x, U64 imm) {
  if (imm & mod::sat) {
    x = x > 0.0 ? x : 0.0;
    x = x < 1.0 ? x : 1.0;
  }
  return bits_as<float>(narrow_ftz<F32>(x, imm));
}
LANE_INLINE double in(float x, U64 imm) { return imm & mod::ftz ? flush(x) : x; }
// An exact zero from operands of unlike sign is -0 when rounding down.
LANE_INLINE double sum(double a, double b, U64 imm) {
  double s = add_odd(a, b);
  bool minus = ((bits_as<U64>(a) | bits_as<U64>(b)) >> 63) != 0;
  return (imm & mod::rm) && s == 0.0 && minus ? -0.0 : s;
}
struct ExactAdd {
  LANE_INLINE static float run(float a, float b, U64 imm) {
    return directed(sum(in(a, imm), in(b, imm), imm), imm);
  }
};
struct ExactSub {
  LANE_INLINE static float run(float a, float b, U64 imm) {
    return directed(sum(in(a, imm), -in(b, imm), imm), imm);
  }
};
struct ExactMul {
  LANE_INLINE static float run(float a, float b, U64 imm) {
    return directed(in(a, imm) * in(b, imm), imm);
  }
};
struct ExactFma {
  LANE_INLINE static float run(float a, float b, float c, U64 imm) {
    return directed(sum(in(a, imm) * in(b, imm), in(c, imm), imm), imm);
  }
};
struct ExactDiv {
  LANE_INLINE static float run(float a, float b, U64 imm) {
    return directed(in(a, imm) / in(b, imm), imm);
  }
};
struct ExactRcp {
  LANE_INLINE static float run(float a, U64 imm) { return directed(1.0 / in(a, imm), imm); }
};
struct ExactSqrt {
  LANE_INLINE static float run(float a, U64 imm) {
    return directed(__builtin_sqrt(in(a, imm)), imm);
  }
};

// --------------------------------------------------------------------------------- f64
struct Add64 {
  LANE_INLINE static double run(double a, double b, U64) { return keep_nan(a + b, b, a); }
};
struct Sub64 {
  LANE_INLINE static double run(double a, double b, U64) { return keep_nan(a - b, b, a); }
};
struct Mul64 {
  LANE_INLINE static double run(double a, double b, U64) { return keep_nan(a * b, b, a); }
};
struct Div64 {
  LANE_INLINE static double run(double a, double b, U64) { return keep_nan(a / b, a, b); }
};
struct Rcp64 {
  LANE_INLINE static double run(double a, U64) { return 1.0 / a; }
};
struct Sqrt64 {
  LANE_INLINE static double run(double a, U64) { return __builtin_sqrt(a); }
};
struct Fma64 {
  LANE_INLINE static double run(double a, double b, double c, U64) {
    return keep_nan(keep_nan(__builtin_fma(a, b, c), c, a), b, b);
  }
};

constexpr ModSet kDirections = mod::rz | mod::rm | mod::rp;
constexpr Flags kNear = may(mod::rn);
constexpr Flags kNearFtz = need(mod::ftz) + may(mod::rn);
constexpr Flags kNearSat = need(mod::sat) + may(mod::rn);
constexpr Flags kNearFtzSat = need(mod::ftz | mod::sat) + may(mod::rn);
constexpr Flags kDirected = one_of(kDirections) + may(mod::ftz | mod::sat);
constexpr Flags kDirected64 = one_of(kDirections);
constexpr Flags kDirectedFtz = one_of(kDirections) + may(mod::ftz);
constexpr Flags kRnFtz = need(mod::rn | mod::ftz);

#define NEAR2(op, F)                                                                 \
  {Op::op, f32, kNear, same(f32, 2), binary<Near2<F, false, false>, float>},         \
      {Op::op, f32, kNearFtz, same(f32, 2), binary<Near2<F, true, false>, float>},   \
      {Op::op, f32, kNearSat, same(f32, 2), binary<Near2<F, false, true>, float>}, { \
    Op::op, f32, kNearFtzSat, same(f32, 2), binary<Near2<F, true, true>, float>      \
  }
#define NEAR_FMA(op)                                                         \
  {Op::op, f32, kNear, same(f32, 3), ternary<NearFma<false>, float>},        \
      {Op::op, f32, kNearFtz, same(f32, 3), fma_ftz<ExactFma, false, 32>},   \
      {Op::op, f32, kNearSat, same(f32, 3), ternary<NearFma<true>, float>},  \
      {Op::op, f32, kNearFtzSat, same(f32, 3), fma_ftz<ExactFma, true, 32>}, \
      {Op::op, f32, kDirected, same(f32, 3), ternary<ExactFma, float>},      \
      {Op::op, f64, kNear, same(f64, 3), ternary<Fma64, double>}, {          \
    Op::op, f64, kDirected64, same(f64, 3), directed_fma                     \
  }
#define PAIR2(op, F)                                                                               \
  {Op::op, f32x2, kNear, same(f32x2, 2), binary<Near2<F, false, false>, float, float, float, 64>}, \
  {                                                                                                \
    Op::op, f32x2, kNearFtz, same(f32x2, 2),                                                       \
        binary<Near2<F, true, false>, float, float, float, 64>                                     \
  }

constexpr Row kRows[] = {
    NEAR2(add, AddOp),
    {Op::add, f32, kDirected, same(f32, 2), binary<ExactAdd, float>},
    {Op::add, f64, kNear, same(f64, 2), binary<Add64, double>},
    {Op::add, f64, kDirected64, same(f64, 2), directed_add},
    NEAR2(sub, SubOp),
    {Op::sub, f32, kDirected, same(f32, 2), binary<ExactSub, float>},
    {Op::sub, f64, kNear, same(f64, 2), binary<Sub64, double>},
    {Op::sub, f64, kDirected64, same(f64, 2), directed_sub},
    {Op::mul, f32, kNear, same(f32, 2), binary<Near2<MulOp, false, false>, float>},
    {Op::mul, f32, kNearFtz, same(f32, 2), mul_ftz<ExactMul, false, 32>},
    {Op::mul, f32, kNearSat, same(f32, 2), binary<Near2<MulOp, false, true>, float>},
    {Op::mul, f32, kNearFtzSat, same(f32, 2), mul_ftz<ExactMul, true, 32>},
    {Op::mul, f32, kDirected, same(f32, 2), binary<ExactMul, float>},
    {Op::mul, f64, kNear, same(f64, 2), binary<Mul64, double>},
    {Op::mul, f64, kDirected64, same(f64, 2), directed_mul},
    NEAR_FMA(fma),
    NEAR_FMA(mad),
    PAIR2(add, AddOp),
    PAIR2(sub, SubOp),
    {Op::mul, f32x2, kNear, same(f32x2, 2),
     binary<Near2<MulOp, false, false>, float, float, float, 64>},
    {Op::mul, f32x2, kNearFtz, same(f32x2, 2), mul_ftz<ExactMul, false, 64>},
    {Op::fma, f32x2, kNear, same(f32x2, 3),
     ternary<NearFma<false>, float, float, float, float, 64>},
    {Op::fma, f32x2, kNearFtz, same(f32x2, 3), fma_ftz<ExactFma, false, 64>},
    {Op::div, f32, need(mod::rn), same(f32, 2), binary<Near2<DivOp, false, false>, float>},
    {Op::div, f32, kRnFtz, same(f32, 2), binary<ExactDiv, float>},
    {Op::div, f32, kDirectedFtz, same(f32, 2), binary<ExactDiv, float>},
    {Op::div, f64, need(mod::rn), same(f64, 2), binary<Div64, double>},
    {Op::div, f64, kDirected64, same(f64, 2), directed_div},
    {Op::rcp, f32, need(mod::rn), same(f32, 1), unary<NearRcp<false>, float>},
    {Op::rcp, f32, kRnFtz, same(f32, 1), unary<NearRcp<true>, float>},
    {Op::rcp, f32, kDirectedFtz, same(f32, 1), unary<ExactRcp, float>},
    {Op::rcp, f64, need(mod::rn), same(f64, 1), unary<Rcp64, double>},
    {Op::rcp, f64, kDirected64, same(f64, 1), directed_rcp},
    {Op::sqrt, f32, need(mod::rn), same(f32, 1), unary<NearSqrt<false>, float>},
    {Op::sqrt, f32, kRnFtz, same(f32, 1), unary<NearSqrt<true>, float>},
    {Op::sqrt, f32, kDirectedFtz, same(f32, 1), unary<ExactSqrt, float>},
    {Op::sqrt, f64, need(mod::rn), same(f64, 1), unary<Sqrt64, double>},
    {Op::sqrt, f64, kDirected64, same(f64, 1), directed_sqrt},
};

}  // namespace

Rows float_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
