#include "report/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "numeric/random.h"

namespace ptxbench::report {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kZ = 1.959963984540054;  // the normal distribution's 97.5 % quantile
constexpr size_t kResamples = 2000;

std::vector<double> ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t j = i; j < end; ++j) rank[order[j]] = (static_cast<double>(i + end) - 1) / 2;
    i = end;
  }
  return rank;
}

}  // namespace

Interval wilson(uint64_t successes, uint64_t trials) {
  if (trials == 0) return {};
  const double n = static_cast<double>(trials), p = static_cast<double>(successes) / n;
  const double z2 = kZ * kZ;
  const double centre = p + z2 / (2 * n);
  const double half = kZ * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  const double scale = 1 + z2 / n;
  // At the ends the formula gives 0 and 1 up to rounding.
  return {successes == 0 ? 0 : (centre - half) / scale,
          successes == trials ? 1 : (centre + half) / scale};
}

double pass_at_k(uint64_t n, uint64_t c, uint64_t k) {
  if (k == 0 || k > n || c > n) return kNaN;
  if (n - c < k) return 1;
  double none = 1;  // the chance that k draws miss all c
  for (uint64_t i = n - c + 1; i <= n; ++i)
    none *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return 1 - none;
}

double geometric_mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return values.empty() ? kNaN : std::exp(sum / static_cast<double>(values.size()));
}

double mean(std::span<const double> values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return values.empty() ? kNaN : sum / static_cast<double>(values.size());
}

double median(std::span<const double> values) {
  if (values.empty()) return kNaN;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double rank_correlation(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size() || x.size() < 3) return kNaN;
  const std::vector<double> rx = ranks(x), ry = ranks(y);
  const double centre = (static_cast<double>(x.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < rx.size(); ++i) {
    xy += (rx[i] - centre) * (ry[i] - centre);
    xx += (rx[i] - centre) * (rx[i] - centre);
    yy += (ry[i] - centre) * (ry[i] - centre);
  }
  return xx == 0 || yy == 0 ? kNaN : xy / std::sqrt(xx * yy);
}

double sign_test(uint64_t wins, uint64_t losses) {
  const uint64_t n = wins + losses, least = std::min(wins, losses);
  double tail = 0;
  const double nn = static_cast<double>(n);
  for (uint64_t i = 0; i <= least; ++i) {
    const double ii = static_cast<double>(i);
    tail += std::exp(std::lgamma(nn + 1) - std::lgamma(ii + 1) - std::lgamma(nn - ii + 1) -
                     nn * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);
}

Interval bootstrap_mean(std::span<const double> differences) {
  const uint64_t n = differences.size();
  if (n < 2) return {kNaN, kNaN};
  const numeric::Random random({0x7265706f7274, 0});
  std::vector<double> means(kResamples);
  for (size_t r = 0; r < kResamples; ++r) {
    double sum = 0;
    for (uint64_t i = 0; i < n; ++i) sum += differences[random.below(r * n + i, n)];
    means[r] = sum / static_cast<double>(n);
  }
  std::sort(means.begin(), means.end());
  const auto at = [&](double q) {
    return means[static_cast<size_t>(q * static_cast<double>(kResamples - 1) + 0.5)];
  };
  return {at(0.025), at(0.975)};
}

}  // namespace ptxbench::report
