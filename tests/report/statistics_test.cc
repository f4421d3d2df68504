// Formulas against values from the literature, from enumeration and from definitions.
#include "report/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ptxbench::report {
namespace {

TEST(Wilson, PublishedValues) {
  // R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
  const struct {
    uint64_t r, n;
    double low, high;
  } cases[] = {{81, 263, 0.2553, 0.3662},
               {15, 148, 0.0624, 0.1605},
               {0, 20, 0, 0.1611},
               {1, 29, 0.0061, 0.1718}};
  for (const auto& c : cases) {
    const Interval i = wilson(c.r, c.n);
    EXPECT_NEAR(i.low, c.low, 5e-5) << c.r << "/" << c.n;
    EXPECT_NEAR(i.high, c.high, 5e-5) << c.r << "/" << c.n;
  }
  EXPECT_EQ(wilson(0, 0).high, 1);
  EXPECT_EQ(wilson(20, 20).high, 1);
}

// The share of all k-subsets of n attempts that hold one of the first c, counted one by one.
double enumerated(unsigned n, unsigned c, unsigned k) {
  unsigned subsets = 0, hits = 0;
  for (unsigned mask = 0; mask < (1u << n); ++mask)
    if (static_cast<unsigned>(__builtin_popcount(mask)) == k) {
      ++subsets;
      hits += (mask & ((1u << c) - 1)) != 0;
    }
  return static_cast<double>(hits) / subsets;
}

TEST(PassAtK, EqualsEnumeration) {
  for (unsigned n = 1; n <= 9; ++n)
    for (unsigned c = 0; c <= n; ++c)
      for (unsigned k = 1; k <= n; ++k)
        EXPECT_NEAR(pass_at_k(n, c, k), enumerated(n, c, k), 1e-12) << n << " " << c << " " << k;
  EXPECT_TRUE(std::isnan(pass_at_k(3, 1, 4)));
  EXPECT_TRUE(std::isnan(pass_at_k(3, 1, 0)));
}

TEST(SignTest, ByHand) {
  EXPECT_EQ(sign_test(0, 0), 1);
  EXPECT_NEAR(sign_test(5, 0), 2 / 32.0, 1e-12);
  EXPECT_NEAR(sign_test(1, 4), 12 / 32.0, 1e-12);
  EXPECT_NEAR(sign_test(3, 3), 1, 1e-12);
  // McNemar's exact test: 2 against 10 discordant pairs.
  EXPECT_NEAR(sign_test(2, 10), 2 * (1 + 12 + 66) / 4096.0, 1e-12);
}

TEST(Means, ByHand) {
  const std::vector<double> values = {1, 4, 16}, none;
  EXPECT_NEAR(geometric_mean(values), 4, 1e-12);
  EXPECT_NEAR(mean(values), 7, 1e-12);
  EXPECT_EQ(median(values), 4);
  EXPECT_EQ(median(std::vector<double>{1, 2, 4, 8}), 3);
  EXPECT_TRUE(std::isnan(geometric_mean(none)) && std::isnan(mean(none)) &&
              std::isnan(median(none)));
}

TEST(RankCorrelation, ByHand) {
  const std::vector<double> x = {1, 2, 3, 4, 5};
  EXPECT_NEAR(rank_correlation(x, std::vector<double>{10, 20, 30, 40, 1000}), 1, 1e-12);
  EXPECT_NEAR(rank_correlation(x, std::vector<double>{5, 4, 3, 2, 1}), -1, 1e-12);
  // 1 - 6 * sum d^2 / (n (n^2 - 1)) with d = 1, 1, 1, 1, 0.
  EXPECT_NEAR(rank_correlation(x, std::vector<double>{2, 1, 4, 3, 5}), 1 - 6 * 4 / 120.0, 1e-12);
  EXPECT_TRUE(std::isnan(rank_correlation(x, std::vector<double>{1, 1, 1, 1, 1})));
}

TEST(Bootstrap, IsRepeatableAndCovers) {
  std::vector<double> differences;
  for (int i = 0; i < 100; ++i) differences.push_back(i % 10);  // mean 4.5, deviation 2.87
  const Interval a = bootstrap_mean(differences), b = bootstrap_mean(differences);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_NEAR(a.low, 4.5 - 1.96 * 0.287, 0.06);
  EXPECT_NEAR(a.high, 4.5 + 1.96 * 0.287, 0.06);
  EXPECT_TRUE(std::isnan(bootstrap_mean(std::vector<double>{1}).low));
}

}  // namespace
}  // namespace ptxbench::report
