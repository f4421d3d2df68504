// f64 in directed rounding modes. The processor's own mode is used, and each operation stands
// between the two mode changes in one asm statement (or one library call), so that no optimisation
// can move it out.
#include "emu/scalar/level/f64_directed.h"

#include <cfenv>
#include <cmath>

#include "emu/scalar/level/floats.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {
namespace {

// MXCSR with all exceptions masked.
LANE_INLINE U32 control(U64 imm) {
  return 0x1f80u | (imm & mod::rz ? 0x6000u : imm & mod::rm ? 0x2000u : 0x4000u);
}
constexpr U32 kNearest = 0x1f80u;

#define DIRECTED(instruction, a, b)                                              \
  asm volatile("ldmxcsr %[mode]\n\t" instruction " %[y], %[x]\n\tldmxcsr %[old]" \
               : [x] "+x"(a)                                                     \
               : [y] "x"(b), [mode] "m"(mode), [old] "m"(kNearest))

struct Add {
  LANE_INLINE static double run(double a, double b, U64 imm) {
    U32 mode = control(imm);
    double r = a;
    DIRECTED("addsd", r, b);
    return keep_nan(r, b, a);
  }
};
struct Sub {
  LANE_INLINE static double run(double a, double b, U64 imm) {
    U32 mode = control(imm);
    double r = a;
    DIRECTED("subsd", r, b);
    return keep_nan(r, b, a);
  }
};
struct Mul {
  LANE_INLINE static double run(double a, double b, U64 imm) {
    U32 mode = control(imm);
    double r = a;
    DIRECTED("mulsd", r, b);
    return keep_nan(r, b, a);
  }
};
struct Div {
  LANE_INLINE static double run(double a, double b, U64 imm) {
    U32 mode = control(imm);
    double r = a;
    DIRECTED("divsd", r, b);
    return keep_nan(r, a, b);
  }
};
struct Rcp {
  LANE_INLINE static double run(double a, U64 imm) { return Div::run(1.0, a, imm); }
};
struct Sqrt {
  LANE_INLINE static double run(double a, U64 imm) {
    U32 mode = control(imm);
    DIRECTED("sqrtsd", a, a);
    return a;
  }
};

#ifndef __FMA__
// The library's fma obeys the rounding mode; the pointer keeps the compiler from folding or moving
// the call.
double (*volatile library_fma)(double, double, double) = std::fma;
#endif

struct Fma {
  LANE_INLINE static double run(double a, double b, double c, U64 imm) {
#ifdef __FMA__
    U32 mode = control(imm);
    double r = a;
    asm volatile("ldmxcsr %[mode]\n\tvfmadd213sd %[z], %[y], %[x]\n\tldmxcsr %[old]"
                 : [x] "+x"(r)
                 : [y] "x"(b), [z] "x"(c), [mode] "m"(mode), [old] "m"(kNearest));
#else
    std::fesetround(imm & mod::rz ? FE_TOWARDZERO : imm & mod::rm ? FE_DOWNWARD : FE_UPWARD);
    double r = library_fma(a, b, c);
    std::fesetround(FE_TONEAREST);
#endif
    return keep_nan(keep_nan(r, c, a), b, b);
  }
};

}  // namespace

void directed_add(RegisterView& v, const MicroOp& op, U32 mask) {
  binary<Add, double>(v, op, mask);
}
void directed_sub(RegisterView& v, const MicroOp& op, U32 mask) {
  binary<Sub, double>(v, op, mask);
}
void directed_mul(RegisterView& v, const MicroOp& op, U32 mask) {
  binary<Mul, double>(v, op, mask);
}
void directed_fma(RegisterView& v, const MicroOp& op, U32 mask) {
  ternary<Fma, double>(v, op, mask);
}
void directed_div(RegisterView& v, const MicroOp& op, U32 mask) {
  binary<Div, double>(v, op, mask);
}
void directed_rcp(RegisterView& v, const MicroOp& op, U32 mask) { unary<Rcp, double>(v, op, mask); }
void directed_sqrt(RegisterView& v, const MicroOp& op, U32 mask) {
  unary<Sqrt, double>(v, op, mask);
}

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
