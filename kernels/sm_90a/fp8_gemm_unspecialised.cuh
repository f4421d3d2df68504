#pragma once
// The block-scaled FP8 GEMM for Hopper, the second way: no warpgroup is set apart for copies, CTAs
// are not persistent. Same tensors as fp8_gemm.cuh; scales of B for 128x128 blocks or, with
// ScaleRowsB, for each row of B. Device code.
//
// Method: a CTA of two warpgroups owns 128x64 of D, a warpgroup 64x64 of it; two CTAs share an SM,
// so that one's additions run beside the other's products. One thread asks TMA for a later K block
// while its own block is being multiplied. A warpgroup multiplies a K block into fresh
// accumulators and adds them, scaled, to its sums. Results are stored from the registers.

#include <ptxbench/ptx.cuh>

#include "fp8_gemm.cuh"

namespace ptxbench::sm90 {

template <int Stages, bool ScaleRowsB>
struct UnspecialisedFp8Config {
  static constexpr int kBlockM = 128, kBlockN = 64, kBlockK = 128;
  static constexpr int kStages = Stages, kThreads = 256, kCtas = 2;
  static constexpr bool kScaleRowsB = ScaleRowsB;
  static constexpr int kBytesA = kBlockM * kBlockK, kBytesB = kBlockN * kBlockK;
  static constexpr int kOffsetB = Stages * kBytesA;
  static constexpr int kOffsetBarriers = kOffsetB + Stages * kBytesB;
  static constexpr int kSharedBytes = 1024 + kOffsetBarriers + 16 * Stages;
  static_assert(kCtas * (kSharedBytes + 1024) <= 233472, "more shared memory than an SM has");
};

struct UnspecialisedFp8Arguments {
  Fp8Scales scales;
  __nv_bfloat16* d;  // [m, n], 4-byte aligned
  int m, n, k_blocks;
};

template <typename Config>
struct UnspecialisedFp8Ring {
  uint32_t base;

  __device__ static int stage(int block) { return block % Config::kStages; }
  __device__ static uint32_t phase(int block) { return block / Config::kStages & 1; }
  __device__ uint32_t a(int block) const { return base + stage(block) * Config::kBytesA; }
  __device__ uint32_t b(int block) const {
    return base + Config::kOffsetB + stage(block) * Config::kBytesB;
  }
  __device__ uint32_t full(int block) const {
    return base + Config::kOffsetBarriers + stage(block) * 16;
  }
  __device__ uint32_t empty(int block) const { return full(block) + 8; }

  // By one thread.
  __device__ void load(const CUtensorMap* map_a, const CUtensorMap* map_b, int block, int row,
                       int column) const {
    ptx::mbarrier_wait(empty(block), phase(block) ^ 1);
    ptx::mbarrier_arrive_expect_tx(full(block), Config::kBytesA + Config::kBytesB);
    ptx::tma_load_2d(a(block), map_a, full(block), block * Config::kBlockK, row);
    ptx::tma_load_2d(b(block), map_b, full(block), block * Config::kBlockK, column);
  }
};

// Adds a K block's products to the sums: those of rows lane/4 and 8 below times `row`, and times
// B's scale, which is one for all columns or each column's own, read through `columns`.
template <typename Config, int Count>
__device__ __forceinline__ void add_scaled(float (&sums)[Count], const float (&part)[Count],
                                           const float (&row)[2], const float* scale_b, int column,
                                           int n, int k_blocks, int block) {
  if constexpr (!Config::kScaleRowsB) {
    const float by = __ldg(scale_b + static_cast<int64_t>(column / 128) * k_blocks + block);
    fp8_promote(sums, part, row, by);
  } else {
#pragma unroll
    for (int i = 0; i < Count; i += 4) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int c = min(column + 2 * i + odd, n - 1);
        const float by = __ldg(scale_b + static_cast<int64_t>(c) * k_blocks + block);
        sums[i + odd] = fmaf(part[i + odd], row[0] * by, sums[i + odd]);
        sums[i + odd + 2] = fmaf(part[i + odd + 2], row[1] * by, sums[i + odd + 2]);
      }
    }
  }
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kCtas)
    fp8_gemm_unspecialised_kernel(const __grid_constant__ CUtensorMap map_a,
                                  const __grid_constant__ CUtensorMap map_b,
                                  const UnspecialisedFp8Arguments args) {
  constexpr int kCount = Config::kBlockN / 2;
  extern __shared__ uint8_t shared[];
  const UnspecialisedFp8Ring<Config> ring{(ptx::smem_address(shared) + 1023) & ~1023u};
  const int row0 = blockIdx.x * Config::kBlockM, column0 = blockIdx.y * Config::kBlockN;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Config::kStages; ++stage) {
      ptx::mbarrier_init(ring.full(stage), 1);
      ptx::mbarrier_init(ring.empty(stage), Config::kThreads / 32);
    }
    ptx::fence_mbarrier_init();
    ptx::fence_proxy_async();
    for (int block = 0; block < min(Config::kStages - 1, args.k_blocks); ++block) {
      ring.load(&map_a, &map_b, block, row0, column0);
    }
  }
  __syncthreads();

  const int lane = threadIdx.x % 32, warpgroup = threadIdx.x / 128;
  const int row = row0 + threadIdx.x / 32 * 16 + lane / 4, column = column0 + 2 * (lane % 4);
  const float* scale_a[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    scale_a[half] =
        args.scales.a + static_cast<int64_t>(min(row + 8 * half, args.m - 1)) * args.k_blocks;
  }
  float sums[kCount], part[kCount];
#pragma unroll
  for (float& sum : sums) sum = 0;
  for (int block = 0; block < args.k_blocks; ++block) {
    ptx::mbarrier_wait(ring.full(block), ring.phase(block));
    const uint64_t a =
        ptx::descriptor_k_major_128b(ring.a(block) + warpgroup * 64 * Config::kBlockK);
    const uint64_t b = ptx::descriptor_k_major_128b(ring.b(block));
    fp8_issue<Config>(part, a, b);
    ptx::wgmma_commit();
    const int later = block + Config::kStages - 1;  // lies where the last block did
    if (threadIdx.x == 0 && later < args.k_blocks) {
      ring.load(&map_a, &map_b, later, row0, column0);
    }
    __syncwarp();
    const float scales[2] = {__ldg(scale_a[0] + block), __ldg(scale_a[1] + block)};
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(part);
    if (lane == 0) ptx::mbarrier_arrive(ring.empty(block));
    add_scaled<Config>(sums, part, scales, args.scales.b, column, args.n, args.k_blocks, block);
  }
#pragma unroll
  for (int i = 0; i < kCount; i += 2) {
    const int r = row + 8 * (i >> 1 & 1), c = column + 2 * (i & ~3);
    if (r < args.m && c < args.n) {
      *reinterpret_cast<__nv_bfloat162*>(args.d + static_cast<int64_t>(r) * args.n + c) =
          __floats2bfloat162_rn(sums[i], sums[i + 1]);
    }
  }
}

}  // namespace ptxbench::sm90
