#include "numeric/error_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "numeric/float_formats.h"
#include "numeric/random.h"

namespace ptxbench::numeric {
namespace {

struct Case {
  uint64_t rows, columns;
  std::vector<double> reference;
  std::vector<uint16_t> output;  // bf16

  Case(uint64_t r, uint64_t c) : rows(r), columns(c), reference(r * c), output(r * c) {
    Random random({1, 2});
    for (size_t i = 0; i < reference.size(); ++i) {
      reference[i] = random.normal(i) + 1e-9 * random.normal(i + 100'000);
      output[i] = bf16_from_double(reference[i]);
    }
  }
  ErrorMetrics metrics() const {
    return compare(DType::bfloat16, output.data(), reference, rows, columns);
  }
  void set(uint64_t r, uint64_t c, double v) { output[r * columns + c] = bf16_from_double(v); }
};

TEST(ErrorMetrics, CorrectlyRoundedOutput) {
  ErrorMetrics m = Case(37, 50).metrics();
  EXPECT_EQ(m.elements, 37u * 50);
  EXPECT_EQ(m.misrounded, 0u);
  EXPECT_EQ(m.class_mismatches, 0u);
  EXPECT_EQ(m.rule_failures, 0u);
  EXPECT_GT(m.rel_frobenius(), 1e-4);  // rounding itself is an error against fp64
  EXPECT_LT(m.rel_frobenius(), 0x1p-8);
  EXPECT_EQ(m.misround_rate(), 0);
  EXPECT_EQ(m.matched_ratio(), 1);
}

TEST(ErrorMetrics, FindsTheWorstElementAndTile) {
  Case c(37, 50);
  c.reference[33 * 50 + 20] = 2;
  c.set(33, 20, 10);
  ErrorMetrics m = c.metrics();
  EXPECT_EQ(m.max_abs, 8);
  EXPECT_EQ(m.worst_row, 33u);
  EXPECT_EQ(m.worst_column, 20u);
  EXPECT_EQ(m.worst_output, 10);
  EXPECT_EQ(m.worst_reference, 2);
  EXPECT_EQ(m.misrounded, 1u);
  EXPECT_EQ(m.rule_failures, 1u);
  EXPECT_EQ(m.worst_tile_frobenius.row, 32u);
  EXPECT_EQ(m.worst_tile_frobenius.column, 16u);
  EXPECT_DOUBLE_EQ(m.worst_tile_misround.value, 1.0 / (5 * 16));  // rows 32..36
  EXPECT_NEAR(m.max_rel, 4, 1e-6);
}

TEST(ErrorMetrics, NanNeverPasses) {
  for (double bad : {double{NAN}, double{INFINITY}, double{-INFINITY}}) {
    Case c(16, 16);
    c.set(3, 4, bad);
    ErrorMetrics m = c.metrics();
    EXPECT_EQ(m.class_mismatches, 1u);
    EXPECT_EQ(m.rule_failures, 1u);
    EXPECT_EQ(m.max_abs, INFINITY);
    EXPECT_EQ(m.max_rel, INFINITY);
    EXPECT_EQ(m.rel_frobenius(), INFINITY);
    EXPECT_EQ(m.worst_tile_frobenius.value, INFINITY);
    EXPECT_EQ(m.misrounded, 1u);
    EXPECT_EQ(m.worst_row, 3u);
    EXPECT_EQ(m.worst_column, 4u);
  }
  Case all(16, 16);
  for (auto& v : all.output) v = 0x7fff;
  EXPECT_EQ(all.metrics().misround_rate(), 1);
  EXPECT_EQ(all.metrics().matched_ratio(), 0);
}

TEST(ErrorMetrics, ExpectedNanAndInfinityMustMatchByClass) {
  Case c(16, 16);
  c.reference[0] = NAN;
  c.output[0] = 0x7fc1;  // any NaN
  c.reference[1] = INFINITY;
  c.set(0, 1, INFINITY);
  c.reference[2] = 1e39;  // rounds to infinity
  c.set(0, 2, INFINITY);
  ErrorMetrics good = c.metrics();
  EXPECT_EQ(good.class_mismatches, 0u);
  EXPECT_EQ(good.misrounded, 0u);
  EXPECT_TRUE(std::isfinite(good.rel_frobenius()));
  c.set(0, 0, 1.0);
  c.set(0, 1, -INFINITY);
  EXPECT_EQ(c.metrics().class_mismatches, 2u);
}

TEST(ErrorMetrics, NothingComparedIsTheWorstResult) {
  ErrorMetrics m = compare(DType::bfloat16, nullptr, {}, 0, 16);
  EXPECT_EQ(m.elements, 0u);
  EXPECT_EQ(m.rel_frobenius(), INFINITY);
  EXPECT_EQ(m.misround_rate(), 1);
  EXPECT_EQ(m.matched_ratio(), 0);
}

TEST(ErrorMetrics, ZeroReferenceWithError) {
  std::vector<double> zero(256, 0.0);
  std::vector<float> output(256, 0.0f);
  output[1] = -0.0f;
  ErrorMetrics good = compare(DType::float32, output.data(), zero, 16, 16);
  EXPECT_EQ(good.rel_frobenius(), 0);
  EXPECT_EQ(good.misrounded, 0u);
  output[0] = 1e-20f;
  ErrorMetrics bad = compare(DType::float32, output.data(), zero, 16, 16);
  EXPECT_EQ(bad.rel_frobenius(), INFINITY);
  EXPECT_EQ(bad.misrounded, 1u);
}

TEST(ErrorMetrics, BandsInAnyOrderGiveTheSame) {
  Case c(70, 33);
  c.set(50, 30, 100);
  c.set(20, 1, 100);
  ErrorMetrics whole = c.metrics();
  ErrorMeter first(DType::bfloat16, 33), second(DType::bfloat16, 33);
  auto band = [&](ErrorMeter& meter, uint64_t row, uint64_t rows) {
    meter.add_band(row, rows, c.output.data() + row * 33,
                   std::span<const double>(c.reference).subspan(row * 33, rows * 33));
  };
  band(second, 48, 22);
  band(first, 16, 32);
  band(second, 0, 16);
  second.merge(first);
  ErrorMetrics parts = second.result();
  EXPECT_EQ(parts.elements, whole.elements);
  EXPECT_EQ(parts.misrounded, whole.misrounded);
  EXPECT_EQ(parts.rule_failures, whole.rule_failures);
  EXPECT_EQ(parts.max_abs, whole.max_abs);
  EXPECT_EQ(parts.worst_row, whole.worst_row);
  EXPECT_NEAR(parts.error_norm, whole.error_norm, 1e-12);
  EXPECT_EQ(parts.worst_tile_frobenius.value, whole.worst_tile_frobenius.value);
  EXPECT_EQ(parts.worst_tile_frobenius.row, whole.worst_tile_frobenius.row);
}

}  // namespace
}  // namespace ptxbench::numeric
