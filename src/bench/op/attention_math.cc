#include "bench/op/attention_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/blas.h"
#include "bench/op/operation.h"

namespace ptxbench::bench {
namespace {

constexpr int64_t kBlockRows = 256;
// What fp32 leaves of a sum whose terms cancel, relative to the terms.
constexpr double kFloatError = 0x1p-21;
// Rounding in a running fp32 sum of positive terms, relative to the sum, times the root of their
// number.
constexpr double kSumError = 0x1p-25;

std::vector<double> squared(std::span<const double> values) {
  std::vector<double> result(values.begin(), values.end());
  for (double& x : result) x *= x;
  return result;
}

double norm(const double* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += values[i] * values[i];
  return std::sqrt(sum);
}

double largest_row_norm(std::span<const double> values, int64_t columns) {
  double largest = 0;
  for (size_t i = 0; i < values.size(); i += static_cast<size_t>(columns))
    largest = std::max(largest, norm(&values[i], columns));
  return largest;
}

double operand_variance(const AttentionHead& h) {
  return h.operand_bits > 0 ? rounding_variance(h.operand_bits) : 0;
}

void add_output_rounding(const AttentionHead& h, const std::vector<double>& values, double factor,
                         std::vector<double>& noise) {
  const double variance = rounding_variance(h.output_bits);
  const double least = h.output_unit * h.output_unit / 12;
  for (size_t i = 0; i < values.size(); ++i)
    noise[i] = factor * noise[i] + std::max(variance * values[i] * values[i], least);
}

// Rows first.. of the masked scores; keys beyond those that the last row sees are left out.
struct Block {
  int64_t first = 0, rows = 0, keys = 0;
  std::vector<double> scores;
};

Result<Block> scores_of(const AttentionHead& h, int64_t first, int threads) {
  Block block;
  block.first = first;
  block.rows = std::min(kBlockRows, h.queries - first);
  block.keys = h.visible(first + block.rows - 1);
  block.scores.resize(static_cast<size_t>(block.rows * block.keys));
  if (block.keys == 0) return block;
  PB_RETURN_IF_ERROR(
      dgemm({false, true, block.rows, block.keys, h.d, &h.q[static_cast<size_t>(first * h.d)],
             h.k.data(), block.scores.data(), 0},
            threads));
  for (int64_t r = 0; r < block.rows; ++r) {
    double* row = &block.scores[static_cast<size_t>(r * block.keys)];
    const int64_t visible = h.visible(first + r);
    for (int64_t j = 0; j < visible; ++j) row[j] *= h.scale;
    for (int64_t j = visible; j < block.keys; ++j)
      row[j] = -std::numeric_limits<double>::infinity();
  }
  return block;
}

// Turns a row of scores into probabilities; returns LSE.
double softmax(double* row, int64_t count) {
  const double largest = count > 0 ? *std::max_element(row, row + count) : -INFINITY;
  if (!std::isfinite(largest)) {
    std::fill(row, row + count, 0.0);
    return largest;
  }
  double sum = 0;
  for (int64_t j = 0; j < count; ++j) sum += row[j] = std::exp(row[j] - largest);
  for (int64_t j = 0; j < count; ++j) row[j] /= sum;
  return largest + std::log(sum);
}

// A row of probabilities to the variances that rounding them gives.
void round_probabilities(const AttentionHead& h, double* row, int64_t keys) {
  const double variance = operand_variance(h);
  double unit = 0;
  if (h.operand_unit > 0 && keys > 0) unit = h.operand_unit * *std::max_element(row, row + keys);
  for (int64_t j = 0; j < keys; ++j)  // hidden keys stay exact
    if (row[j] > 0) row[j] = std::max(variance * row[j] * row[j], unit * unit / 12);
}

}  // namespace

Result<AttentionResult> attend(const AttentionHead& h, int threads) {
  AttentionResult result;
  const size_t size = static_cast<size_t>(h.queries * h.d_v);
  result.o.resize(size);
  result.o_noise.resize(size);
  result.lse.resize(static_cast<size_t>(h.queries));
  const std::vector<double> v2 = squared(h.v);
  const double variance = operand_variance(h);
  for (int64_t first = 0; first < h.queries; first += kBlockRows) {
    PB_ASSIGN_OR_RETURN(Block block, scores_of(h, first, threads));
    for (int64_t r = 0; r < block.rows; ++r)
      result.lse[static_cast<size_t>(first + r)] =
          softmax(block.scores.data() + r * block.keys, block.keys);
    if (block.keys == 0) continue;
    const size_t at = static_cast<size_t>(first * h.d_v);
    PB_RETURN_IF_ERROR(dgemm({false, false, block.rows, h.d_v, block.keys, block.scores.data(),
                              h.v.data(), &result.o[at], 0},
                             threads));
    if (variance == 0) continue;
    for (int64_t r = 0; r < block.rows; ++r)
      round_probabilities(h, block.scores.data() + r * block.keys, block.keys);
    PB_RETURN_IF_ERROR(dgemm({false, false, block.rows, h.d_v, block.keys, block.scores.data(),
                              v2.data(), &result.o_noise[at], 0},
                             threads));
  }
  add_output_rounding(h, result.o, 1, result.o_noise);
  result.lse_noise = lse_noise(h, result.lse);
  return result;
}

std::vector<double> lse_noise(const AttentionHead& h, std::span<const double> lse) {
  std::vector<double> noise(lse.size());
  const double largest_k = largest_row_norm(h.k, h.d);
  for (size_t row = 0; row < lse.size(); ++row) {
    const double size = 1 + std::abs(std::isfinite(lse[row]) ? lse[row] : 0) +
                        norm(&h.q[row * static_cast<size_t>(h.d)], h.d) * largest_k * h.scale;
    const double keys = static_cast<double>(h.visible(static_cast<int64_t>(row)));
    const double error = h.score_error * size + kSumError * std::sqrt(keys);
    noise[row] = error * error;
  }
  return noise;
}

Result<AttentionGradient> attend_backward(const AttentionHead& h, std::span<const double> o,
                                          std::span<const double> d_o, std::span<const double> lse,
                                          int threads) {
  AttentionGradient g;
  for (auto* x : {&g.dq, &g.dq_noise}) x->resize(h.q.size());
  for (auto* x : {&g.dk, &g.dk_noise}) x->resize(h.k.size());
  for (auto* x : {&g.dv, &g.dv_noise}) x->resize(h.v.size());
  const std::vector<double> q2 = squared(h.q), k2 = squared(h.k), do2 = squared(d_o);
  const double variance = operand_variance(h);
  std::vector<double> dp, noise;
  for (int64_t first = 0; first < h.queries; first += kBlockRows) {
    PB_ASSIGN_OR_RETURN(Block block, scores_of(h, first, threads));
    if (block.keys == 0) continue;
    const size_t at_q = static_cast<size_t>(first * h.d), at_o = static_cast<size_t>(first * h.d_v);
    std::vector<double>& p = block.scores;
    for (size_t i = 0; i < p.size(); ++i)
      p[i] = std::exp(p[i] - lse[static_cast<size_t>(first) + i / static_cast<size_t>(block.keys)]);
    const auto product = [&](bool transposed, int64_t columns, const std::vector<double>& a,
                             const double* b, double* c) {
      // Gradients of keys and values collect what all blocks of queries give.
      return dgemm({transposed, false, transposed ? block.keys : block.rows, columns,
                    transposed ? block.rows : block.keys, a.data(), b, c, transposed ? 1.0 : 0.0},
                   threads);
    };
    PB_RETURN_IF_ERROR(product(true, h.d_v, p, &d_o[at_o], g.dv.data()));
    noise = p;
    for (double& x : noise) x *= x * variance;
    PB_RETURN_IF_ERROR(product(true, h.d_v, noise, &do2[at_o], g.dv_noise.data()));
    dp.resize(p.size());
    PB_RETURN_IF_ERROR(
        dgemm({false, true, block.rows, block.keys, h.d_v, &d_o[at_o], h.v.data(), dp.data(), 0},
              threads));
    for (int64_t r = 0; r < block.rows; ++r) {
      double delta = 0;
      for (int64_t c = 0; c < h.d_v; ++c) {
        const size_t at = at_o + static_cast<size_t>(r * h.d_v + c);
        delta += o[at] * d_o[at];
      }
      for (int64_t j = 0; j < block.keys; ++j) {
        const size_t at = static_cast<size_t>(r * block.keys + j);
        const double cancelled = kFloatError * p[at] * (std::abs(dp[at]) + std::abs(delta));
        dp[at] = p[at] * (dp[at] - delta);
        noise[at] = variance * dp[at] * dp[at] + cancelled * cancelled;
      }
    }
    PB_RETURN_IF_ERROR(product(false, h.d, dp, h.k.data(), &g.dq[at_q]));
    PB_RETURN_IF_ERROR(product(false, h.d, noise, k2.data(), &g.dq_noise[at_q]));
    PB_RETURN_IF_ERROR(product(true, h.d, dp, &h.q[at_q], g.dk.data()));
    PB_RETURN_IF_ERROR(product(true, h.d, noise, &q2[at_q], g.dk_noise.data()));
  }
  for (auto* x : {&g.dq, &g.dk})
    for (double& value : *x) value *= h.scale;
  add_output_rounding(h, g.dq, h.scale * h.scale, g.dq_noise);
  add_output_rounding(h, g.dk, h.scale * h.scale, g.dk_noise);
  add_output_rounding(h, g.dv, 1, g.dv_noise);
  return g;
}

}  // namespace ptxbench::bench
