// The gradients against fp64 central differences of the forward's definition: the scalar whose
// gradient is taken is sum(dy * y).
#include "te/kernels/norm_backward.h"

#include <gtest/gtest.h>

#include <cmath>

#include "te/device_array.h"
#include "te/reference.h"

namespace ptxbench::te {
namespace {

using test::DeviceArray;

struct Case {
  NormKind kind = NormKind::layer;
  int64_t rows = 0, cols = 0;
  bool residual = false, zero_centered = false;
  size_t shift = 0;
  int64_t column_step = 1;
};

class Check {
 public:
  explicit Check(const Case& c)
      : c_(c),
        layer_(c.kind == NormKind::layer),
        x_(test::random_bf16(c.rows * c.cols, 41, 2)),
        dy_(test::random_bf16(c.rows * c.cols, 42)),
        residual_(test::random_bf16(c.rows * c.cols, 43)),
        gamma_(test::random_bf16(c.cols, 44)) {}

  void go() {
    SCOPED_TRACE(testing::Message() << (layer_ ? "layer " : "rms ") << c_.rows << "x" << c_.cols);
    statistics();
    DeviceArray<uint16_t> x(x_, c_.shift), dy(dy_, c_.shift), residual(residual_, c_.shift),
        gamma(gamma_, c_.shift), dx(x_.size(), 0xee, c_.shift);
    DeviceArray<float> mean(mean_), rstd(rstd_), dgamma(c_.cols), dbeta(c_.cols);
    const size_t bytes = norm_backward_workspace(c_.cols, 132);
    DeviceArray<uint8_t> workspace(bytes);
    NormBackward call;
    call.kind = c_.kind, call.rows = c_.rows, call.cols = c_.cols;
    call.dy = dy.get(), call.x = x.get(), call.gamma = gamma.get();
    call.zero_centered_gamma = c_.zero_centered;
    call.rstd = rstd.get(), call.dx = dx.get(), call.dgamma = dgamma.get();
    if (layer_) call.mean = mean.get(), call.dbeta = dbeta.get();
    if (c_.residual) call.residual = residual.get();
    call.workspace = workspace.get(), call.workspace_bytes = bytes;
    auto done = norm_backward(call, nullptr);
    ASSERT_TRUE(done.ok()) << done.error().message;
    check_dx(dx.fetch());
    check_columns(dgamma.fetch(), dbeta.fetch());
  }

 private:
  double gamma(int64_t k) const { return test::bf16(gamma_[k]) + (c_.zero_centered ? 1 : 0); }

  void statistics() {
    for (int64_t r = 0; r < c_.rows; ++r) {
      double mean = 0, squares = 0;
      for (int64_t k = 0; k < c_.cols; ++k) mean += test::bf16(x_[r * c_.cols + k]);
      mean = layer_ ? mean / c_.cols : 0;
      for (int64_t k = 0; k < c_.cols; ++k) {
        const double d = test::bf16(x_[r * c_.cols + k]) - mean;
        squares += d * d;
      }
      mean_.push_back(static_cast<float>(mean));
      rstd_.push_back(static_cast<float>(1 / std::sqrt(squares / c_.cols + 1e-5)));
    }
  }

  // sum(dy * y) of a row as a function of the k-th input's displacement h, from sums over the row
  // that do not depend on h: S1 = sum x, S2 = sum x^2, G = sum dy gamma, GX = sum dy gamma x.
  void check_dx(const std::vector<uint16_t>& dx) const {
    int64_t bad = 0, compared = 0;
    for (int64_t r = 0; r < c_.rows; ++r) {
      double s1 = 0, s2 = 0, g_sum = 0, gx_sum = 0, size = 0;
      for (int64_t k = 0; k < c_.cols; ++k) {
        const double x = test::bf16(x_[r * c_.cols + k]),
                     g = test::bf16(dy_[r * c_.cols + k]) * gamma(k);
        s1 += x, s2 += x * x, g_sum += g, gx_sum += g * x, size = std::fmax(size, std::fabs(g));
      }
      const double n = static_cast<double>(c_.cols);
      for (int64_t k = 0; k < c_.cols; k += c_.column_step) {
        const double x = test::bf16(x_[r * c_.cols + k]),
                     g = test::bf16(dy_[r * c_.cols + k]) * gamma(k);
        auto objective = [&](double h) {
          const double a1 = s1 + h, a2 = s2 + 2 * h * x + h * h, gx = gx_sum + g * h;
          const double mean = layer_ ? a1 / n : 0;
          const double rstd = 1 / std::sqrt(a2 / n - mean * mean + 1e-5);
          return (gx - mean * g_sum) * rstd;
        };
        double expected = test::derivative(objective, 0.0);
        if (c_.residual) expected += test::bf16(residual_[r * c_.cols + k]);
        const double got = test::bf16(dx[r * c_.cols + k]);
        bad += !(std::fabs(got - expected) <=
                 std::fabs(expected) / 200 + 2e-5 * (size * rstd_[r] + 1));
        ++compared;
      }
    }
    EXPECT_EQ(bad, 0);
    EXPECT_GT(compared, 0);
  }

  void check_columns(const std::vector<float>& dgamma, const std::vector<float>& dbeta) const {
    for (int64_t k = 0; k < c_.cols; ++k) {
      double gamma_sum = 0, beta_sum = 0, size = 1e-3;
      for (int64_t r = 0; r < c_.rows; ++r) {
        const double dy = test::bf16(dy_[r * c_.cols + k]);
        const double n = (test::bf16(x_[r * c_.cols + k]) - mean_[r]) * rstd_[r];
        gamma_sum += dy * n, beta_sum += dy, size += std::fabs(dy) * (1 + std::fabs(n));
      }
      ASSERT_NEAR(dgamma[k], gamma_sum, 1e-5 * size) << "column " << k;
      if (layer_) {
        ASSERT_NEAR(dbeta[k], beta_sum, 1e-5 * size) << "column " << k;
      }
    }
  }

  Case c_;
  bool layer_;
  std::vector<uint16_t> x_, dy_, residual_, gamma_;
  std::vector<float> mean_, rstd_;
};

TEST(NormBackward, GradientsOfAlignedAndRaggedShapes) {
  for (NormKind kind : {NormKind::layer, NormKind::rms})
    for (auto [rows, cols] :
         {std::pair{1, 8}, {17, 33}, {6, 512}, {1000, 72}, {13, 1600}, {5, 4096}})
      for (bool residual : {false, true}) Check({kind, rows, cols, residual}).go();
}

TEST(NormBackward, WideRowsAndVariants) {
  Check({.rows = 5, .cols = 8200, .residual = true, .column_step = 7}).go();
  Check({.kind = NormKind::rms, .rows = 6, .cols = 32768, .column_step = 11}).go();
  Check({.rows = 9, .cols = 264, .zero_centered = true}).go();
  Check({.rows = 9, .cols = 264, .residual = true, .shift = 1}).go();
}

TEST(NormBackward, TwoLaunches) {
  DeviceArray<uint16_t> x(test::random_bf16(64 * 64, 3)), dx(64 * 64);
  DeviceArray<float> stats(std::vector<float>(64, 1)), sums(64);
  DeviceArray<uint8_t> workspace(norm_backward_workspace(64, 132));
  NormBackward call;
  call.kind = NormKind::rms, call.rows = call.cols = 64;
  call.dy = call.x = call.gamma = x.get(), call.dx = dx.get(), call.rstd = stats.get();
  call.dgamma = sums.get(), call.workspace = workspace.get();
  call.workspace_bytes = norm_backward_workspace(64, 132);
  EXPECT_EQ(test::work_of([&](cudaStream_t s) { EXPECT_TRUE(norm_backward(call, s).ok()); }),
            (test::Work{2, 0}));
  EXPECT_EQ(plan_norm_backward(call, 132).describe(),
            "64 threads, clusters of 1, 16 groups of rows, 16-byte accesses");
  call.mean = stats.get();
  EXPECT_EQ(norm_backward(call, nullptr).error().message,
            "norm backward: RMSNorm has neither dbeta nor mean");
}

}  // namespace
}  // namespace ptxbench::te
