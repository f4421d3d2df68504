#pragma once
// Reductions of rows that cross warps and CTAs of a cluster (PTX ISA: barrier.cluster, mapa).

#include <cstdint>

namespace ptxbench::te::device {

constexpr int kMostCtas = 8;  // of a portable cluster

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
__device__ __forceinline__ uint32_t cluster_index() {  // in the grid, along x
  uint32_t i;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(i));
  return i;
}
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;");
}
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Writes to the same place in the shared memory of CTA `rank`.
__device__ __forceinline__ void store_remote(float2* p, float2 v, uint32_t rank) {
  const uint32_t here = static_cast<uint32_t>(__cvta_generic_to_shared(p));
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(v.x), "f"(v.y)
               : "memory");
}

// The same asynchronously and without a fence, which would wait for every store before it: the
// mbarrier at the same place there counts eight bytes when the value has arrived. PTX ISA,
// st.async.
__device__ __forceinline__ void send_remote(float2* p, float2 v, uint64_t* barrier, uint32_t rank) {
  asm volatile(
      "{\n\t"
      ".reg .b32 to, barrier;\n\t"
      "mapa.shared::cluster.u32 to, %0, %1;\n\t"
      "mapa.shared::cluster.u32 barrier, %2, %1;\n\t"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [to], {%3, %4}, [barrier];\n\t"
      "}" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(p))),
      "r"(rank), "r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier))), "f"(v.x), "f"(v.y)
      : "memory");
}
// Makes the barrier ready for `bytes` from the cluster; one thread calls, before it arrives at the
// cluster barrier that the senders wait at.
__device__ __forceinline__ void expect_remote(uint64_t* barrier, uint32_t bytes) {
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(barrier));
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], 1;\n\t"
      "fence.mbarrier_init.release.cluster;\n\t"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at),
      "r"(bytes)
      : "memory");
}
// Until they have all arrived. Every thread that reads them calls; the barrier serves once.
__device__ __forceinline__ void wait_remote(uint64_t* barrier) {
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "wait%=: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\n\t"
      "@!p bra wait%=;\n\t"
      "}" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier)))
      : "memory");
}

// Sums of eight values over the warp; lane l gets that of value l / 4. Halving the set of values at
// each step takes 9 shuffles instead of 40.
__device__ __forceinline__ float warp_sum8(float (&v)[8]) {
#pragma unroll
  for (int d = 16, half = 4; half > 0; d /= 2, half /= 2) {
    const bool upper = threadIdx.x & d;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float keep = upper ? v[i + half] : v[i], send = upper ? v[i] : v[i + half];
      v[i] = keep + __shfl_xor_sync(~0u, send, d);
    }
  }
  v[0] += __shfl_xor_sync(~0u, v[0], 2);
  v[0] += __shfl_xor_sync(~0u, v[0], 1);
  return v[0];
}

}  // namespace ptxbench::te::device
