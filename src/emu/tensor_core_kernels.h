#pragma once
// Between tensor_core.cc, which fetches operands, and the kernels, which exist once per
// instruction-set level (tensor_core_simd.inc). Plain data only: the level files are compiled for
// CPUs that others lack, so they must not instantiate shared inline code.

#include <cstdint>

namespace ptxbench::emu::tensor {

// Element types as the kernels tell them apart.
enum class Element : uint8_t { bf16, f16, tf32, e4m3, e5m2 };

constexpr int kRowBytes = 32;  // every operand row is 32 bytes: 8, 16 or 32 elements
constexpr int kMaxK = 32, kMaxN = 256;
// Exponents of zeros and of infinities or NaNs. Sums of two stay in 16 bits, and a zero never hides
// an infinity: 16000 - 8000 is still large.
constexpr int kZeroExponent = -8000, kInfExponent = 16000;

// Scratch of one thread. Rows are as fetched; panels are what the inner loops read.
struct alignas(64) Panels {
  uint8_t a_rows[64][kRowBytes], b_rows[kMaxN][kRowBytes];
  // Lane l of row half h of warp w reads row 16w + 8h + l/4: [warp][k][half][lane] for
  // values, [warp][half][k][lane] for exponents.
  float a[4 * 2 * kMaxK * 32];
  int16_t a_exponent[4 * 2 * kMaxK * 32];
  // Columns 8g + q + {0, 2, 4, 6} stand together, as a register has them: [2g + q][k][4], the k of
  // values in the order of b_offset().
  float b[kMaxN / 4 * kMaxK * 4];
  int16_t b_exponent[kMaxN / 4 * kMaxK * 4];
  float staged[kMaxN][kMaxK];  // rows as f32
  int16_t staged_exponent[kMaxN][kMaxK];
  uint32_t wide_d[4][128][32];  // f32 accumulators where registers hold f16
};

struct Job {
  Panels* panels = nullptr;
  Element a{}, b{};
  int rows = 64;  // of A: 16 for each warp that can be selected
  int n = 0, k = 0;
  uint32_t* const (*d)[128] = nullptr;  // [warp][register] -> 32 lanes of f32
  bool scale_d = true;
  // Mode hw: accumulators are f16 numbers held as f32, and the sum is rounded to nearest even f16.
  bool half = false;
  uint32_t warps = 0xf;
  // Computes the lanes of `mask` of register r of warp w in the slow way; their registers still
  // hold C.
  void (*exact)(const Job&, int warp, int r, uint32_t mask) = nullptr;
};

struct Kernels {
  const char* level;        // "x86-64-v2", ...
  void (*f32)(const Job&);  // fused multiply-adds in order k = 0, 1, ..., NaNs made canonical
  void (*hw)(const Job&);   // the hardware's alignment and truncation
  void (*dot)(const Job&);  // bf16 pairs; nullptr where the CPU has none
};

// Levels that were built and run on this CPU, weakest first; never empty.
struct Levels {
  const Kernels* level[4];
  int count;
};
const Levels& levels();

extern const Kernels kKernelsV2, kKernelsV3, kKernelsV4, kKernelsBf16;

}  // namespace ptxbench::emu::tensor
