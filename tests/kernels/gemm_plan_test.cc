// The closed-form instruction counts of the bf16 GEMM against a walk over its tiles, and the tile
// choice.

#include "../../kernels/sm_90a/gemm_bf16_plan.h"

#include <gtest/gtest.h>

namespace ptxbench::sm90 {
namespace {

// What every CTA does, one tile at a time, as the kernel's loops do it.
GemmCounts walk(const GemmShape& shape, const GemmChoice& choice) {
  GemmCounts counts{};
  int64_t row_tiles = 0;
  while (row_tiles * 128 < shape.m || row_tiles % choice.cluster != 0) ++row_tiles;
  for (int64_t row = 0; row < row_tiles; ++row) {
    for (int column = 0; column < shape.n; column += choice.block_n) {
      for (int k = 0; k < shape.k; k += 64) {
        counts.tma_loads += 2;
        for (int warp = 0; warp < 8; ++warp) counts.wgmma_warps += 4;
        for (int consumer = 0; consumer < 2; ++consumer)
          counts.tensor_flop += 4 * 2.0 * 64 * choice.block_n * 16;
      }
      for (int warp = 0; warp < 8; ++warp)
        if (row * 128 + warp * 16 < shape.m)
          counts.tma_stores += choice.block_n / (choice.block_n == 160 ? 32 : 64);
    }
  }
  return counts;
}

TEST(GemmPlan, CountsEqualAWalkOverTheTiles) {
  for (const GemmChoice& choice : {GemmChoice{256, 2}, {256, 1}, {160, 1}, {128, 1}, {64, 1}}) {
    for (const int m : {1, 16, 17, 70, 128, 129, 200, 256, 300, 952}) {
      for (const GemmShape& shape : {GemmShape{m, 1024, 832}, {m, 128, 64}, {m, 320, 1000}}) {
        const GemmCounts closed = count_gemm(shape, choice, 132), walked = walk(shape, choice);
        EXPECT_EQ(closed.wgmma_warps, walked.wgmma_warps) << m << " " << choice.block_n;
        EXPECT_EQ(closed.tma_loads, walked.tma_loads) << m << " " << choice.block_n;
        EXPECT_EQ(closed.tma_stores, walked.tma_stores) << m << " " << choice.block_n;
        EXPECT_DOUBLE_EQ(closed.tensor_flop, walked.tensor_flop) << m << " " << choice.block_n;
      }
    }
  }
}

TEST(GemmPlan, SmokeShapeUsesClustersAndTwoTilesPerCta) {
  const GemmShape smoke{200, 1024, 832};
  const GemmChoice choice = choose_gemm(smoke, 4);
  EXPECT_EQ(choice.block_n, 256);
  EXPECT_EQ(choice.cluster, 2);
  const GemmCounts counts = count_gemm(smoke, choice, 4);
  EXPECT_EQ(counts.ctas, 4);
  EXPECT_EQ(counts.wgmma_warps, 3328);
  EXPECT_EQ(counts.tma_loads, 208);
  EXPECT_EQ(counts.tma_stores, 208);
}

TEST(GemmPlan, ChoiceFollowsTheShape) {
  EXPECT_EQ(choose_gemm({8192, 7168, 5120}, 132).block_n, 256);
  EXPECT_EQ(choose_gemm({8192, 7168, 5120}, 132).cluster, 2);
  EXPECT_EQ(choose_gemm({8828, 128, 2048}, 132).block_n, 128);
  EXPECT_EQ(choose_gemm({2379, 5376, 21504}, 132).block_n, 160);  // five rounds, hardly a tail
  EXPECT_EQ(choose_gemm({70, 7168, 5120}, 132).cluster, 1);
  EXPECT_EQ(choose_gemm({1000, 1024, 64}, 1).cluster, 1);
}

}  // namespace
}  // namespace ptxbench::sm90
