#include "numeric/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "numeric/float_formats.h"

namespace ptxbench::numeric {
namespace {

// The vectors published with Random123 (kat_vectors, philox4x32 10).
TEST(Random, PublishedPhiloxVectors) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint32_t f = 0xffffffff;
  EXPECT_EQ(philox4x32_10({f, f, f, f}, {f, f}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, AnyPartCanBeMadeAlone) {
  Random random({0x0123456789abcdef, 42}, 7);
  constexpr size_t kCount = 2000;
  std::vector<uint32_t> words(kCount);
  std::vector<float> normals(kCount), uniforms(kCount);
  for (uint64_t first : {uint64_t{0}, uint64_t{3}, (uint64_t{1} << 34) - 5, uint64_t{1} << 63}) {
    random.fill_words(first, words);
    random.fill_normal(first, normals);
    random.fill_uniform(first, uniforms);
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(words[i], random.word(first + i)) << i;
      ASSERT_EQ(std::bit_cast<uint32_t>(normals[i]),
                std::bit_cast<uint32_t>(random.normal(first + i)));
      ASSERT_EQ(uniforms[i], random.uniform(first + i));
    }
  }
}

TEST(Random, SeedsAndStreamsDiffer) {
  std::set<uint64_t> seen;
  for (uint64_t high : {0, 1})
    for (uint64_t low : {0, 1})
      for (uint64_t stream : {0, 1, 2}) seen.insert(Random({high, low}, stream).word64(0));
  EXPECT_EQ(seen.size(), 12u);
}

// Phi(x) in double, from the library: an oracle that shares nothing with the polynomials.
double upper_tail(double x) { return 0.5 * std::erfc(x / std::sqrt(2.0)); }

TEST(Random, NormalInvertsTheDistribution) {
  Random random({9, 9});
  double worst = 0;
  for (uint64_t i = 0; i < 200'000; ++i) {
    uint32_t word = random.word(i);
    double p = ((word & 0x7fffffffu) + 0.5) * 0x1p-32;
    double x = random.normal(i);
    EXPECT_EQ(std::signbit(x), word >> 31);
    // An error dx in x shows as density(x) * dx in p.
    double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    worst = std::max(worst, std::fabs(upper_tail(std::fabs(x)) - p) / density);
  }
  EXPECT_LT(worst, 4e-6);
  EXPECT_GT(worst, 0);
}

TEST(Random, NormalMomentsAndTails) {
  constexpr size_t kCount = 4'000'000;
  std::vector<float> values(kCount);
  Random({5, 6}, 1).fill_normal(0, values);
  double sum = 0, sum2 = 0, sum4 = 0;
  size_t beyond3 = 0;
  for (double v : values) {
    sum += v;
    sum2 += v * v;
    sum4 += v * v * v * v;
    beyond3 += std::fabs(v) > 3;
    ASSERT_LT(std::fabs(v), 6.4);
  }
  // Five standard errors each.
  EXPECT_NEAR(sum / kCount, 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(sum2 / kCount, 1, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(sum4 / kCount, 3, 5 * std::sqrt(96.0 / kCount));
  double expected = 2 * upper_tail(3) * kCount;
  EXPECT_NEAR(beyond3, expected, 5 * std::sqrt(expected));
}

TEST(Random, UniformAndBelowStayInRange) {
  Random random({1, 1});
  double sum = 0;
  std::vector<int> bins(7);
  for (uint64_t i = 0; i < 70'000; ++i) {
    float u = random.uniform(i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    uint64_t b = random.below(i, 7);
    ASSERT_LT(b, 7u);
    ++bins[b];
  }
  EXPECT_NEAR(sum / 70'000, 0.5, 5 / std::sqrt(12.0 * 70'000));
  for (int n : bins) EXPECT_NEAR(n, 10'000, 500);
}

TEST(Random, TypedFillRounds) {
  Random random({7, 7}, 3);
  std::vector<uint16_t> bf16(300);
  std::vector<uint8_t> e4m3(300);
  random.fill_normal(11, DType::bfloat16, bf16.data(), bf16.size(), 1.0f, 0.5f);
  random.fill_normal(11, DType::float8_e4m3fn, e4m3.data(), e4m3.size(), 1.0f, 0.5f);
  for (uint64_t i = 0; i < 300; ++i) {
    float v = 1.0f + 0.5f * random.normal(11 + i);
    ASSERT_EQ(bf16[i], bf16_from_float(v));
    ASSERT_EQ(e4m3[i], e4m3_from_float(v));
  }
}

}  // namespace
}  // namespace ptxbench::numeric
