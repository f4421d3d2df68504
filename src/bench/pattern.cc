// Each hypothesis predicts every sampled element; one that predicts nearly all of those that are
// wrong is named. Samples lie on a grid so that each 16x16 neighbourhood has the same chance.
#include "bench/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "numeric/float_formats.h"

namespace ptxbench::bench {
namespace {

struct Sample {
  int64_t row, column;
  double actual, right;
};

double at(std::span<const uint16_t> matrix, int64_t index) {
  return static_cast<double>(numeric::bf16_to_float(matrix[static_cast<size_t>(index)]));
}

class Guesser {
 public:
  Guesser(std::span<const uint16_t> a, std::span<const uint16_t> b, std::span<const uint16_t> c,
          int64_t m, int64_t n, int64_t k)
      : a_(a), b_(b), m_(m), n_(n), k_(k) {
    constexpr int64_t kSide = 24;
    for (int64_t i = 0; i < std::min(kSide, m); ++i)
      for (int64_t j = 0; j < std::min(kSide, n); ++j) {
        const int64_t row = (2 * i + 1) * m / (2 * std::min(kSide, m));
        const int64_t column = (2 * j + 1) * n / (2 * std::min(kSide, n));
        const double actual = at(c, row * n + column), right = dot(row, column, k);
        if (!near(actual, right)) wrong_.push_back({row, column, actual, right});
      }
  }

  std::string guess() const {
    if (wrong_.size() < 4) return "";
    if (fits([](const Sample&) { return 0.0; })) return "zeros";
    if (fits([this](const Sample&) { return wrong_[0].actual; })) return "one constant everywhere";
    for (int64_t tail : {8, 16, 32, 64, 128, 256})
      if (tail < k_ && fits([&](const Sample& s) { return dot(s.row, s.column, k_ - tail); }))
        return fmt::format("the last {} of K left out", tail);
    if (fits([this](const Sample& s) {
          return s.right + dot_range(s.row, s.column, 0, std::min<int64_t>(64, k_));
        }))
      return "the first K step counted twice";
    if (fits([this](const Sample& s) {
          return s.row < n_ && s.column < m_ ? dot(s.column, s.row, k_) : s.right;
        }))
      return "the transposed result";
    const double scale = wrong_[0].right != 0 ? wrong_[0].actual / wrong_[0].right : 0;
    if (std::isfinite(scale) && std::abs(scale) > 1e-6 &&
        fits([&](const Sample& s) { return scale * s.right; }, 0.02))
      return fmt::format("the right result times {:.3g}", scale);
    return "";
  }

 private:
  double dot_range(int64_t row, int64_t column, int64_t begin, int64_t end) const {
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += at(a_, row * k_ + i) * at(b_, column * k_ + i);
    return sum;
  }
  double dot(int64_t row, int64_t column, int64_t end) const {
    return dot_range(row, column, 0, end);
  }
  static bool near(double actual, double expected, double tolerance = 0.006) {
    return std::abs(actual - expected) <= tolerance * std::abs(expected) + 1e-6;
  }
  // True if the hypothesis explains at least 95 % of the wrong samples.
  bool fits(const std::function<double(const Sample&)>& predict, double tolerance = 0.006) const {
    size_t hits = 0, misses = 0;
    for (const Sample& sample : wrong_) {
      near(sample.actual, predict(sample), tolerance) ? ++hits : ++misses;
      if (misses * 20 > wrong_.size()) return false;
    }
    return hits > 0;
  }

  std::span<const uint16_t> a_, b_;
  int64_t m_, n_, k_;
  std::vector<Sample> wrong_;
};

}  // namespace

std::string guess_gemm_pattern(std::span<const uint16_t> a, std::span<const uint16_t> b,
                               std::span<const uint16_t> c, int64_t m, int64_t n, int64_t k) {
  return Guesser(a, b, c, m, n, k).guess();
}

}  // namespace ptxbench::bench
