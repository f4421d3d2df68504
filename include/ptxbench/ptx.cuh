#pragma once
// Thin device wrappers for the Hopper instructions that CUDA C++ does not spell: mbarrier, bulk
// tensor copies (TMA), wgmma, setmaxnreg, stmatrix, clusters. One function is one instruction
// unless its comment says otherwise; nothing here hides a fence or a wait. Section numbers name the
// PTX ISA 9.0 chapter.
//
// Shared-memory operands are 32-bit addresses (`smem_address`), in the executing CTA's own window
// unless the function says "cluster". Target sm_90a; `wgmma` and `setmaxnreg` do not exist on plain
// sm_90.
//
// What the type system cannot say, and the ISA demands:
//  - mbarrier_init is ordinary memory: fence_mbarrier_init + fence_proxy_async, then a CTA or
//  cluster
//    barrier, before another thread or a bulk copy uses the barrier.
//  - Generic writes (st.shared, stmatrix) are invisible to TMA and wgmma until fence_proxy_async,
//  executed
//    by each *writing* thread, and a barrier between writers and the issuing thread.
//  - Accumulators of wgmma in flight must not be touched until wgmma_wait<N> covers their group.
//  - A CTA of a cluster must not exit while a peer may still arrive on its barriers or copy into
//  it.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include <ptxbench/wgmma.cuh>

namespace ptxbench::ptx {

// ---- Addresses and identity (ISA "Special Registers", "mapa", "elect.sync")
// ---------------------------

__device__ __forceinline__ uint32_t smem_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// The shared::cluster address of the same variable in CTA `rank` of this cluster.
__device__ __forceinline__ uint32_t map_to_rank(uint32_t address, uint32_t rank) {
  uint32_t mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ uint32_t cluster_size() {
  uint32_t size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}

// Index of this cluster in the grid along x, and the number of clusters.
__device__ __forceinline__ uint32_t cluster_id_x() {
  uint32_t id;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(id));
  return id;
}

__device__ __forceinline__ uint32_t cluster_count_x() {
  uint32_t count;
  asm("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
  return count;
}

// True in exactly one lane. All 32 lanes of the warp must execute it together.
__device__ __forceinline__ bool elect_one() {
  uint32_t elected;
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "elect.sync _|p, 0xffffffff;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t"
      "}"
      : "=r"(elected));
  return elected != 0;
}

// ---- Barriers of threads (ISA "bar/barrier", "barrier.cluster")
// ---------------------------------------

// Named barrier `id` (1..15; 0 is __syncthreads) over `threads`, a multiple of 32.
__device__ __forceinline__ void named_barrier_sync(uint32_t id, uint32_t threads) {
  asm volatile("barrier.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void named_barrier_arrive(uint32_t id, uint32_t threads) {
  asm volatile("barrier.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// All threads of all CTAs of the cluster, whole warps converged.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

// ---- Fences (ISA "membar / fence")
// ---------------------------------------------------------------------

// Orders this thread's generic-proxy accesses of shared memory with later async-proxy ones.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The same for every state space.
__device__ __forceinline__ void fence_proxy_async_all() {
  asm volatile("fence.proxy.async;" ::: "memory");
}

// Makes mbarrier.init visible to the cluster.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void fence_acq_rel_cluster() {
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
}

__device__ __forceinline__ void fence_acq_rel_gpu() {
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

// A counter in global memory that CTAs hand on (ISA "ld", "st", "Memory Consistency Model").
__device__ __forceinline__ uint32_t load_acquire_gpu(const uint32_t* address) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(address))
               : "memory");
  return value;
}

__device__ __forceinline__ void store_release_gpu(uint32_t* address, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(address)),
               "r"(value)
               : "memory");
}

// ---- mbarrier (ISA "Parallel Synchronization ... mbarrier")
// ---------------------------------------------

// `count` arrivals complete a phase (together with the transaction bytes, if any are expected).
__device__ __forceinline__ void mbarrier_init(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void mbarrier_invalidate(uint32_t barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives once and announces `bytes` of asynchronous copies for the current phase.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
               "r"(bytes)
               : "memory");
}

// Arrives on the barrier at the same offset in CTA `rank` (own rank allowed). Two instructions.
// Without a scope qualifier the release covers this CTA only: right where the arrival frees a
// buffer whose readers were wgmma or bulk copies, already waited for, and no ordinary store has to
// become visible to the peer.
__device__ __forceinline__ void mbarrier_arrive_rank(uint32_t barrier, uint32_t rank) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(map_to_rank(barrier, rank))
               : "memory");
}

// The same, releasing this thread's ordinary stores to the cluster. ptxas puts a GPU-wide memory
// barrier before it, several hundred nanoseconds: not for a ring's inner loop.
__device__ __forceinline__ void mbarrier_arrive_rank_release(uint32_t barrier, uint32_t rank) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                   map_to_rank(barrier, rank))
               : "memory");
}

// One attempt, which may suspend the thread for a while. True once the phase with `parity` is
// complete; a fresh barrier counts as having completed parity 1.
__device__ __forceinline__ bool mbarrier_try_wait(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t"
      "}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

// The same, acquiring ordinary stores released by other CTAs of the cluster (drops the L1 cache).
__device__ __forceinline__ bool mbarrier_try_wait_cluster(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t"
      "}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, uint32_t parity) {
  while (!mbarrier_try_wait(barrier, parity)) {
  }
}

__device__ __forceinline__ void mbarrier_wait_cluster(uint32_t barrier, uint32_t parity) {
  while (!mbarrier_try_wait_cluster(barrier, parity)) {
  }
}

// ---- Bulk tensor copies (ISA "cp.async.bulk.tensor", "prefetch", "cp.async.bulk.commit_group")
// ----------

// Cache-eviction policies as createpolicy encodes them.
inline constexpr uint64_t kEvictNormal = 0x1000000000000000ull;
inline constexpr uint64_t kEvictFirst = 0x12F0000000000000ull;
inline constexpr uint64_t kEvictLast = 0x14F0000000000000ull;

__device__ __forceinline__ void tma_prefetch_descriptor(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Box at (x, y) -> shared memory at `destination`; completes box bytes on `barrier`, out of bounds
// included.
__device__ __forceinline__ void tma_load_2d(uint32_t destination, const CUtensorMap* map,
                                            uint32_t barrier, int32_t x, int32_t y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(destination),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}

__device__ __forceinline__ void tma_load_2d_hint(uint32_t destination, const CUtensorMap* map,
                                                 uint32_t barrier, int32_t x, int32_t y,
                                                 uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(destination),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "l"(policy)
      : "memory");
}

__device__ __forceinline__ void tma_load_3d(uint32_t destination, const CUtensorMap* map,
                                            uint32_t barrier, int32_t x, int32_t y, int32_t z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(destination),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
      : "memory");
}

// The box lands at the same offset in every CTA whose bit is set in `cta_mask`, and completes on
// the barrier at the same offset in each of them.
__device__ __forceinline__ void tma_load_2d_multicast(uint32_t destination, const CUtensorMap* map,
                                                      uint32_t barrier, int32_t x, int32_t y,
                                                      uint16_t cta_mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(destination),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(cta_mask)
      : "memory");
}

__device__ __forceinline__ void tma_load_2d_multicast_hint(uint32_t destination,
                                                           const CUtensorMap* map, uint32_t barrier,
                                                           int32_t x, int32_t y, uint16_t cta_mask,
                                                           uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster.L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5, %6;" ::"r"(destination),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(cta_mask), "l"(policy)
      : "memory");
}

// `bytes` (a multiple of 16) of contiguous global memory, both 16-byte aligned; completes them on
// `barrier`.
__device__ __forceinline__ void bulk_load(uint32_t destination, const void* source, uint32_t bytes,
                                          uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(destination),
      "l"(__cvta_generic_to_global(source)), "r"(bytes), "r"(barrier)
      : "memory");
}

// Shared memory -> box at (x, y), clipped at the tensor's edges. Completion by bulk groups.
__device__ __forceinline__ void tma_store_2d(const CUtensorMap* map, uint32_t source, int32_t x,
                                             int32_t y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(source), "r"(x), "r"(y)
      : "memory");
}

__device__ __forceinline__ void tma_store_3d(const CUtensorMap* map, uint32_t source, int32_t x,
                                             int32_t y, int32_t z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(
          map),
      "r"(source), "r"(x), "r"(y), "r"(z)
      : "memory");
}

__device__ __forceinline__ void tma_store_2d_hint(const CUtensorMap* map, uint32_t source,
                                                  int32_t x, int32_t y, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint "
      "[%0, {%2, %3}], [%1], %4;" ::"l"(map),
      "r"(source), "r"(x), "r"(y), "l"(policy)
      : "memory");
}

// Adds `bytes` (a multiple of 16) of fp32 from shared to global memory, both 16-byte aligned.
// Completion by bulk groups; additions of different copies come in any order.
__device__ __forceinline__ void bulk_reduce_add_f32(float* destination, uint32_t source,
                                                    uint32_t bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(destination)),
               "r"(source), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void bulk_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// At most N of this thread's bulk groups may still be reading their shared-memory source.
template <int N>
__device__ __forceinline__ void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

// At most N of this thread's bulk groups may be incomplete (their writes not yet made).
template <int N>
__device__ __forceinline__ void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}

// ---- Registers and matrix moves (ISA "setmaxnreg", "stmatrix")
// ------------------------------------------

// All warps of a warpgroup; N a multiple of 8 in 24..256. Needs a register cap
// (__launch_bounds__(n, 1)).
template <int N>
__device__ __forceinline__ void register_increase() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N>
__device__ __forceinline__ void register_decrease() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

// Four 8x8 matrices of 16-bit elements; lane l gives the 16-byte row l%8 of matrix l/8.
__device__ __forceinline__ void stmatrix_x4(uint32_t row_address, uint32_t m0, uint32_t m1,
                                            uint32_t m2, uint32_t m3) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address),
      "r"(m0), "r"(m1), "r"(m2), "r"(m3)
      : "memory");
}

__device__ __forceinline__ void stmatrix_x4_trans(uint32_t row_address, uint32_t m0, uint32_t m1,
                                                  uint32_t m2, uint32_t m3) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address),
      "r"(m0), "r"(m1), "r"(m2), "r"(m3)
      : "memory");
}

// 2^x, relative error 2^-22; subnormal results are zero (ISA "ex2").
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

__device__ __forceinline__ uint32_t pack_f16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// ---- wgmma (ISA "Asynchronous Warpgroup Level Matrix Instructions")
// --------------------------------------

// Matrix descriptor of a K-major tile stored with the 128-byte swizzle: rows of 64 16-bit elements,
// groups of 8 rows 1024 bytes apart. A K step of 16 elements inside the row is `descriptor + 2`.
__device__ __forceinline__ uint64_t descriptor_k_major_128b(uint32_t address) {
  constexpr uint64_t kSwizzle128 = 1ull << 62;
  constexpr uint64_t kStrideBytes = 1024;
  constexpr uint64_t kLeadingBytes = 16;  // ignored by this layout
  return kSwizzle128 | (kStrideBytes >> 4) << 32 | (kLeadingBytes >> 4) << 16 |
         static_cast<uint64_t>((address & 0x3FFFF) >> 4);
}

// Any layout: offsets in bytes; swizzle 0 none, 1 128B, 2 64B, 3 32B.
__device__ __forceinline__ uint64_t descriptor(uint32_t address, uint32_t leading_bytes,
                                               uint32_t stride_bytes, uint32_t swizzle,
                                               uint32_t base_offset = 0) {
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) |
         static_cast<uint64_t>((leading_bytes & 0x3FFFF) >> 4) << 16 |
         static_cast<uint64_t>((stride_bytes & 0x3FFFF) >> 4) << 32 |
         static_cast<uint64_t>(base_offset & 7) << 49 | static_cast<uint64_t>(swizzle & 3) << 62;
}

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Ties the accumulators to this point of the program: the compiler takes d as ready when the wgmma
// is issued and could otherwise move reads of it above the wait. Emits no instruction.
template <int Count>
__device__ __forceinline__ void wgmma_pin(float (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

}  // namespace ptxbench::ptx
