#include "te/kernels/norm_forward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "te/device_array.h"
#include "te/reference.h"

namespace ptxbench::te {
namespace {

using test::DeviceArray;

struct Case {
  NormKind kind = NormKind::layer;
  int64_t rows = 0, cols = 0;
  bool zero_centered = false, with_beta = true;
  size_t shift = 0;
  int64_t column_step = 1;  // large matrices are checked on every so-manieth column
  float offset = 0;         // of the inputs: a large mean must not cost accuracy
  NormTile tile = NormTile::t32x512;
  bool force_tile = false;
};

void check(const Case& c) {
  SCOPED_TRACE(testing::Message() << (c.kind == NormKind::layer ? "layer " : "rms ") << c.rows
                                  << "x" << c.cols << " shift " << c.shift);
  const bool layer = c.kind == NormKind::layer;
  const int64_t n = c.rows * c.cols;
  std::vector<uint16_t> x = test::random_bf16(n, 11, 2), gamma = test::random_bf16(c.cols, 12),
                        beta = test::random_bf16(c.cols, 13);
  if (c.offset != 0)
    for (uint16_t& v : x) v = numeric::bf16_from_float(numeric::bf16_to_float(v) + c.offset);
  const float scale = 12;
  DeviceArray<uint16_t> dx(x, c.shift), dgamma(gamma, c.shift), dbeta(beta, c.shift),
      dy(n, 0xee, c.shift);
  DeviceArray<uint8_t> data(n, 0xee, c.shift), transpose(n, 0xee, c.shift);
  DeviceArray<float> dscale(std::vector<float>{scale}), scale_inv(1), amax(std::vector<float>{0}),
      dmean(c.rows), drstd(c.rows);
  NormForward call;
  call.kind = c.kind, call.rows = c.rows, call.cols = c.cols;
  call.x = dx.get(), call.gamma = dgamma.get(), call.zero_centered_gamma = c.zero_centered;
  if (layer && c.with_beta) call.beta = dbeta.get();
  call.out = {data.get(), transpose.get(), dscale.get(), scale_inv.get(), amax.get()};
  call.y = dy.get(), call.mean = layer ? dmean.get() : nullptr, call.rstd = drstd.get();
  NormPlan plan = plan_norm_forward(call, 132);
  if (c.force_tile) {
    plan = cut(call, c.tile);
    plan.vector = true;
  }
  auto done = norm_forward(call, plan, nullptr);
  ASSERT_TRUE(done.ok()) << done.error().message;

  const auto got = data.fetch(), turned = transpose.fetch();
  const auto y = dy.fetch();
  const auto means = dmean.fetch(), rstds = drstd.fetch();
  double largest = 0;
  int64_t bad = 0, compared = 0;
  for (int64_t r = 0; r < c.rows; ++r) {
    double mean = 0, squares = 0;
    for (int64_t k = 0; k < c.cols; ++k) mean += test::bf16(x[r * c.cols + k]);
    mean = layer ? mean / c.cols : 0;
    for (int64_t k = 0; k < c.cols; ++k) {
      const double d = test::bf16(x[r * c.cols + k]) - mean;
      squares += d * d;
    }
    const double rstd = 1 / std::sqrt(squares / c.cols + 1e-5f);
    ASSERT_NEAR(rstds[r], rstd, 3e-6 * rstd) << "row " << r;
    if (layer) {
      ASSERT_NEAR(means[r], mean, 3e-6 * (std::fabs(mean) + 1)) << "row " << r;
    }
    for (int64_t k = 0; k < c.cols; k += c.column_step) {
      const double normal = (test::bf16(x[r * c.cols + k]) - mean) * rstd;
      const double g = test::bf16(gamma[k]) + (c.zero_centered ? 1 : 0);
      const double v = normal * g + (call.beta != nullptr ? test::bf16(beta[k]) : 0);
      // Error of the mean counts against the size of the inputs.
      const double slack = 1e-5 * (std::fabs(normal * g) + std::fabs(v)) +
                           4e-7 * (std::fabs(c.offset) + 2) * rstd * std::fabs(g) + 1e-7;
      bad += !test::is_cast_of(got[r * c.cols + k], v, scale, Fp8Format::e4m3, slack);
      bad += got[r * c.cols + k] != turned[k * c.rows + r];
      bad += !(std::fabs(test::bf16(y[r * c.cols + k]) - v) <= std::fabs(v) / 256 + slack);
      ++compared;
      largest = std::fmax(largest, std::fabs(v));
    }
  }
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(compared, c.rows * ((c.cols + c.column_step - 1) / c.column_step));
  if (c.column_step == 1) {
    EXPECT_NEAR(amax.fetch()[0], largest, 2e-5 * largest);
  }
  EXPECT_EQ(scale_inv.fetch()[0], 1.0f / scale);
}

TEST(NormForward, AlignedAndRaggedShapes) {
  for (NormKind kind : {NormKind::layer, NormKind::rms})
    for (auto [rows, cols] : {std::pair{1, 1},
                              {1, 777},
                              {17, 33},
                              {64, 256},
                              {80, 768},
                              {33, 1600},
                              {7, 2049},
                              {32, 4096},
                              {48, 520}})
      check({.kind = kind, .rows = rows, .cols = cols});
}

TEST(NormForward, WideRows) {
  for (NormKind kind : {NormKind::layer, NormKind::rms})
    for (int64_t cols : {5000, 8192, 16384, 16390, 32768})
      check({.kind = kind, .rows = cols % 8 == 0 ? 16 : 3, .cols = cols, .column_step = 7});
}

TEST(NormForward, VariantsOfTheCall) {
  check({.rows = 33, .cols = 264, .zero_centered = true});
  check({.rows = 32, .cols = 264, .with_beta = false});
  check({.kind = NormKind::rms, .rows = 32, .cols = 264, .zero_centered = true});
  check({.rows = 64, .cols = 512, .shift = 1});  // misaligned
  check({.rows = 64, .cols = 512, .offset = 1000});
  for (NormTile tile : {NormTile::t32x1024, NormTile::t16x2048, NormTile::t16x4096})
    check({.rows = 48, .cols = 4096, .column_step = 5, .tile = tile, .force_tile = true});
}

TEST(NormForward, NanAndInfinityStayInTheirRow) {
  const float inf = std::numeric_limits<float>::infinity();
  for (auto [kind, odd] : {std::pair{NormKind::layer, NAN},
                           {NormKind::layer, inf},
                           {NormKind::rms, NAN},
                           {NormKind::rms, inf}}) {
    std::vector<uint16_t> x = test::random_bf16(32 * 264, 3);
    x[5 * 264 + 7] = numeric::bf16_from_float(odd);
    DeviceArray<uint16_t> dx(x), gamma(test::random_bf16(264, 4)), y(32 * 264);
    DeviceArray<float> amax(std::vector<float>{0});
    NormForward call;
    call.kind = kind, call.rows = 32, call.cols = 264, call.x = dx.get(), call.gamma = gamma.get(),
    call.y = y.get();
    call.out.amax = amax.get();
    ASSERT_TRUE(norm_forward(call, nullptr).ok());
    int64_t nans = 0;
    const auto got = y.fetch();
    for (int64_t i = 0; i < 32 * 264; ++i)
      if (std::isnan(test::bf16(got[i]))) {
        ++nans;
        EXPECT_EQ(i / 264, 5);
      }
    // 1 / sqrt(inf) is 0: of RMSNorm only inf * 0 itself.
    EXPECT_EQ(nans, kind == NormKind::rms && odd == inf ? 1 : 264);
    EXPECT_TRUE(std::isfinite(amax.fetch()[0]));
  }
}

TEST(NormForward, OneLaunchWithTheTransposedCopy) {
  DeviceArray<uint16_t> x(test::random_bf16(64 * 768, 3)), gamma(test::random_bf16(768, 4));
  DeviceArray<uint8_t> data(64 * 768), transpose(64 * 768);
  NormForward call;
  call.rows = 64, call.cols = 768, call.x = x.get(), call.gamma = gamma.get();
  call.out.data = data.get(), call.out.transpose = transpose.get();
  for (NormKind kind : {NormKind::layer, NormKind::rms}) {
    call.kind = kind;
    EXPECT_EQ(test::work_of([&](cudaStream_t s) { EXPECT_TRUE(norm_forward(call, s).ok()); }),
              test::kOneKernel);
  }
}

TEST(NormForward, PlansSayWhatTheyDo) {
  NormForward call;
  call.rows = 8192, call.cols = 4096;
  EXPECT_EQ(plan_norm_forward(call, 132).describe(),
            "32x512 tiles, clusters of 8, 256 blocks of rows, 16-byte accesses, 33 ahead into L2");
  call.cols = 767;
  EXPECT_EQ(plan_norm_forward(call, 132).describe(),
            "64x256 tiles, clusters of 3, 128 blocks of rows, element by element");
}

TEST(NormForward, BadArgumentsAreNamed) {
  DeviceArray<uint16_t> x(64);
  NormForward good;
  good.rows = good.cols = 8, good.x = x.get(), good.gamma = x.get(), good.y = x.get();
  auto message = [&](auto change) {
    NormForward call = good;
    change(call);
    auto done = norm_forward(call, nullptr);
    return done.ok() ? std::string("accepted") : done.error().message;
  };
  EXPECT_EQ(message([](NormForward& c) { c.cols = 32769; }),
            "norm forward: 32769 columns; 32768 is the most");
  EXPECT_EQ(message([](NormForward& c) { c.epsilon = 0; }),
            "norm forward: epsilon is 0: it must be finite and > 0");
  EXPECT_EQ(message([](NormForward& c) { c.y = nullptr; }), "norm forward: no output is asked for");
  EXPECT_EQ(message([](NormForward& c) { c.kind = NormKind::rms, c.beta = c.x; }),
            "norm forward: RMSNorm has neither beta nor mean");
  EXPECT_EQ(message([](NormForward& c) { c.gamma = nullptr; }),
            "norm forward: gamma is a null pointer");
}

}  // namespace
}  // namespace ptxbench::te
