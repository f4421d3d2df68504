#pragma once
// wmma: matrix multiplication with fragments whose layout the ISA leaves open. It is the one that
// ptxas 13.0 uses for sm_90, so that kernels which look into fragments see what they see there:
// a shape is one or two mma.sync tiles, m8n32k16 with A and B (and rows and columns of C)
// exchanged. Fragments of f16 operands repeat their registers up to eight.

#include <cfenv>
#include <cstdint>

#include "emu/mma.h"

namespace ptxbench::emu {

struct WmmaForm {
  int m = 16, n = 16, k = 16;
  ptx::Type d{}, a{}, b{}, c{};
  bool saturate = false, exclusive_or = false;
  int rounding = FE_TONEAREST;  // of f64, a constant of <cfenv>
};
Result<void> check(const WmmaForm& form);
MmaRegisters registers_of(const WmmaForm& form);
inline double flop_of(const WmmaForm& form) { return 2.0 * form.m * form.n * form.k; }

// D = A*B + C for a warp. D may share registers with any operand. Thread-safe.
void wmma(const WmmaForm& form, const MmaOperands& operands, plan::TensorMode mode);

// wmma.load and wmma.store: which element of the matrix a register's position holds.
struct WmmaFragment {
  enum class Role : uint8_t { a, b, accumulator } role = Role::a;
  int m = 16, n = 16, k = 16;
  ptx::Type type{};

  int rows() const { return role == Role::b ? k : m; }
  int columns() const { return role == Role::a ? k : n; }
  int registers() const;
  int elements() const;  // of a register
};
struct WmmaElement {
  int row, column;
};
WmmaElement element_of(const WmmaFragment& fragment, int reg, int lane, int element);

}  // namespace ptxbench::emu
