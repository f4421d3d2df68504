#pragma once
// Thin device wrappers for the Ampere instructions that Hopper still runs: cp.async, ldmatrix,
// mma.sync. One function is one instruction; nothing here hides a wait. Section names are those of
// the PTX ISA 9.0. Target sm_80 and later. Shared-memory operands are 32-bit addresses in the
// executing CTA's window.

#include <cstdint>

namespace ptxbench::ptx {

// ---- Copies (ISA "cp.async", "cp.async.commit_group", "cp.async.wait_group") -----------------

// 16 bytes from global to shared memory, both 16-byte aligned, past L1. Only the first
// `source_bytes` (0..16) are read; the rest of the destination becomes zero.
__device__ __forceinline__ void cp_async_16(uint32_t destination, const void* source,
                                            uint32_t source_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination),
               "l"(__cvta_generic_to_global(source)), "r"(source_bytes)
               : "memory");
}

__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until at most N of this thread's newest groups are pending. Other threads' copies need a barrier
// after their own wait.
template <int N>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// ---- Warp matrix instructions (ISA "ldmatrix", "mma.sync") ------------------------------------

// Four 8x8 matrices of 16-bit elements; lane l gives the 16-byte row l%8 of matrix l/8.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&m)[4], uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row_address)
               : "memory");
}

// The same, each matrix transposed on its way.
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&m)[4], uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row_address)
               : "memory");
}

// D[16,8] += A[16,16] * B[16,8], bf16 inputs, fp32 accumulators.
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4],
                                                  uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// D[16,8] += A[16,32] * B[32,8], e4m3 inputs, fp32 accumulators; registers hold what the 16-bit
// form holds, byte for byte. From sm_89 on (on Hopper the assembler makes it of f16 products).
__device__ __forceinline__ void mma_m16n8k32_e4m3(float (&d)[4], const uint32_t (&a)[4],
                                                  uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four e4m3 in the order of their bytes, rounded to nearest even, saturated at +-448 (ISA "cvt").
// From sm_89 on.
__device__ __forceinline__ uint32_t pack_e4m3(float b0, float b1, float b2, float b3) {
  uint32_t packed;
  asm("{\n\t.reg .b16 low, high;\n\t"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n\t"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n\t"
      "mov.b32 %0, {low, high};\n\t}"
      : "=r"(packed)
      : "f"(b0), "f"(b1), "f"(b2), "f"(b3));
  return packed;
}

}  // namespace ptxbench::ptx
