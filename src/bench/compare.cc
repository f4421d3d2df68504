// One pass over the output in strips of 16 rows, which threads share out. Sums are kept per strip
// and added in strip order, so that every number is the same for any number of threads.
#include "bench/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "numeric/float_formats.h"

namespace ptxbench::bench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kWorst = 8;

double double_from_bf16(uint16_t bits) { return static_cast<double>(numeric::bf16_to_float(bits)); }

enum class Class { finite, nan, positive_infinity, negative_infinity };
Class classify(double x) {
  if (std::isnan(x)) return Class::nan;
  if (std::isinf(x)) return x > 0 ? Class::positive_infinity : Class::negative_infinity;
  return Class::finite;
}

double badness(const BadElement& element) {
  const double error = std::abs(element.expected - element.actual);
  return std::isnan(error) ? kInfinity : error;
}

void keep_worst(std::vector<BadElement>& worst, const BadElement& element) {
  auto less = [](const BadElement& a, const BadElement& b) { return badness(a) > badness(b); };
  worst.insert(std::upper_bound(worst.begin(), worst.end(), element, less), element);
  if (worst.size() > kWorst) worst.pop_back();
}

double ratio(double part, double whole) {
  if (whole > 0) return part / whole;
  return part > 0 ? kInfinity : 0;
}

}  // namespace

struct Comparator::Partial {
  uint64_t verified = 0, poisoned = 0, class_mismatches = 0, misrounded = 0, rule_a_failures = 0;
  double max_abs = 0, max_rel = 0, error2 = 0, reference2 = 0;
  std::vector<BadElement> worst;
};

Comparator::Comparator(std::span<const uint16_t> actual, int64_t rows, int64_t columns,
                       uint16_t poison)
    : actual_(actual),
      rows_(rows),
      columns_(columns),
      tile_columns_((columns + kTile - 1) / kTile),
      poison_(poison) {
  tiles_.resize(static_cast<size_t>((rows + kTile - 1) / kTile * tile_columns_));
  sum_.total = static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns);
}

void Comparator::add_tile_row(int64_t first_row, int64_t count, const double* expected,
                              Partial& partial) {
  Tile* tiles = &tiles_[static_cast<size_t>(first_row / kTile * tile_columns_)];
  for (int64_t row = 0; row < count; ++row) {
    const uint16_t* actual_row = &actual_[static_cast<size_t>((first_row + row) * columns_)];
    const double* expected_row = expected + row * columns_;
    for (int64_t column = 0; column < columns_; ++column) {
      Tile& tile = tiles[column / kTile];
      const uint16_t bits = actual_row[column];
      const double right = expected_row[column];
      const uint16_t rounded_bits = numeric::bf16_from_double(right);
      const double rounded = double_from_bf16(rounded_bits);
      ++tile.elements;
      if (bits == rounded_bits || ((bits | rounded_bits) == 0x8000 && rounded == 0)) {
        if (std::isfinite(rounded)) {  // the usual case: correctly rounded
          const double error = rounded - right;
          tile.error2 += error * error;
          tile.reference2 += right * right;
          partial.max_abs = std::max(partial.max_abs, std::abs(error));
          if (right != 0) partial.max_rel = std::max(partial.max_rel, std::abs(error / right));
        }
        continue;
      }
      const double actual = double_from_bf16(bits);
      const bool is_poison = bits == poison_;
      if (is_poison) ++partial.poisoned, ++tile.poisoned;
      if (is_poison || classify(actual) != classify(rounded)) {
        ++partial.class_mismatches, ++tile.class_mismatches;
        ++partial.misrounded, ++tile.misrounded;
        ++partial.rule_a_failures;
        if (std::isfinite(rounded)) tile.reference2 += right * right;
        keep_worst(partial.worst, {first_row + row, column, right, actual});
        continue;
      }
      if (!std::isfinite(actual)) continue;  // NaNs with different bits are the same class
      ++partial.misrounded, ++tile.misrounded;
      const double error = std::abs(actual - right);
      tile.error2 += error * error;
      tile.reference2 += right * right;
      const double relative = right != 0 ? error / std::abs(right) : kInfinity;
      partial.max_abs = std::max(partial.max_abs, error);
      partial.max_rel = std::max(partial.max_rel, relative);
      const double published_error = std::abs(actual - rounded);
      if (published_error > 1e-2 && published_error > 1e-2 * std::abs(rounded))
        ++partial.rule_a_failures;
      if (partial.worst.size() < kWorst || error > badness(partial.worst.back()))
        keep_worst(partial.worst, {first_row + row, column, right, actual});
    }
    partial.verified += static_cast<uint64_t>(columns_);
  }
  for (int64_t t = 0; t < tile_columns_; ++t) {
    partial.error2 += tiles[t].error2;
    partial.reference2 += tiles[t].reference2;
  }
}

void Comparator::add_block(int64_t first_row, int64_t count, std::span<const double> expected,
                           int threads) {
  const int64_t strips = (count + kTile - 1) / kTile;
  std::vector<Partial> partials(static_cast<size_t>(strips));
  auto work = [&](int64_t begin, int64_t step) {
    for (int64_t strip = begin; strip < strips; strip += step)
      add_tile_row(first_row + strip * kTile, std::min(kTile, count - strip * kTile),
                   expected.data() + strip * kTile * columns_,
                   partials[static_cast<size_t>(strip)]);
  };
  std::vector<std::thread> helpers;
  const int64_t step = std::clamp<int64_t>(threads, 1, strips);
  for (int64_t t = 1; t < step; ++t) helpers.emplace_back(work, t, step);
  work(0, step);
  for (std::thread& helper : helpers) helper.join();

  for (const Partial& partial : partials) {
    sum_.verified += partial.verified;
    sum_.poisoned += partial.poisoned;
    sum_.class_mismatches += partial.class_mismatches;
    sum_.misround_rate += static_cast<double>(partial.misrounded);
    sum_.rule_a_failures += partial.rule_a_failures;
    sum_.max_abs = std::max(sum_.max_abs, partial.max_abs);
    sum_.max_rel = std::max(sum_.max_rel, partial.max_rel);
    error2_ += partial.error2;
    reference2_ += partial.reference2;
    for (const BadElement& element : partial.worst) keep_worst(sum_.worst, element);
  }
}

Correctness Comparator::finish() {
  Correctness result = sum_;
  const double total = static_cast<double>(std::max<uint64_t>(result.total, 1));
  result.misround_rate /= total;
  result.matched_ratio =
      (static_cast<double>(result.verified) - static_cast<double>(result.rule_a_failures)) / total;
  result.rel_frobenius =
      result.class_mismatches > 0 ? kInfinity : std::sqrt(ratio(error2_, reference2_));
  result.tiles = tiles_.size();
  double worst_score = -1;
  for (size_t t = 0; t < tiles_.size(); ++t) {
    const Tile& tile = tiles_[t];
    const double frobenius =
        tile.class_mismatches > 0 ? kInfinity : std::sqrt(ratio(tile.error2, tile.reference2));
    // Ragged tiles have few elements: one misrounding in 16 is no rate. Count against a full tile.
    const double misround =
        static_cast<double>(tile.misrounded) / std::max<double>(tile.elements, kTile * kTile);
    result.tile_rel_frobenius = std::max(result.tile_rel_frobenius, frobenius);
    result.tile_misround_rate = std::max(result.tile_misround_rate, misround);
    const double score = std::min(frobenius, 1e300) + misround * 1e-3;
    if (score > worst_score) {
      worst_score = score;
      result.tile_row = static_cast<int64_t>(t) / tile_columns_ * kTile;
      result.tile_column = static_cast<int64_t>(t) % tile_columns_ * kTile;
    }
  }
  return result;
}

// Above 1: the tile breaks a bound. Infinite where NaN, infinity or poison decides.
double Comparator::severity(const Tile& tile, const Correctness& bounds) const {
  if (tile.class_mismatches > 0) return kInfinity;
  const double frobenius = std::sqrt(ratio(tile.error2, tile.reference2));
  const double misround = static_cast<double>(tile.misrounded) / (kTile * kTile);
  return std::max(ratio(frobenius, bounds.bound_tile_rel_frobenius),
                  ratio(misround, bounds.bound_tile_misround));
}

std::vector<uint64_t> Comparator::locate(Correctness& result) const {
  result.map = TileMap(rows_, columns_);
  std::vector<uint64_t> bad;
  int64_t first_row = rows_, last_row = -1, first_column = columns_, last_column = -1;
  for (size_t t = 0; t < tiles_.size(); ++t) {
    const double badness = severity(tiles_[t], result);
    const int64_t row = static_cast<int64_t>(t) / tile_columns_;
    const int64_t column = static_cast<int64_t>(t) % tile_columns_;
    result.map.add(row, column, badness, tiles_[t].poisoned > 0);
    if (badness <= 1) continue;
    bad.push_back(t);
    first_row = std::min(first_row, row * kTile);
    last_row = std::max(last_row, std::min(rows_, (row + 1) * kTile) - 1);
    first_column = std::min(first_column, column * kTile);
    last_column = std::max(last_column, std::min(columns_, (column + 1) * kTile) - 1);
  }
  result.bad_tiles = bad.size();
  if (bad.empty()) return bad;
  result.first_bad_row = first_row;
  result.last_bad_row = last_row;
  result.first_bad_column = first_column;
  result.last_bad_column = last_column;
  return bad;
}

HonestError honest_error(const Calibration& calibration, int64_t k) {
  const auto& points = calibration.honest;
  if (points.empty()) return {};
  if (k <= points.front().k) return points.front();
  for (size_t i = 1; i < points.size(); ++i) {
    if (k > points[i].k) continue;
    const HonestError &low = points[i - 1], &high = points[i];
    const double t = std::log(static_cast<double>(k) / static_cast<double>(low.k)) /
                     std::log(static_cast<double>(high.k) / static_cast<double>(low.k));
    return {k, std::lerp(low.rel_frobenius, high.rel_frobenius, t),
            std::lerp(low.misround, high.misround, t),
            std::lerp(low.tile_misround, high.tile_misround, t)};
  }
  return points.back();
}

void decide(const Calibration& calibration, int64_t k, Correctness& c) {
  const HonestError honest = honest_error(calibration, k);
  c.bound_rel_frobenius = calibration.rel_frobenius_factor * honest.rel_frobenius;
  c.bound_tile_rel_frobenius = calibration.tile_rel_frobenius_factor * honest.rel_frobenius;
  c.bound_misround = std::max(calibration.misround, calibration.misround_factor * honest.misround);
  c.bound_tile_misround =
      std::max(calibration.tile_misround, calibration.misround_factor * honest.tile_misround);
  c.rule_a_passed = c.total > 0 && c.verified == c.total && c.rule_a_failures == 0;
  // Written so that a NaN statistic fails.
  if (c.total == 0 || c.verified != c.total)
    c.why = fmt::format("only {} of {} elements were compared", c.verified, c.total);
  else if (c.poisoned > 0)
    c.why = fmt::format("{} of {} elements were never written", c.poisoned, c.total);
  else if (c.class_mismatches > 0)
    c.why = fmt::format(
        "{} of {} elements are NaN or infinite where the result is finite, or the reverse",
        c.class_mismatches, c.total);
  else if (!(c.rel_frobenius <= c.bound_rel_frobenius))
    c.why = fmt::format("relative Frobenius error {:.3g}, allowed {:.3g}", c.rel_frobenius,
                        c.bound_rel_frobenius);
  else if (!(c.tile_rel_frobenius <= c.bound_tile_rel_frobenius))
    c.why =
        fmt::format("relative Frobenius error {:.3g} in the 16x16 tile at [{},{}], allowed {:.3g}",
                    c.tile_rel_frobenius, c.tile_row, c.tile_column, c.bound_tile_rel_frobenius);
  else if (!(c.misround_rate <= c.bound_misround))
    c.why = fmt::format("{:.2f} % of the elements are not correctly rounded, allowed {:.2f} %",
                        100 * c.misround_rate, 100 * c.bound_misround);
  else if (!(c.tile_misround_rate <= c.bound_tile_misround))
    c.why = fmt::format(
        "{:.1f} % of a 16x16 tile (at [{},{}]) are not correctly rounded, allowed {:.1f} %",
        100 * c.tile_misround_rate, c.tile_row, c.tile_column, 100 * c.bound_tile_misround);
  c.passed = c.why.empty();
}

}  // namespace ptxbench::bench
