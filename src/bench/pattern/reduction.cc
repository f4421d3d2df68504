// Parts of the reduction that are missing, counted twice, or taken from another place. Prefix sums
// in steps of eight make one look-up of any range.
#include <fmt/format.h>

#include <algorithm>

#include "bench/pattern/samples.h"

namespace ptxbench::bench::pattern {
namespace {

constexpr int64_t kStep = 8;
constexpr size_t kFewest = 8, kMaxPrefixes = 48;

struct Candidate {
  bool found = false;
  int64_t begin = 0, end = 0;  // of K
  double fit = 0, residue = 0;
};

class Reduction {
 public:
  explicit Reduction(const Samples& samples) : k_(samples.gemm().k) {
    const auto& wrong = samples.wrong();
    const size_t count = std::min(wrong.size(), kMaxPrefixes);
    for (size_t i = 0; i < count; ++i) {
      samples_.push_back(wrong[i * wrong.size() / count]);
      const Sample& s = samples_.back();
      std::vector<double> sums = {0};
      for (int64_t at = 0; at < k_; at += kStep)
        sums.push_back(sums.back() + samples.dot(s.row, s.column, at, std::min(k_, at + kStep)));
      prefixes_.push_back(std::move(sums));
    }
  }
  size_t size() const { return samples_.size(); }

  // Right plus `sign` times the range's sum: -1 left out, +1 counted twice.
  double with_range(size_t i, int sign, int64_t begin, int64_t end) const {
    return samples_[i].right + sign * range(i, begin, end);
  }
  double range(size_t i, int64_t begin, int64_t end) const {
    const auto& sums = prefixes_[i];
    return sums[static_cast<size_t>((end + kStep - 1) / kStep)] -
           sums[static_cast<size_t>(begin / kStep)];
  }

  // Whether `predict(sample index)` gives nearly all; keeps the better one in `best`.
  template <class F>
  void consider(Candidate& best, int64_t begin, int64_t end, F predict) const {
    size_t misses = 0;
    double residue = 0;
    for (size_t i = 0; i < samples_.size(); ++i) {
      const double predicted = predict(i);
      if (!Samples::near(samples_[i], predicted) && ++misses * 20 > samples_.size()) return;
      residue += std::min(1.0, std::abs(samples_[i].actual - predicted) / samples_[i].spread);
    }
    if (best.found && residue >= best.residue) return;
    best = {true, begin, end,
            1 - static_cast<double>(misses) / static_cast<double>(samples_.size()), residue};
  }

  Candidate tail() const { return search_edge(true); }
  Candidate head() const { return search_edge(false); }
  Candidate block(int sign) const {
    Candidate best;
    for (int64_t length : {kStep, 2 * kStep, 4 * kStep, 8 * kStep, 16 * kStep, 32 * kStep})
      for (int64_t begin = 0; begin + length <= k_; begin += length)
        consider(best, begin, begin + length,
                 [&](size_t i) { return with_range(i, sign, begin, begin + length); });
    return best;
  }
  // One K step in the place of another: begin is the step that is missing, end the one used.
  Candidate exchange(int64_t length) const {
    Candidate best;
    for (int64_t missing = 0; missing + length <= k_; missing += length)
      for (int64_t used = 0; used + length <= k_; used += length)
        if (used != missing)
          consider(best, missing, used, [&](size_t i) {
            return samples_[i].right - range(i, missing, missing + length) +
                   range(i, used, used + length);
          });
    return best;
  }

 private:
  Candidate search_edge(bool tail) const {
    Candidate best;
    for (int64_t cut = kStep; cut < k_; cut += kStep) {
      const int64_t begin = tail ? cut : 0, end = tail ? k_ : cut;
      consider(best, begin, end, [&](size_t i) { return with_range(i, -1, begin, end); });
    }
    return best;
  }

  int64_t k_;
  std::vector<Sample> samples_;
  std::vector<std::vector<double>> prefixes_;
};

// A tail shorter than the step of the prefix sums, or one that starts between two.
Explanation explain_odd_tail(const Samples& samples) {
  const int64_t k = samples.gemm().k;
  for (int64_t tail = 1; tail < 64 && tail < k; ++tail) {
    const auto fit = samples.fits(
        [&](const Sample& s) { return s.right - samples.dot(s.row, s.column, k - tail, k); });
    if (fit) return {"k-tail", fmt::format("the last {} of K left out", tail), *fit};
  }
  return {};
}

// Only one operand from another K step.
Explanation explain_stale_operand(const Samples& samples) {
  const int64_t k = samples.gemm().k, length = 64;
  if (k / length > 40) return {};  // steps squared times K: seconds
  for (bool stale_a : {true, false})
    for (int64_t step = 0; step + length <= k; step += length)
      for (int64_t used = 0; used + length <= k; used += length) {
        if (used == step) continue;
        const auto fit = samples.fits([&](const Sample& s) {
          double sum = s.right;
          for (int64_t i = 0; i < length; ++i) {
            const double a = samples.a(s.row, step + i), b = samples.b(s.column, step + i);
            sum += stale_a ? (samples.a(s.row, used + i) - a) * b
                           : a * (samples.b(s.column, used + i) - b);
          }
          return sum;
        });
        if (fit)
          return {"k-stale",
                  fmt::format("at K {}..{} {} still or already holds the values of K {}..{}", step,
                              step + length - 1, stale_a ? "A" : "B", used, used + length - 1),
                  *fit};
      }
  return {};
}

}  // namespace

Explanation explain_reduction(const Samples& samples) {
  if (samples.wrong().size() < kFewest || samples.gemm().k < 2 * kStep) return {};
  const Reduction reduction(samples);
  const int64_t k = samples.gemm().k;
  const Candidate tail = reduction.tail(), block = reduction.block(-1);
  if (tail.found && (!block.found || tail.residue <= block.residue))
    return {"k-tail", fmt::format("the last {} of K left out", k - tail.begin), tail.fit};
  if (Explanation odd = explain_odd_tail(samples); !odd.kind.empty() && !block.found) return odd;
  if (const Candidate head = reduction.head();
      head.found && (!block.found || head.residue <= block.residue))
    return {"k-head", fmt::format("the first {} of K left out", head.end), head.fit};
  if (block.found)
    return {"k-block", fmt::format("K {}..{} left out", block.begin, block.end - 1), block.fit};
  if (const Candidate twice = reduction.block(+1); twice.found)
    return {"k-twice", fmt::format("K {}..{} counted twice", twice.begin, twice.end - 1),
            twice.fit};
  for (int64_t length : {64, 32, 128})
    if (const Candidate stale = reduction.exchange(length); stale.found)
      return {"k-stale",
              fmt::format("at K {}..{} A and B still or already hold the values of K {}..{}",
                          stale.begin, stale.begin + length - 1, stale.end, stale.end + length - 1),
              stale.fit};
  return explain_stale_operand(samples);
}

}  // namespace ptxbench::bench::pattern
