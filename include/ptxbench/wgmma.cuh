#pragma once
// wgmma.mma_async (ISA "Asynchronous Warpgroup Level Matrix Instructions"), fp32 accumulators. One
// function is one instruction; fence, commit and wait (ptx.cuh) are the caller's. Target sm_90a.
//
// D[64,N] (+)= A[64,K] * B[N,K]^T with K = 16 (16-bit types) or 32 (8-bit types). Thread t of the
// warpgroup holds in d[r] the element
//   row 16*(t/32) + (t%32)/4 + 8*((r>>1)&1),  column 8*(r>>2) + 2*(t%4) + (r&1).
// A from registers, 16-bit types: a[0] and a[2] belong to row (t%32)/4 of the warp's 16 rows, a[1]
// and a[3] to the row 8 below; a[0], a[1] hold columns 2*(t%4)+{0,1}, a[2], a[3] those 8 further
// on. So d[8*i .. 8*i+7], packed pair by pair, are columns 16*i .. 16*i+15 as the A of another
// product. 8-bit types: the same with twice the columns, four to a register, a[2] and a[3] those 16
// further on; a thread's accumulators are other columns than its A, so B's K must be permuted to
// match. Descriptors: see ptx.cuh. TransA, TransB: the operand lies MN-major (16-bit types only).
// `accumulate` 0 overwrites D.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace ptxbench::ptx {

template <int N>
struct Wgmma;

#define PTXBENCH_W0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define PTXBENCH_W1 "%8, %9, %10, %11, %12, %13, %14, %15"
#define PTXBENCH_W2 "%16, %17, %18, %19, %20, %21, %22, %23"
#define PTXBENCH_W3 "%24, %25, %26, %27, %28, %29, %30, %31"
#define PTXBENCH_W4 "%32, %33, %34, %35, %36, %37, %38, %39"
#define PTXBENCH_W5 "%40, %41, %42, %43, %44, %45, %46, %47"
#define PTXBENCH_W6 "%48, %49, %50, %51, %52, %53, %54, %55"
#define PTXBENCH_W7 "%56, %57, %58, %59, %60, %61, %62, %63"
#define PTXBENCH_W8 "%64, %65, %66, %67, %68, %69, %70, %71"
#define PTXBENCH_W9 "%72, %73, %74, %75, %76, %77, %78, %79"
#define PTXBENCH_W10 "%80, %81, %82, %83, %84, %85, %86, %87"
#define PTXBENCH_W11 "%88, %89, %90, %91, %92, %93, %94, %95"
#define PTXBENCH_W12 "%96, %97, %98, %99, %100, %101, %102, %103"
#define PTXBENCH_W13 "%104, %105, %106, %107, %108, %109, %110, %111"
#define PTXBENCH_W14 "%112, %113, %114, %115, %116, %117, %118, %119"
#define PTXBENCH_W15 "%120, %121, %122, %123, %124, %125, %126, %127"

#define PTXBENCH_D8(i)                                                                        \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define PTXBENCH_WGMMA_R32 PTXBENCH_W0 ", " PTXBENCH_W1
#define PTXBENCH_WGMMA_D32 PTXBENCH_D8(0), PTXBENCH_D8(8)
#define PTXBENCH_WGMMA_R64 PTXBENCH_W0 ", " PTXBENCH_W1 ", " PTXBENCH_W2 ", " PTXBENCH_W3
#define PTXBENCH_WGMMA_D64 PTXBENCH_D8(0), PTXBENCH_D8(8), PTXBENCH_D8(16), PTXBENCH_D8(24)
#define PTXBENCH_WGMMA_R80 \
  PTXBENCH_W0 ", " PTXBENCH_W1 ", " PTXBENCH_W2 ", " PTXBENCH_W3 ", " PTXBENCH_W4
#define PTXBENCH_WGMMA_D80 \
  PTXBENCH_D8(0), PTXBENCH_D8(8), PTXBENCH_D8(16), PTXBENCH_D8(24), PTXBENCH_D8(32)
#define PTXBENCH_WGMMA_R96 \
  PTXBENCH_W0 ", " PTXBENCH_W1 ", " PTXBENCH_W2 ", " PTXBENCH_W3 ", " PTXBENCH_W4 ", " PTXBENCH_W5
#define PTXBENCH_WGMMA_D96 \
  PTXBENCH_D8(0), PTXBENCH_D8(8), PTXBENCH_D8(16), PTXBENCH_D8(24), PTXBENCH_D8(32), PTXBENCH_D8(40)
#define PTXBENCH_WGMMA_R128                                                                        \
  PTXBENCH_W0 ", " PTXBENCH_W1 ", " PTXBENCH_W2 ", " PTXBENCH_W3 ", " PTXBENCH_W4 ", " PTXBENCH_W5 \
              ", " PTXBENCH_W6 ", " PTXBENCH_W7
#define PTXBENCH_WGMMA_D128                                                          \
  PTXBENCH_D8(0), PTXBENCH_D8(8), PTXBENCH_D8(16), PTXBENCH_D8(24), PTXBENCH_D8(32), \
      PTXBENCH_D8(40), PTXBENCH_D8(48), PTXBENCH_D8(56)
#define PTXBENCH_WGMMA_R160                                                                        \
  PTXBENCH_W0 ", " PTXBENCH_W1 ", " PTXBENCH_W2 ", " PTXBENCH_W3 ", " PTXBENCH_W4 ", " PTXBENCH_W5 \
              ", " PTXBENCH_W6 ", " PTXBENCH_W7 ", " PTXBENCH_W8 ", " PTXBENCH_W9
#define PTXBENCH_WGMMA_D160                                                          \
  PTXBENCH_D8(0), PTXBENCH_D8(8), PTXBENCH_D8(16), PTXBENCH_D8(24), PTXBENCH_D8(32), \
      PTXBENCH_D8(40), PTXBENCH_D8(48), PTXBENCH_D8(56), PTXBENCH_D8(64), PTXBENCH_D8(72)
#define PTXBENCH_WGMMA_R176                                                                        \
  PTXBENCH_W0 ", " PTXBENCH_W1 ", " PTXBENCH_W2 ", " PTXBENCH_W3 ", " PTXBENCH_W4 ", " PTXBENCH_W5 \
              ", " PTXBENCH_W6 ", " PTXBENCH_W7 ", " PTXBENCH_W8 ", " PTXBENCH_W9                  \
              ", " PTXBENCH_W10
#define PTXBENCH_WGMMA_D176                                                                \
  PTXBENCH_D8(0), PTXBENCH_D8(8), PTXBENCH_D8(16), PTXBENCH_D8(24), PTXBENCH_D8(32),       \
      PTXBENCH_D8(40), PTXBENCH_D8(48), PTXBENCH_D8(56), PTXBENCH_D8(64), PTXBENCH_D8(72), \
      PTXBENCH_D8(80)
#define PTXBENCH_WGMMA_R192                                                                        \
  PTXBENCH_W0 ", " PTXBENCH_W1 ", " PTXBENCH_W2 ", " PTXBENCH_W3 ", " PTXBENCH_W4 ", " PTXBENCH_W5 \
              ", " PTXBENCH_W6 ", " PTXBENCH_W7 ", " PTXBENCH_W8 ", " PTXBENCH_W9                  \
              ", " PTXBENCH_W10 ", " PTXBENCH_W11
#define PTXBENCH_WGMMA_D192                                                                \
  PTXBENCH_D8(0), PTXBENCH_D8(8), PTXBENCH_D8(16), PTXBENCH_D8(24), PTXBENCH_D8(32),       \
      PTXBENCH_D8(40), PTXBENCH_D8(48), PTXBENCH_D8(56), PTXBENCH_D8(64), PTXBENCH_D8(72), \
      PTXBENCH_D8(80), PTXBENCH_D8(88)
#define PTXBENCH_WGMMA_R256                                                                        \
  PTXBENCH_W0 ", " PTXBENCH_W1 ", " PTXBENCH_W2 ", " PTXBENCH_W3 ", " PTXBENCH_W4 ", " PTXBENCH_W5 \
              ", " PTXBENCH_W6 ", " PTXBENCH_W7 ", " PTXBENCH_W8 ", " PTXBENCH_W9                  \
              ", " PTXBENCH_W10 ", " PTXBENCH_W11 ", " PTXBENCH_W12 ", " PTXBENCH_W13              \
              ", " PTXBENCH_W14 ", " PTXBENCH_W15
#define PTXBENCH_WGMMA_D256                                                                  \
  PTXBENCH_D8(0), PTXBENCH_D8(8), PTXBENCH_D8(16), PTXBENCH_D8(24), PTXBENCH_D8(32),         \
      PTXBENCH_D8(40), PTXBENCH_D8(48), PTXBENCH_D8(56), PTXBENCH_D8(64), PTXBENCH_D8(72),   \
      PTXBENCH_D8(80), PTXBENCH_D8(88), PTXBENCH_D8(96), PTXBENCH_D8(104), PTXBENCH_D8(112), \
      PTXBENCH_D8(120)

// i0..i6: numbers of the operands behind the accumulators.
#define PTXBENCH_WGMMA_OPCODE(n, k, type) \
  "wgmma.mma_async.sync.aligned.m64n" #n "k" #k ".f32." type "." type " {"
#define PTXBENCH_WGMMA_SS(n, k, type, name, i0, i1, i2)                                       \
  __device__ __forceinline__ static void name(float(&d)[n / 2], uint64_t a, uint64_t b,       \
                                              int accumulate) {                               \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " i2 ", 0;\n\t" PTXBENCH_WGMMA_OPCODE( \
                     n, k, type) PTXBENCH_WGMMA_R##n "}, " i0 ", " i1 ", p, 1, 1;\n\t}"       \
                 : PTXBENCH_WGMMA_D##n                                                        \
                 : "l"(a), "l"(b), "r"(accumulate));                                          \
  }
#define PTXBENCH_WGMMA_SS_TRANS(n, type, name, i0, i1, i2, i3, i4)                      \
  template <int TransA, int TransB>                                                     \
  __device__ __forceinline__ static void name(float(&d)[n / 2], uint64_t a, uint64_t b, \
                                              int accumulate) {                         \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " i2                             \
                 ", 0;\n\t" PTXBENCH_WGMMA_OPCODE(n, 16, type) PTXBENCH_WGMMA_R##n      \
                 "}, " i0 ", " i1 ", p, 1, 1, " i3 ", " i4 ";\n\t}"                     \
                 : PTXBENCH_WGMMA_D##n                                                  \
                 : "l"(a), "l"(b), "r"(accumulate), "n"(TransA), "n"(TransB));          \
  }
#define PTXBENCH_WGMMA_RS_TRANS(n, type, name, i0, i1, i2, i3, i4, i5, i6)                         \
  template <int TransB>                                                                            \
  __device__ __forceinline__ static void name(float(&d)[n / 2], const uint32_t(&a)[4], uint64_t b, \
                                              int accumulate) {                                    \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " i5                                        \
                 ", 0;\n\t" PTXBENCH_WGMMA_OPCODE(n, 16, type) PTXBENCH_WGMMA_R##n                 \
                 "}, {" i0 ", " i1 ", " i2 ", " i3 "}, " i4 ", p, 1, 1, " i6 ";\n\t}"              \
                 : PTXBENCH_WGMMA_D##n                                                             \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate),            \
                   "n"(TransB));                                                                   \
  }
#define PTXBENCH_WGMMA_RS(n, k, type, name, i0, i1, i2, i3, i4, i5)                                \
  __device__ __forceinline__ static void name(float(&d)[n / 2], const uint32_t(&a)[4], uint64_t b, \
                                              int accumulate) {                                    \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " i5                                        \
                 ", 0;\n\t" PTXBENCH_WGMMA_OPCODE(n, k, type) PTXBENCH_WGMMA_R##n                  \
                 "}, {" i0 ", " i1 ", " i2 ", " i3 "}, " i4 ", p, 1, 1;\n\t}"                      \
                 : PTXBENCH_WGMMA_D##n                                                             \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));           \
  }
#define PTXBENCH_WGMMA(n, i0, i1, i2, i3, i4, i5, i6)                       \
  template <>                                                               \
  struct Wgmma<n> {                                                         \
    PTXBENCH_WGMMA_SS_TRANS(n, "bf16", ss_bf16, i0, i1, i2, i3, i4)         \
    PTXBENCH_WGMMA_SS_TRANS(n, "f16", ss_f16, i0, i1, i2, i3, i4)           \
    PTXBENCH_WGMMA_RS_TRANS(n, "bf16", rs_bf16, i0, i1, i2, i3, i4, i5, i6) \
    PTXBENCH_WGMMA_SS(n, 32, "e4m3", ss_e4m3, i0, i1, i2)                   \
    PTXBENCH_WGMMA_RS(n, 32, "e4m3", rs_e4m3, i0, i1, i2, i3, i4, i5)       \
  };

PTXBENCH_WGMMA(32, "%16", "%17", "%18", "%19", "%20", "%21", "%22")
PTXBENCH_WGMMA(64, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
PTXBENCH_WGMMA(80, "%40", "%41", "%42", "%43", "%44", "%45", "%46")
PTXBENCH_WGMMA(96, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
PTXBENCH_WGMMA(128, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
PTXBENCH_WGMMA(160, "%80", "%81", "%82", "%83", "%84", "%85", "%86")
PTXBENCH_WGMMA(176, "%88", "%89", "%90", "%91", "%92", "%93", "%94")
PTXBENCH_WGMMA(192, "%96", "%97", "%98", "%99", "%100", "%101", "%102")
PTXBENCH_WGMMA(256, "%128", "%129", "%130", "%131", "%132", "%133", "%134")

#undef PTXBENCH_WGMMA
#undef PTXBENCH_WGMMA_RS_TRANS
#undef PTXBENCH_WGMMA_SS_TRANS
#undef PTXBENCH_WGMMA_SS
#undef PTXBENCH_WGMMA_RS
#undef PTXBENCH_WGMMA_OPCODE
#undef PTXBENCH_WGMMA_R32
#undef PTXBENCH_WGMMA_D32
#undef PTXBENCH_WGMMA_R64
#undef PTXBENCH_WGMMA_D64
#undef PTXBENCH_WGMMA_R80
#undef PTXBENCH_WGMMA_D80
#undef PTXBENCH_WGMMA_R96
#undef PTXBENCH_WGMMA_D96
#undef PTXBENCH_WGMMA_R128
#undef PTXBENCH_WGMMA_D128
#undef PTXBENCH_WGMMA_R160
#undef PTXBENCH_WGMMA_D160
#undef PTXBENCH_WGMMA_R176
#undef PTXBENCH_WGMMA_D176
#undef PTXBENCH_WGMMA_R192
#undef PTXBENCH_WGMMA_D192
#undef PTXBENCH_WGMMA_R256
#undef PTXBENCH_WGMMA_D256
#undef PTXBENCH_D8
#undef PTXBENCH_W0
#undef PTXBENCH_W1
#undef PTXBENCH_W2
#undef PTXBENCH_W3
#undef PTXBENCH_W4
#undef PTXBENCH_W5
#undef PTXBENCH_W6
#undef PTXBENCH_W7
#undef PTXBENCH_W8
#undef PTXBENCH_W9
#undef PTXBENCH_W10
#undef PTXBENCH_W11
#undef PTXBENCH_W12
#undef PTXBENCH_W13
#undef PTXBENCH_W14
#undef PTXBENCH_W15

// The K-major product of two tiles of 16-bit type `Type`.
template <int N, typename Type>
__device__ __forceinline__ void wgmma_f32(float (&d)[N / 2], uint64_t a, uint64_t b,
                                          int accumulate) {
  if constexpr (std::is_same_v<Type, __half>) {
    Wgmma<N>::template ss_f16<0, 0>(d, a, b, accumulate);
  } else {
    static_assert(std::is_same_v<Type, __nv_bfloat16>);
    Wgmma<N>::template ss_bf16<0, 0>(d, a, b, accumulate);
  }
}

}  // namespace ptxbench::ptx
