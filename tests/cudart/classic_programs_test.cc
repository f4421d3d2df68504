// The example programs on the emulator: their results against values computed here, from the
// definition of what they compute.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cudart/live_programs.h"

namespace ptxbench::cudart {
namespace {

// The programs' inputs, written anew.
uint32_t mixed(uint32_t i, uint32_t stream) {
  uint32_t x = (i * 2654435761u) ^ (stream * 0x9e3779b9u);
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ (x >> 16);
}

TEST_F(LivePrograms, MatmulWithCooperativeGroups) {
  const auto c = result_of<float>(build("examples/programs/matmul.cu"));
  ASSERT_EQ(c.size(), 150u * 130);
  for (int i = 0; i < 150; i += 7)
    for (int j = 0; j < 130; j += 3) {
      double sum = 0;
      for (int k = 0; k < 170; ++k)
        sum += (int(mixed(uint32_t(i * 170 + k), 1) % 17) - 8) *
               (int(mixed(uint32_t(k * 130 + j), 2) % 13) - 6);
      ASSERT_EQ(c[size_t(i) * 130 + size_t(j)], sum) << i << "," << j;
    }
}

TEST_F(LivePrograms, RadixSort) {
  const std::string program = build("examples/programs/radix_sort.cu");
  const auto sorted = result_of<uint32_t>(program);
  ASSERT_EQ(sorted.size(), 10007u);
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
  std::map<uint32_t, int> counts;
  for (uint32_t i = 0; i < 10007; ++i) ++counts[i % 3 ? mixed(i, 3) : mixed(i, 3) % 64];
  for (uint32_t key : sorted) --counts[key];
  for (const auto& [key, count] : counts) ASSERT_EQ(count, 0) << key;
  // Neither the schedule nor the number of threads nor late copies change a valid program.
  EXPECT_EQ(result_of<uint32_t>(program, {"--schedule=random:5", "--async=eager"}), sorted);
  EXPECT_EQ(result_of<uint32_t>(program, {"--threads=1", "--device-profile=h100"}), sorted);
}

// In double precision and without the boundary's special case: a smaller program for the same sum.
TEST_F(LivePrograms, StencilWithStreamsAndGraphs) {
  const auto field = result_of<float>(build("examples/programs/stencil3d.cu"));
  constexpr int x = 33, y = 18, z = 14;
  ASSERT_EQ(field.size(), size_t{x} * y * z);
  std::vector<double> old(field.size()), now(field.size());
  for (uint32_t i = 0; i < now.size(); ++i) now[i] = mixed(i, 4) % 1024;
  for (int step = 0; step < 6; ++step) {
    old = now;
    for (size_t i = 0; i < now.size(); ++i) {
      const size_t cx = i % x, cy = i / x % y, cz = i / x / y;
      if (cx % (x - 1) == 0 || cy % (y - 1) == 0 || cz % (z - 1) == 0) continue;
      now[i] =
          old[i] / 4 +
          (old[i - 1] + old[i + 1] + old[i - x] + old[i + x] + old[i - x * y] + old[i + x * y]) / 8;
    }
  }
  for (size_t i = 0; i < now.size(); ++i)
    ASSERT_NEAR(field[i], now[i], 1e-3) << i;  // fp32 rounding of six steps on values below 1024
}

TEST_F(LivePrograms, ReductionWithGridSync) {
  const auto found = result_of<uint64_t>(build("examples/programs/grid_reduction.cu"));
  std::vector<uint32_t> values(300007);
  for (uint32_t i = 0; i < values.size(); ++i) values[i] = mixed(i, 5);
  EXPECT_THAT(found,
              ::testing::ElementsAre(std::accumulate(values.begin(), values.end(), uint64_t{0}),
                                     *std::min_element(values.begin(), values.end()),
                                     *std::max_element(values.begin(), values.end())));
}

}  // namespace
}  // namespace ptxbench::cudart
