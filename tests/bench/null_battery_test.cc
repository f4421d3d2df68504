// Cheats must fail and honest kernels must pass, on several sizes and scales of the inputs.
#include <gtest/gtest.h>

#include "gemm_data.h"

namespace ptxbench::bench {
namespace {

struct Setting {
  int64_t m, n, k;
  uint64_t seed;
  float scale;
};

class NullBattery : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    const Setting s = GetParam();
    gemm_ = make_gemm(s.m, s.n, s.k, s.seed, s.scale);
    right_ = honest(gemm_);
  }
  Correctness judged(const std::vector<uint16_t>& c) { return judge(gemm_, c); }
  void expect_fails(const std::vector<uint16_t>& c, const char* what) {
    const Correctness result = judged(c);
    EXPECT_FALSE(result.passed) << what;
    EXPECT_FALSE(result.why.empty()) << what;
    EXPECT_EQ(result.verified, result.total) << what;
  }
  std::vector<uint16_t> filled(uint16_t value) const {
    return std::vector<uint16_t>(right_.size(), value);
  }
  Gemm gemm_;
  std::vector<uint16_t> right_;
};

TEST_P(NullBattery, HonestAccumulationInAnyOrderPasses) {
  const Correctness forward = judged(right_);
  EXPECT_TRUE(forward.passed) << forward.why;
  EXPECT_EQ(forward.verified, static_cast<uint64_t>(gemm_.m * gemm_.n));
  EXPECT_GT(forward.rel_frobenius, 0);
  Gemm reversed = gemm_;
  for (auto* matrix : {&reversed.a, &reversed.b})
    for (size_t row = 0; row + gemm_.k <= matrix->size(); row += gemm_.k)
      std::reverse(matrix->begin() + row, matrix->begin() + row + gemm_.k);
  const Correctness backward = judged(honest(reversed));
  EXPECT_TRUE(backward.passed) << backward.why;
}

TEST_P(NullBattery, FixedContentsFail) {
  expect_fails(filled(0), "zeros");
  expect_fails(filled(0x7fc0), "NaN");
  expect_fails(filled(0x3f80), "constant");
  const Correctness nothing = judged(filled(kPoison));
  EXPECT_FALSE(nothing.passed);
  EXPECT_EQ(nothing.poisoned, nothing.total);
}

TEST_P(NullBattery, CopiesAndPartsFail) {
  std::vector<uint16_t> copy(right_.size());
  for (size_t i = 0; i < copy.size(); ++i) copy[i] = gemm_.a[i % gemm_.a.size()];
  expect_fails(copy, "copy of an input");
  std::vector<uint16_t> first_row = right_;
  for (size_t i = 0; i < first_row.size(); ++i) first_row[i] = right_[i % gemm_.n];
  expect_fails(first_row, "first row everywhere");
  std::vector<uint16_t> only_first = filled(0);
  std::copy(right_.begin(), right_.begin() + gemm_.n, only_first.begin());
  expect_fails(only_first, "only the first row");
  std::vector<uint16_t> half = right_;
  for (int64_t i = 0; i < gemm_.m; ++i)
    for (int64_t j = 0; j < gemm_.n; ++j)
      if ((i / 16 + j / 16) % 2 != 0) half[static_cast<size_t>(i * gemm_.n + j)] = 0;
  expect_fails(half, "half the tiles");
}

TEST_P(NullBattery, OneUnwrittenElementFails) {
  std::vector<uint16_t> c = right_;
  c[c.size() / 2] = kPoison;
  const Correctness result = judged(c);
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.poisoned, 1u);
}

TEST_P(NullBattery, CheaperArithmeticFails) {
  expect_fails(multiply(gemm_, gemm_.k - 16, nullptr, nullptr), "last 16 of K dropped");
  expect_fails(
      multiply(
          gemm_, gemm_.k,
          [](float x) { return numeric::e4m3_to_float(numeric::e4m3_from_float(x)); }, nullptr),
      "e4m3 inputs");
  expect_fails(multiply(gemm_, gemm_.k, nullptr,
                        [](float x) { return numeric::f16_to_float(numeric::f16_from_float(x)); }),
               "fp16 accumulation");
  std::vector<uint16_t> through_half = right_;
  std::vector<float> sums;
  for (int64_t i = 0; i < gemm_.m; ++i)
    for (int64_t j = 0; j < gemm_.n; ++j) {
      float sum = 0;
      for (int64_t x = 0; x < gemm_.k; ++x)
        sum += numeric::bf16_to_float(gemm_.a[static_cast<size_t>(i * gemm_.k + x)]) *
               numeric::bf16_to_float(gemm_.b[static_cast<size_t>(j * gemm_.k + x)]);
      through_half[static_cast<size_t>(i * gemm_.n + j)] =
          numeric::bf16_from_float(numeric::f16_to_float(numeric::f16_from_float(sum)));
    }
  expect_fails(through_half, "result rounded through half");
}

INSTANTIATE_TEST_SUITE_P(Sizes, NullBattery,
                         ::testing::Values(Setting{70, 96, 512, 1, 1}, Setting{128, 64, 832, 2, 1},
                                           Setting{33, 256, 2048, 3, 1},
                                           Setting{64, 96, 512, 4, 0.02f},
                                           Setting{128, 64, 832, 5, 8}));

TEST(Comparator, SameNumbersForAnyNumberOfThreads) {
  const Gemm g = make_gemm(100, 70, 512, 9);
  std::vector<uint16_t> c = honest(g);
  c[1234] ^= 1;
  const Correctness one = judge(g, c, 1), two = judge(g, c, 2);
  EXPECT_EQ(one.rel_frobenius, two.rel_frobenius);
  EXPECT_EQ(one.tile_rel_frobenius, two.tile_rel_frobenius);
  EXPECT_EQ(one.misround_rate, two.misround_rate);
  EXPECT_EQ(one.max_abs, two.max_abs);
}

TEST(Comparator, InfinityAndNanMustMatchPositionByPosition) {
  Gemm g = make_gemm(16, 16, 512, 4);
  for (int i = 0; i < 512; ++i) g.a[static_cast<size_t>(i)] = 0x7f7f;  // row 0 overflows bf16
  for (uint16_t& x : g.b) x = 0x3f80;
  std::vector<uint16_t> c = honest(g);
  const Correctness same = judge(g, c);
  EXPECT_EQ(same.class_mismatches, 0u);
  c[0] ^= 0x8000;  // the other infinity, or the other sign
  EXPECT_FALSE(judge(g, c).passed);
  c[0] = 0x7fff;
  EXPECT_GE(judge(g, c).class_mismatches, 1u);
}

TEST(Comparator, NothingComparedIsNeverRight) {
  std::vector<uint16_t> c(256);
  Comparator comparator(c, 16, 16, kPoison);
  Correctness result = comparator.finish();
  decide(gemm_calibration(), 512, result);
  EXPECT_FALSE(result.passed);
  EXPECT_FALSE(result.rule_a_passed);
  EXPECT_NE(result.why.find("0 of 256"), std::string::npos);
}

TEST(Comparator, SaysWhereAndWhat) {
  const Gemm g = make_gemm(128, 96, 512, 11);
  std::vector<uint16_t> c = honest(g);
  for (int64_t i = 64; i < 80; ++i)
    for (int64_t j = 32; j < 48; ++j) c[static_cast<size_t>(i * 96 + j)] = 0x4f00;
  const Correctness result = judge(g, c);
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.bad_tiles, 1u);
  EXPECT_EQ(result.first_bad_row, 64);
  EXPECT_EQ(result.last_bad_row, 79);
  EXPECT_EQ(result.first_bad_column, 32);
  EXPECT_EQ(result.last_bad_column, 47);
  const std::vector<std::string> map = result.map.text();
  ASSERT_EQ(map.size(), 8u);
  EXPECT_EQ(map[4], "..x...");
  EXPECT_EQ(map[3], "......");
}

TEST(Oracle, MatchesALoopInDouble) {
  const Gemm g = make_gemm(37, 29, 200, 5);
  std::vector<double> c;
  const Result<void> reference =
      gemm_fp64(g.a, g.b, g.m, g.n, g.k, 2, [&](int64_t first, int64_t count, auto block) {
        EXPECT_EQ(first % 16, 0);
        EXPECT_EQ(block.size(), static_cast<size_t>(count * g.n));
        c.insert(c.end(), block.begin(), block.end());
      });
  ASSERT_TRUE(reference.ok());
  ASSERT_EQ(c.size(), static_cast<size_t>(g.m * g.n));
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      double sum = 0, magnitude = 0;
      for (int64_t x = 0; x < g.k; ++x) {
        const double product =
            static_cast<double>(numeric::bf16_to_float(g.a[static_cast<size_t>(i * g.k + x)])) *
            static_cast<double>(numeric::bf16_to_float(g.b[static_cast<size_t>(j * g.k + x)]));
        sum += product;
        magnitude += std::abs(product);
      }
      EXPECT_NEAR(c[static_cast<size_t>(i * g.n + j)], sum, 1e-13 * magnitude);
    }
}

}  // namespace
}  // namespace ptxbench::bench
