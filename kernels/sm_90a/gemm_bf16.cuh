#pragma once
// C[M,N] = A[M,K] * B[N,K]^T in bf16 with fp32 accumulation, for Hopper (sm_90a). Device code.
//
// Problem: one SM multiplies at 2,048 bf16 FMA a cycle, but only if wgmma never waits for memory,
// and a 128x256 tile needs 48 KiB every 1,024 cycles.
//
// Method: persistent CTAs of three warpgroups. One thread of warpgroup 0 (the producer, few
// registers) streams 64-wide K steps of A and B through a ring of `kStages` shared-memory stages
// with TMA; warpgroups 1 and 2 (the consumers, many registers) each own 64 of the tile's 128 rows
// and run wgmma m64nNk16 on the stages. Two mbarriers a stage: `full` (one arrival of the producer
// plus the bytes of the copies) and `empty` (one arrival of every consumer warp that reads the
// stage). A consumer frees a stage only after the next stage's wgmmas are issued, so the tensor
// cores always have work queued. The ring runs on across tiles: while consumers store one tile the
// producer already fills the next one's stages.
//
// With kCluster = 2, two CTAs on neighbouring row tiles need the same B; each loads half of it and
// multicasts it to both, which cuts L2 reads by a third. Then a stage is free only when the
// consumers of *both* CTAs have released it, and no CTA may exit before its peer's last arrival:
// hence the remote arrivals and the cluster barrier at the end.
//
// Results leave through stmatrix into a swizzled staging buffer of 4 KiB a warp, two boxes of 16
// rows x 64 columns (32 where kBlockN is no multiple of 64), and TMA stores, which clip at M and N;
// so ragged sizes need no code of their own. No barrier wider than a warp is needed there.
//
// gemm_bf16_plan.h chooses kBlockN and kCluster for a shape, and says in closed form how often each
// target instruction then executes.

#include <ptxbench/ptx.cuh>

namespace ptxbench::sm90 {

// How the tiles of C are walked; filled by the host.
struct GemmSchedule {
  int m;        // rows of A and C
  int units_m;  // row tiles / kCluster
  int tiles_n;  // column tiles
  int k_steps;  // ceil(K / 64)
  int group_m;  // units walked down before moving one column on: keeps A and B of a wave in L2
};

template <int BlockN, int Stages, int Cluster>
struct GemmConfig {
  static constexpr int kBlockM = 128, kBlockN = BlockN, kBlockK = 64;
  static constexpr int kStages = Stages, kCluster = Cluster;
  static constexpr int kConsumerWarps = 8;
  static constexpr int kThreads = 384;
  static constexpr int kLoadRowsB = BlockN / Cluster;  // rows of B that one CTA loads
  static constexpr int kBytesA = kBlockM * kBlockK * 2, kBytesB = BlockN * kBlockK * 2;
  static constexpr int kStoreRows = 16, kStoreColumns = BlockN % 64 == 0 ? 64 : 32;
  static constexpr int kStoreBytes = kStoreRows * kStoreColumns * 2;
  static constexpr int kOffsetB = Stages * kBytesA;
  static constexpr int kOffsetC = kOffsetB + Stages * kBytesB;
  static constexpr int kOffsetBarriers = kOffsetC + kConsumerWarps * 2 * kStoreBytes;
  // The swizzle pattern follows address bits, so tiles start on 1,024 bytes; the slack pays for
  // rounding up.
  static constexpr int kSharedBytes = 1024 + kOffsetBarriers + 2 * Stages * 8;
  static_assert(kSharedBytes <= 232448, "more shared memory than a Hopper CTA has");
};

template <typename Config>
struct GemmRing {
  uint32_t base;
  int stage = 0;
  uint32_t phase = 0;

  __device__ uint32_t a() const { return base + stage * Config::kBytesA; }
  __device__ uint32_t b() const { return base + Config::kOffsetB + stage * Config::kBytesB; }
  __device__ uint32_t full() const { return base + Config::kOffsetBarriers + stage * 8; }
  __device__ uint32_t empty(int of_stage) const {
    return base + Config::kOffsetBarriers + (Config::kStages + of_stage) * 8;
  }
  __device__ void advance() {
    if (++stage == Config::kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// Row and column (in elements) of this CTA's tile of unit `unit`.
template <typename Config>
__device__ __forceinline__ int2 gemm_tile(const GemmSchedule& schedule, int unit, int rank) {
  const int per_group = schedule.group_m * schedule.tiles_n;
  const int group = unit / per_group;
  const int first = group * schedule.group_m;
  const int rows = min(schedule.group_m, schedule.units_m - first);
  const int rest = unit - group * per_group;
  const int column = rest / rows;
  const int row = first + rest - column * rows;
  return {(row * Config::kCluster + rank) * Config::kBlockM, column * Config::kBlockN};
}

template <typename Config>
__device__ __forceinline__ void gemm_produce(GemmRing<Config> ring, const CUtensorMap* map_a,
                                             const CUtensorMap* map_b, const GemmSchedule& schedule,
                                             int cluster, int clusters, int rank) {
  const int units = schedule.units_m * schedule.tiles_n;
  for (int unit = cluster; unit < units; unit += clusters) {
    const int2 tile = gemm_tile<Config>(schedule, unit, rank);
    for (int step = 0; step < schedule.k_steps; ++step) {
      const int k = step * Config::kBlockK;
      const uint32_t full = ring.full();
      ptx::mbarrier_wait(ring.empty(ring.stage), ring.phase ^ 1);
      // With a peer this announces both halves of B: its copy completes on this CTA's barrier too.
      ptx::mbarrier_arrive_expect_tx(full, Config::kBytesA + Config::kBytesB);
      ptx::tma_load_2d(ring.a(), map_a, full, k, tile.x);
      if constexpr (Config::kCluster == 1) {
        ptx::tma_load_2d(ring.b(), map_b, full, k, tile.y);
      } else {
        const int row_b = rank * Config::kLoadRowsB;
        ptx::tma_load_2d_multicast(ring.b() + row_b * (Config::kBytesB / Config::kBlockN), map_b,
                                   full, k, tile.y + row_b, (1 << Config::kCluster) - 1);
      }
      ring.advance();
    }
  }
}

template <typename Config>
__device__ __forceinline__ void gemm_release(const GemmRing<Config>& ring, int stage, int lane) {
  if constexpr (Config::kCluster == 1) {
    if (lane == 0) ptx::mbarrier_arrive(ring.empty(stage));
  } else {
    if (lane < Config::kCluster) ptx::mbarrier_arrive_rank(ring.empty(stage), lane);
  }
}

// One tile's K loop. Leaves the sums in `sums`, all wgmmas complete, all stages released.
template <typename Config>
__device__ __forceinline__ void gemm_multiply(GemmRing<Config>& ring,
                                              float (&sums)[Config::kBlockN / 2], int k_steps,
                                              int consumer, int lane) {
  int previous = 0;
  for (int step = 0; step < k_steps; ++step) {
    ptx::mbarrier_wait(ring.full(), ring.phase);
    const uint64_t a = ptx::descriptor_k_major_128b(ring.a() + consumer * (Config::kBytesA / 2));
    const uint64_t b = ptx::descriptor_k_major_128b(ring.b());
    ptx::wgmma_fence();
#pragma unroll
    for (int slice = 0; slice < Config::kBlockK / 16; ++slice) {
      ptx::wgmma_f32<Config::kBlockN, __nv_bfloat16>(sums, a + 2 * slice, b + 2 * slice,
                                                     step | slice);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<1>();
    if (step > 0) gemm_release(ring, previous, lane);
    previous = ring.stage;
    ring.advance();
  }
  ptx::wgmma_wait<0>();
  ptx::wgmma_pin(sums);
  gemm_release(ring, previous, lane);
}

// Rounds a warp's 16 x kBlockN sums to bf16 and stores them, a box of 64 or 32 columns (one row of
// the 128- or 64-byte swizzle) at a time, through two buffers.
template <typename Config>
__device__ __forceinline__ void gemm_store(const float (&sums)[Config::kBlockN / 2],
                                           uint32_t staging, const CUtensorMap* map_c, int row,
                                           int column, int lane) {
  constexpr int kBoxes = Config::kBlockN / Config::kStoreColumns;
  constexpr int kColumns = Config::kStoreColumns;
  const uint32_t row_in_box = lane & 15, half = lane >> 4;
  const uint32_t swizzle = kColumns == 64 ? lane & 7 : lane >> 1 & 3;
#pragma unroll
  for (int box = 0; box < kBoxes; ++box) {
    const uint32_t buffer = staging + (box & 1) * Config::kStoreBytes;
    if (lane == 0) {  // Until the store that last read this buffer has: the last but one, but
                      // after an odd number of boxes the last tile's last.
      if (kBoxes % 2 == 1 && box == 0) {
        ptx::bulk_wait_read<0>();
      } else {
        ptx::bulk_wait_read<1>();
      }
    }
    __syncwarp();
#pragma unroll
    for (int pair = 0; pair < kColumns / 16; ++pair) {  // 16 columns each
      const float* s = sums + box * (kColumns / 2) + pair * 8;
      ptx::stmatrix_x4(buffer + row_in_box * (kColumns * 2) + (((pair * 2 + half) ^ swizzle) << 4),
                       ptx::pack_bf16(s[0], s[1]), ptx::pack_bf16(s[2], s[3]),
                       ptx::pack_bf16(s[4], s[5]), ptx::pack_bf16(s[6], s[7]));
    }
    ptx::fence_proxy_async();
    __syncwarp();
    if (lane == 0) {
      ptx::tma_store_2d(map_c, buffer, column + box * Config::kStoreColumns, row);
      ptx::bulk_commit();
    }
  }
}

template <typename Config>
__device__ __forceinline__ void gemm_consume(GemmRing<Config> ring, const CUtensorMap* map_c,
                                             const GemmSchedule& schedule, int cluster,
                                             int clusters, int rank) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32 - 4;
  const uint32_t staging = ring.base + Config::kOffsetC + warp * 2 * Config::kStoreBytes;
  const int units = schedule.units_m * schedule.tiles_n;
  float sums[Config::kBlockN / 2];
  for (int unit = cluster; unit < units; unit += clusters) {
    const int2 tile = gemm_tile<Config>(schedule, unit, rank);
    gemm_multiply<Config>(ring, sums, schedule.k_steps, warp / 4, lane);
    const int row = tile.x + warp * 16;
    if (row < schedule.m) gemm_store<Config>(sums, staging, map_c, row, tile.y, lane);
  }
  if (lane == 0) ptx::bulk_wait<0>();
}

// Initialises the ring's barriers and waits until the whole cluster may use them. `producers`:
// arrivals that make a stage full.
template <typename Config>
__device__ __forceinline__ void gemm_start(const GemmRing<Config>& ring, const CUtensorMap* map_a,
                                           const CUtensorMap* map_b, const CUtensorMap* map_c,
                                           int producers = 1) {
  if (threadIdx.x == 0) {
    ptx::tma_prefetch_descriptor(map_a);
    ptx::tma_prefetch_descriptor(map_b);
    ptx::tma_prefetch_descriptor(map_c);
    for (int stage = 0; stage < Config::kStages; ++stage) {
      ptx::mbarrier_init(ring.base + Config::kOffsetBarriers + stage * 8, producers);
      ptx::mbarrier_init(ring.empty(stage), Config::kConsumerWarps * Config::kCluster);
    }
    ptx::fence_mbarrier_init();
    ptx::fence_proxy_async();
  }
  if constexpr (Config::kCluster == 1) {
    __syncthreads();
  } else {
    ptx::cluster_sync();
  }
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    gemm_bf16_kernel(const __grid_constant__ CUtensorMap map_a,
                     const __grid_constant__ CUtensorMap map_b,
                     const __grid_constant__ CUtensorMap map_c, const GemmSchedule schedule) {
  extern __shared__ uint8_t shared[];
  GemmRing<Config> ring;
  ring.base = (ptx::smem_address(shared) + 1023) & ~1023u;
  const int rank = Config::kCluster == 1 ? 0 : ptx::cluster_rank();
  const int cluster = blockIdx.x / Config::kCluster, clusters = gridDim.x / Config::kCluster;

  gemm_start(ring, &map_a, &map_b, &map_c);

  if (threadIdx.x < 128) {
    ptx::register_decrease<24>();
    if (threadIdx.x < 32) {
      if (ptx::elect_one()) gemm_produce(ring, &map_a, &map_b, schedule, cluster, clusters, rank);
      __syncwarp();
    }
    if constexpr (Config::kCluster > 1) ptx::cluster_sync();
  } else {
    ptx::register_increase<240>();
    gemm_consume(ring, &map_c, schedule, cluster, clusters, rank);
    if constexpr (Config::kCluster > 1) {
      __syncwarp();
      ptx::cluster_sync();
    }
  }
}

}  // namespace ptxbench::sm90
