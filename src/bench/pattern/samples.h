#pragma once
// What the hypotheses share: elements picked from the output with their right values, and the test
// whether a formula reproduces the wrong ones.

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "bench/pattern/explain.h"

namespace ptxbench::bench::pattern {

struct Sample {
  int64_t row = 0, column = 0;
  uint16_t bits = 0;   // as written
  double actual = 0;   // value of bits
  double right = 0;    // fp64 result
  double spread = 0;   // root of the sum of the squared products: the scale of rounding errors
  bool wrong = false;  // beyond what rounding explains
};

class Samples {
 public:
  Samples(const GemmView& gemm, std::span<const uint64_t> bad_tiles);

  const GemmView& gemm() const { return gemm_; }
  const std::vector<Sample>& all() const { return all_; }
  // Up to 96 wrong ones, spread over the output.
  const std::vector<Sample>& wrong() const { return wrong_; }
  // Up to 48 whose bits are not the correctly rounded result (wrong ones among them).
  const std::vector<Sample>& misrounded() const { return misrounded_; }
  bool from_bad_tiles() const { return from_bad_tiles_; }

  double a(int64_t row, int64_t k) const;
  double b(int64_t column, int64_t k) const;
  // Sum over begin <= k < end; right(row, column) is the sum over all of K.
  double dot(int64_t row, int64_t column, int64_t begin, int64_t end) const;
  double right(int64_t row, int64_t column) const { return dot(row, column, 0, gemm_.k); }
  bool inside(int64_t row, int64_t column) const {
    return row >= 0 && row < gemm_.m && column >= 0 && column < gemm_.n;
  }

  // bf16 rounding and a fp32 sum's error apart from each other.
  static bool near(const Sample& sample, double value) {
    return std::abs(sample.actual - value) <= 0.006 * std::abs(value) + 1e-5 * sample.spread;
  }

  // The share of the wrong samples that `predict` reproduces; nothing if it is wrong about more
  // than 5 % of them. NaN: the formula says nothing about a sample, as at most half may be.
  using Formula = std::function<double(const Sample&)>;
  std::optional<double> fits(const Formula& predict) const;

 private:
  void add(int64_t row, int64_t column);
  void add_grid();
  void add_tile(uint64_t tile);
  void add_more_for_rounding();
  void split();

  GemmView gemm_;
  std::vector<Sample> all_, wrong_, misrounded_;
  bool from_bad_tiles_ = false;
};

// One group of hypotheses each, in files of their own; kind "" if none fits.
Explanation explain_contents(const Samples& samples);   // zeros, NaN, a constant, a factor, a bias
Explanation explain_reduction(const Samples& samples);  // parts of K left out, repeated, exchanged
Explanation explain_layout(const Samples& samples);     // transposed, shifted, permuted output
Explanation explain_swizzle(const Samples& samples);    // operands permuted in shared memory
Explanation explain_precision(const Samples& samples);  // cheaper arithmetic
Explanation explain_scatter(const Samples& samples);    // as of a race

}  // namespace ptxbench::bench::pattern
