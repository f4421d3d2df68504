// Inline PTX as kernels for sm_90a are written: scopes, sinks, mbarriers, tensor copies, wgmma,
// setmaxnreg.
#include <cuda.h>

#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }

__device__ void wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred P1;\n"
      "LAB_WAIT: mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra.uni DONE;\n"
      "bra.uni LAB_WAIT;\n"
      "DONE:\n"
      "}\n" ::"r"(barrier),
      "r"(parity));
}

__device__ bool elect() {
  uint32_t elected;
  asm volatile(
      "{ .reg .pred %%px; .reg .b32 %%rx; elect.sync %%rx|%%px, 0xffffffff; selp.b32 %0, 1, 0, "
      "%%px; }"
      : "=r"(elected));
  return elected;
}

__device__ void load(uint32_t to, const CUtensorMap* map, uint32_t barrier, int x, int y,
                     uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::"
      "cluster"
      " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(mask)
      : "memory");
}

__device__ void multiply(float (&d)[32], uint64_t a, uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, "
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 1;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(accumulate));
}

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(256, 1)
    gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* out,
         int k) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  __shared__ __align__(8) uint64_t full[4], empty[4];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&full[i])),
                   "r"(1));
      asm volatile("mbarrier.init.shared.b64 [%0], 2;" ::"r"(shared_address(&empty[i])));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&a));
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    for (int i = 0; i < k && elect(); ++i) {
      uint32_t barrier = shared_address(&full[i & 3]);
      wait(shared_address(&empty[i & 3]), (i >> 2) & 1);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                   "r"(16384));
      load(shared_address(tiles) + (i & 3) * 16384, &a, barrier, i * 64, 0, 3);
      load(shared_address(tiles) + (i & 3) * 16384 + 8192, &b, barrier, i * 64, 0, 3);
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float d[32] = {};
    for (int i = 0; i < k; ++i) {
      wait(shared_address(&full[i & 3]), (i >> 2) & 1);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      uint64_t base = (shared_address(tiles) + (i & 3) * 16384) >> 4 | 1ull << 62;
      multiply(d, base, base + 512, i > 0);
      asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::
                       : "memory");
      asm volatile(
          "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;\n"
          "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote]; }" ::"r"(
              shared_address(&empty[i & 3])),
          "r"(threadIdx.x & 1));
    }
    for (int i = 0; i < 32; ++i) out[threadIdx.x * 32 + i] = d[i];
  }
}

__global__ void pipelines(uint32_t* out, const uint32_t* in, uint64_t policy) {
  __shared__ __align__(128) uint32_t buffer[1024];
  uint32_t s = shared_address(buffer), r[4];
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(s), "l"(in), "r"(8));
  asm volatile("cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;");
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(s));
  asm volatile("stmatrix.sync.aligned.x2.m8n8.shared.b16 [%0], {%1, %2};" ::"r"(s + 16), "r"(r[0]),
               "r"(r[1]));
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%0, %1, %2, %3}, "
      "{%0, %1}, {%0, "
      "%1, %2, %3};"
      : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]));
  asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, _, %2}, [%3+-16], %4;"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2])
               : "l"(in + 16), "l"(policy));
  asm volatile(
      "ld.global.relaxed.gpu.b32 %0, [%1]; st.release.gpu.global.b32 [%1+4], %0;" ::"r"(r[3]),
      "l"(out));
  asm volatile("createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, 0.5;"
               : "=l"(policy));
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], 4096, %2;" ::"l"(out),
      "r"(s), "l"(policy));
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 256;" ::"l"(out),
      "r"(s));
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;");
  asm volatile(
      "red.release.gpu.global.add.u32 [%0], 1; griddepcontrol.launch_dependents;" ::"l"(out));
  asm volatile("bar.sync 1, 128; bar.arrive 2, 256; barrier.sync 3; griddepcontrol.wait;");
  asm volatile(
      "{ .reg .pred p, q; setp.ne.b32 p, %1, 0; setp.lt.and.u32 p|q, %0, 7, !p; @!q bra L; "
      "st.shared.b32 [%1], %0; L: }" ::"r"(r[0]),
      "r"(s));
  out[threadIdx.x] = r[0] + r[1] + r[2] + r[3] + uint32_t(policy);
}
