#pragma once
// D[M,N] = (A * SF_A) (B * SF_B)^T for Hopper (sm_90a): A[M,K] and B[N,K] are e4m3, SF_A fp32 with
// one scale for each row and 128 columns ([M, K/128]), SF_B fp32 with one for each 128x128 block
// ([N/128, K/128]: "1D2D") or likewise for each row ([N, K/128]: "1D1D"), D bf16. K is a multiple
// of 128. Device code.
//
// Problem: scales change every 128 of K, and e4m3 products are summed with few bits inside the
// tensor core, so each block's partial sum has to leave the accumulators, be scaled and be added in
// fp32: 64 FMAs a thread that the next products have to hide.
//
// Method: rings, tiles, clusters and stores are those of gemm_bf16.cuh (a row of a K step is 128
// bytes here too). A consumer multiplies a K block of 64 rows x kBlockN into a second set of
// accumulators, and adds them, scaled, to the sums while the other consumer's products run. With
// Overlap it has two such sets and adds one while its own next block's products run, too (6 to
// 13 % faster). With kBlockM = 256 it has two groups of 64 rows in turn, which halves the reads of
// B. Scales come from global memory one K block ahead; those of the rows of B, which every warp
// needs, are put into the stage by another warp of the producer's warpgroup.

#include "gemm_bf16.cuh"

namespace ptxbench::sm90 {

// Overlap: two sets of accumulators for a block's products, only with kBlockM = 128.
// ScaleRowsB: a scale for each row of B and K block.
template <int BlockM, int Stages, int Cluster, bool Overlap = false, bool ScaleRowsB = false>
struct Fp8GemmConfig {
  static_assert(!Overlap || BlockM == 128);
  static constexpr bool kOverlap = Overlap, kScaleRowsB = ScaleRowsB;
  static constexpr int kBlockM = BlockM, kBlockN = 128, kBlockK = 128;
  static constexpr int kStages = Stages, kCluster = Cluster;
  static constexpr int kGroups = BlockM / 128;  // groups of 64 rows of a consumer
  static constexpr int kConsumerWarps = 8, kThreads = 384;
  static constexpr int kLoadRowsB = kBlockN / Cluster;
  static constexpr int kBytesA = kBlockM * kBlockK, kBytesB = kBlockN * kBlockK;
  static constexpr int kStoreRows = 16, kStoreColumns = 64;
  static constexpr int kStoreBytes = kStoreRows * kStoreColumns * 2;
  static constexpr int kOffsetB = Stages * kBytesA;
  static constexpr int kOffsetC = kOffsetB + Stages * kBytesB;
  static constexpr int kOffsetBarriers = kOffsetC + kConsumerWarps * 2 * kStoreBytes;
  static constexpr int kOffsetScales = kOffsetBarriers + 2 * Stages * 8;
  static constexpr int kScaleBytes = ScaleRowsB ? kBlockN * 4 : 0;  // of a stage
  static constexpr int kSharedBytes = 1024 + kOffsetScales + Stages * kScaleBytes;
  static_assert(kSharedBytes <= 232448, "more shared memory than a Hopper CTA has");
};

struct Fp8Scales {
  const float* a;  // [m, k_blocks]
  const float* b;  // [ceil(n / 128), k_blocks], or [n, k_blocks]
  int n;
};

// This thread's scales of one K block: of its two rows in each group, and B's. Only loaded here;
// the first use must not come before the products are issued.
template <typename Config>
struct Fp8BlockScales {
  float row[Config::kGroups][2], column;

  __device__ __forceinline__ void load(const float* const (&a)[Config::kGroups][2], const float* b,
                                       int block) {
    if constexpr (!Config::kScaleRowsB) column = __ldg(b + block);
#pragma unroll
    for (int group = 0; group < Config::kGroups; ++group) {
      row[group][0] = __ldg(a[group][0] + block);
      row[group][1] = __ldg(a[group][1] + block);
    }
  }
};

template <typename Config>
__device__ __forceinline__ void fp8_issue(float (&part)[Config::kBlockN / 2], uint64_t a,
                                          uint64_t b) {
  ptx::wgmma_fence();
#pragma unroll
  for (int slice = 0; slice < Config::kBlockK / 32; ++slice) {
    ptx::Wgmma<Config::kBlockN>::ss_e4m3(part, a + 2 * slice, b + 2 * slice, slice);
  }
}

template <int Count>
__device__ __forceinline__ void fp8_promote(float (&sums)[Count], const float (&part)[Count],
                                            const float (&row)[2], float column) {
  const float scale[2] = {row[0] * column, row[1] * column};
#pragma unroll
  for (int i = 0; i < Count; ++i) sums[i] = fmaf(part[i], scale[i >> 1 & 1], sums[i]);
}

// Where a stage has the scales of B's rows.
template <typename Config>
__device__ __forceinline__ uint32_t fp8_scales_b(const GemmRing<Config>& ring, int stage) {
  return ring.base + Config::kOffsetScales + stage * Config::kScaleBytes;
}

// The same with a scale for each column, from shared memory at `columns`.
template <int Count>
__device__ __forceinline__ void fp8_promote_columns(float (&sums)[Count],
                                                    const float (&part)[Count],
                                                    const float (&row)[2], uint32_t columns,
                                                    int lane) {
#pragma unroll
  for (int i = 0; i < Count; i += 4) {
    float by[2];
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(by[0]), "=f"(by[1])
                 : "r"(columns + (2 * i + 2 * (lane % 4)) * 4)
                 : "memory");
#pragma unroll
    for (int j = 0; j < 4; ++j)
      sums[i + j] = fmaf(part[i + j], row[j >> 1] * by[j & 1], sums[i + j]);
  }
}

// Adds one K block's products, scaled, and releases its stage if it is the stage's last use.
template <typename Config>
__device__ __forceinline__ void fp8_add(const GemmRing<Config>& ring, int stage, bool last,
                                        float (&sums)[Config::kBlockN / 2],
                                        const float (&part)[Config::kBlockN / 2],
                                        const float (&row)[2], float column, int lane) {
  if constexpr (Config::kScaleRowsB) {
    fp8_promote_columns(sums, part, row, fp8_scales_b(ring, stage), lane);
    __syncwarp();  // all lanes have read their scales
    if (last) gemm_release(ring, stage, lane);
  } else {
    if (last) gemm_release(ring, stage, lane);
    fp8_promote(sums, part, row, column);
  }
}

// By one warp: puts the scales of B's rows into each stage of the ring.
template <typename Config>
__device__ __forceinline__ void fp8_produce_scales(GemmRing<Config> ring, const Fp8Scales& scales,
                                                   const GemmSchedule& schedule, int cluster,
                                                   int clusters, int rank, int lane) {
  constexpr int kOfLane = Config::kBlockN / 32;
  const int units = schedule.units_m * schedule.tiles_n;
  for (int unit = cluster; unit < units; unit += clusters) {
    const int2 tile = gemm_tile<Config>(schedule, unit, rank);
    const float* source[kOfLane];
    float value[kOfLane];
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
      source[i] = scales.b + int64_t{min(tile.y + i * 32 + lane, scales.n - 1)} * schedule.k_steps;
      value[i] = __ldg(source[i]);
    }
    for (int block = 0; block < schedule.k_steps; ++block) {
      const int next = min(block + 1, schedule.k_steps - 1);
      ptx::mbarrier_wait(ring.empty(ring.stage), ring.phase ^ 1);
#pragma unroll
      for (int i = 0; i < kOfLane; ++i) {
        asm volatile(
            "st.shared.f32 [%0], %1;" ::"r"(fp8_scales_b(ring, ring.stage) + (i * 32 + lane) * 4),
            "f"(value[i])
            : "memory");
        value[i] = __ldg(source[i] + next);
      }
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(ring.full());
      ring.advance();
    }
  }
}

// One tile's K loop. Leaves the scaled sums, all stages released.
template <typename Config>
__device__ __forceinline__ void fp8_multiply(GemmRing<Config>& ring,
                                             float (&sums)[Config::kGroups][Config::kBlockN / 2],
                                             const float* const (&scale_a)[Config::kGroups][2],
                                             const float* scale_b, int k_blocks, int consumer,
                                             int lane) {
  constexpr int kCount = Config::kBlockN / 2;
  float part[kCount];
  Fp8BlockScales<Config> scales, next;
  next.load(scale_a, scale_b, 0);
#pragma unroll
  for (int i = 0; i < Config::kGroups * kCount; ++i) sums[i / kCount][i % kCount] = 0;
  for (int block = 0; block < k_blocks; ++block) {
    scales = next;
    next.load(scale_a, scale_b, min(block + 1, k_blocks - 1));
    ptx::mbarrier_wait(ring.full(), ring.phase);
    const uint64_t b = ptx::descriptor_k_major_128b(ring.b());
#pragma unroll
    for (int group = 0; group < Config::kGroups; ++group) {
      fp8_issue<Config>(part,
                        ptx::descriptor_k_major_128b(
                            ring.a() + (consumer * Config::kGroups + group) * 64 * Config::kBlockK),
                        b);
      ptx::wgmma_commit();
      ptx::wgmma_wait<0>();
      ptx::wgmma_pin(part);
      fp8_add(ring, ring.stage, group == Config::kGroups - 1, sums[group], part, scales.row[group],
              scales.column, lane);
    }
    ring.advance();
  }
}

// The same for one group, with the next block's products running while a block's are added.
template <typename Config>
__device__ __forceinline__ void fp8_multiply_overlapped(GemmRing<Config>& ring,
                                                        float (&sums)[1][Config::kBlockN / 2],
                                                        const float* const (&scale_a)[1][2],
                                                        const float* scale_b, int k_blocks,
                                                        int consumer, int lane) {
  constexpr int kCount = Config::kBlockN / 2;
  float even[kCount], odd[kCount];
  Fp8BlockScales<Config> scales, next;
  next.load(scale_a, scale_b, 0);
#pragma unroll
  for (int i = 0; i < kCount; ++i) sums[0][i] = 0;
  auto issue = [&](float(&part)[kCount]) {
    ptx::mbarrier_wait(ring.full(), ring.phase);
    fp8_issue<Config>(part,
                      ptx::descriptor_k_major_128b(ring.a() + consumer * 64 * Config::kBlockK),
                      ptx::descriptor_k_major_128b(ring.b()));
  };
  auto finish = [&](float(&part)[kCount], int stage, int block) {
    ptx::wgmma_pin(part);
    scales = next;
    next.load(scale_a, scale_b, min(block + 1, k_blocks - 1));
    fp8_add(ring, stage, true, sums[0], part, scales.row[0], scales.column, lane);
  };
  auto step = [&](int block, float(&part)[kCount], float(&following)[kCount]) {
    const int stage = ring.stage;
    ring.advance();
    issue(following);
    ptx::wgmma_commit();
    ptx::wgmma_wait<1>();
    finish(part, stage, block);
  };
  auto last = [&](int block, float(&part)[kCount]) {
    ptx::wgmma_wait<0>();
    finish(part, ring.stage, block);
    ring.advance();
  };
  issue(even);
  ptx::wgmma_commit();
  int block = 0;
  for (; block + 2 < k_blocks; block += 2) {
    step(block, even, odd);
    step(block + 1, odd, even);
  }
  if (block + 1 < k_blocks) {
    step(block, even, odd);
    last(block + 1, odd);
  } else {
    last(block, even);
  }
}

template <typename Config>
__device__ __forceinline__ void fp8_consume(GemmRing<Config> ring, const CUtensorMap* map_d,
                                            const GemmSchedule& schedule, const Fp8Scales& scales,
                                            int cluster, int clusters, int rank) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32 - 4, consumer = warp / 4;
  const uint32_t staging = ring.base + Config::kOffsetC + warp * 2 * Config::kStoreBytes;
  const int units = schedule.units_m * schedule.tiles_n;
  float sums[Config::kGroups][Config::kBlockN / 2];
  for (int unit = cluster; unit < units; unit += clusters) {
    const int2 tile = gemm_tile<Config>(schedule, unit, rank);
    const float* scale_a[Config::kGroups][2];
    int row[Config::kGroups];
#pragma unroll
    for (int group = 0; group < Config::kGroups; ++group) {
      row[group] = tile.x + (consumer * Config::kGroups + group) * 64 + warp % 4 * 16;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = min(row[group] + lane / 4 + 8 * half, schedule.m - 1);
        scale_a[group][half] = scales.a + static_cast<int64_t>(r) * schedule.k_steps;
      }
    }
    const float* scale_b = scales.b + static_cast<int64_t>(tile.y / 128) * schedule.k_steps;
    if constexpr (Config::kOverlap) {
      fp8_multiply_overlapped<Config>(ring, sums, scale_a, scale_b, schedule.k_steps, consumer,
                                      lane);
    } else {
      fp8_multiply<Config>(ring, sums, scale_a, scale_b, schedule.k_steps, consumer, lane);
    }
#pragma unroll
    for (int group = 0; group < Config::kGroups; ++group) {
      if (row[group] < schedule.m) {
        gemm_store<Config>(sums[group], staging, map_d, row[group], tile.y, lane);
      }
    }
  }
  if (lane == 0) ptx::bulk_wait<0>();
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    fp8_gemm_kernel(const __grid_constant__ CUtensorMap map_a,
                    const __grid_constant__ CUtensorMap map_b,
                    const __grid_constant__ CUtensorMap map_d, const GemmSchedule schedule,
                    const Fp8Scales scales) {
  extern __shared__ uint8_t shared[];
  GemmRing<Config> ring;
  ring.base = (ptx::smem_address(shared) + 1023) & ~1023u;
  const int rank = Config::kCluster == 1 ? 0 : ptx::cluster_rank();
  const int cluster = blockIdx.x / Config::kCluster, clusters = gridDim.x / Config::kCluster;
  gemm_start(ring, &map_a, &map_b, &map_d, Config::kScaleRowsB ? 2 : 1);

  if (threadIdx.x < 128) {
    ptx::register_decrease<24>();
    if (threadIdx.x < 32) {
      if (ptx::elect_one()) gemm_produce(ring, &map_a, &map_b, schedule, cluster, clusters, rank);
      __syncwarp();
    } else if (Config::kScaleRowsB && threadIdx.x < 64) {
      fp8_produce_scales(ring, scales, schedule, cluster, clusters, rank, threadIdx.x % 32);
    }
    if constexpr (Config::kCluster > 1) ptx::cluster_sync();
  } else {
    ptx::register_increase<240>();
    fp8_consume(ring, &map_d, schedule, scales, cluster, clusters, rank);
    if constexpr (Config::kCluster > 1) {
      __syncwarp();
      ptx::cluster_sync();
    }
  }
}

}  // namespace ptxbench::sm90
