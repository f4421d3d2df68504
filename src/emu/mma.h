#pragma once
// Warp matrix multiply (PTX ISA "mma.sync") as arithmetic on register fragments. Numbers as an H200
// shows them (tests/data/hw/README.md), or as ptxas composes them where sm_90 has no such
// instruction; mma.cc says which. Fragment layouts: PTX ISA, "Matrix Fragments for mma".

#include <cstdint>

#include "base/result.h"
#include "plan/run_result.h"
#include "ptx/opcodes.h"

namespace ptxbench::emu {

struct MmaForm {
  int m = 16, n = 8, k = 16;
  ptx::Type d{}, a{}, b{}, c{};
  bool saturate = false;                   // .satfinite
  bool exclusive_or = false;               // b1: .xor.popc instead of .and.popc
  bool a_columns = false, b_rows = false;  // m8n8k4.f16: fragments of .col A and .row B
  bool sparse = false;                     // .sp: A holds half of K, see emu/sparse.h
  int selector = 0;                        // of the threads whose metadata counts
};
// Which forms exist here; the error ("unsupported") names what is missing.
Result<void> check(const MmaForm& form);

// 32-bit registers of each fragment (f64: 64-bit registers).
struct MmaRegisters {
  int a, b, c, d;
};
MmaRegisters registers_of(const MmaForm& form);

// Of one warp; multiply and add counted separately, sparse forms as if they were dense.
double flop_of(const MmaForm& form);

struct MmaOperands {  // [register] -> 32 lanes
  const uint32_t* a[8] = {};
  const uint32_t* b[8] = {};
  const uint32_t* c[8] = {};
  uint32_t* d[8] = {};
  const uint32_t* metadata = nullptr;  // sparse forms
};
// Computes D = A*B + C for a warp. D may share registers with any operand. Thread-safe
// (thread-local scratch). Bit-identical on every CPU in modes hw and f32.
void mma(const MmaForm& form, const MmaOperands& operands, plan::TensorMode mode);

}  // namespace ptxbench::emu
