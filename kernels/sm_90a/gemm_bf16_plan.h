#pragma once
// Which tile the bf16 GEMM runs with for a shape, and how often each target instruction then
// executes. Plain C++: hosts, tests and reports include it without CUDA.

#include <algorithm>
#include <cstdint>

namespace ptxbench::sm90 {

struct GemmShape {
  int m, n, k;
};

struct GemmChoice {
  int block_n, cluster;
};

// Fewest rounds of tiles over the SMs, each at the measured cost of a tile of that width (a 128x256
// tile is 1; narrow tiles load more bytes per FLOP). Two-CTA clusters save L2 traffic, worth about
// 1% for wide tiles and nothing for narrow ones, but pad an odd number of row tiles.
inline GemmChoice choose_gemm(const GemmShape& shape, int sm_count) {
  struct Option {
    GemmChoice choice;
    double cost;
  };
  constexpr Option kOptions[] = {
      {{256, 2}, 0.99}, {{256, 1}, 1.0}, {{160, 1}, 0.66}, {{128, 1}, 0.54}, {{64, 1}, 0.40}};
  const int rows = (shape.m + 127) / 128;
  GemmChoice best{256, 1};
  double best_cost = 1e30;
  for (const Option& option : kOptions) {
    const int cluster = option.choice.cluster, slots = sm_count / cluster;
    if (slots == 0 || rows < cluster) continue;
    const int64_t units = static_cast<int64_t>((rows + cluster - 1) / cluster) *
                          ((shape.n + option.choice.block_n - 1) / option.choice.block_n);
    const double cost = option.cost * static_cast<double>((units + slots - 1) / slots);
    if (cost < best_cost) {
      best_cost = cost;
      best = option.choice;
    }
  }
  return best;
}

// Columns of a box of C.
constexpr int store_columns(int block_n) { return block_n % 64 == 0 ? 64 : 32; }

// Warp-level executions in one launch. TMA instructions are issued by one thread, so their warp and
// thread counts are equal; wgmma is issued by whole warps (threads = 32 x warps).
struct GemmCounts {
  int64_t ctas;
  int64_t wgmma_warps;
  int64_t tma_loads;
  int64_t tma_stores;
  double tensor_flop;  // of the executed wgmmas, padding included
};

//   rows  = ceil(M / 128), rounded up to a multiple of the cluster (the phantom tile is multiplied
//   too) cols  = ceil(N / block_n), steps = ceil(K / 64) wgmma = rows * cols * steps * 4 slices of
//   K = 16 * 8 consumer warps loads = rows * cols * steps * 2: A, and B or this CTA's half of B
//   stores = ceil(M / 16) warp row groups * cols * block_n / 64 (or 32) boxes; rows past M store
//   nothing
inline GemmCounts count_gemm(const GemmShape& shape, const GemmChoice& choice, int sm_count) {
  const int64_t units_m = (shape.m + 128 * choice.cluster - 1) / (128 * choice.cluster);
  const int64_t rows = units_m * choice.cluster;
  const int64_t cols = (shape.n + choice.block_n - 1) / choice.block_n;
  const int64_t steps = (shape.k + 63) / 64;
  GemmCounts counts;
  counts.ctas = std::min<int64_t>(units_m * cols, sm_count / choice.cluster) * choice.cluster;
  counts.wgmma_warps = rows * cols * steps * 4 * 8;
  counts.tma_loads = rows * cols * steps * 2;
  counts.tma_stores = (shape.m + 15) / 16 * cols * (choice.block_n / store_columns(choice.block_n));
  counts.tensor_flop = 2.0 * static_cast<double>(rows * 128 * cols * choice.block_n * steps * 64);
  return counts;
}

}  // namespace ptxbench::sm90
