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
