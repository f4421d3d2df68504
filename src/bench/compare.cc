// One pass over the output in strips of 16 rows, which threads share out. Sums are kept per strip
// and added in strip order, so that every number is the same for any number of threads.
#include "bench/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "numeric/float_formats.h"

namespace ptxbench::bench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kWorst = 8;

// An element type: its bits, its values, and the nearest element of a value.
struct Bf16 {
  using Bits = uint16_t;
  static constexpr Bits kSign = 0x8000;
  static double value(Bits bits) { return static_cast<double>(numeric::bf16_to_float(bits)); }
  static Bits round(double x) { return numeric::bf16_from_double(x); }
};
struct F16 {
  using Bits = uint16_t;
  static constexpr Bits kSign = 0x8000;
  static double value(Bits bits) { return static_cast<double>(numeric::f16_to_float(bits)); }
  static Bits round(double x) { return numeric::f16_from_double(x); }
};
struct F32 {
  using Bits = uint32_t;
  static constexpr Bits kSign = 0x80000000;
  static double value(Bits bits) { return static_cast<double>(std::bit_cast<float>(bits)); }
  static Bits round(double x) { return std::bit_cast<uint32_t>(static_cast<float>(x)); }
};
struct E4m3 {
  using Bits = uint8_t;
  static constexpr Bits kSign = 0x80;
  static double value(Bits bits) { return static_cast<double>(numeric::e4m3_to_float(bits)); }
  static Bits round(double x) { return numeric::e4m3_from_double(x); }
};
struct E5m2 {
  using Bits = uint8_t;
  static constexpr Bits kSign = 0x80;
  static double value(Bits bits) { return static_cast<double>(numeric::e5m2_to_float(bits)); }
  static Bits round(double x) { return numeric::e5m2_from_double(x); }
};

template <class Signed>
struct Integer {
  using Bits = std::make_unsigned_t<Signed>;
  static constexpr Bits kSign = 0;  // there is one zero only
  static double value(Bits bits) { return static_cast<double>(static_cast<Signed>(bits)); }
  static Bits round(double x) {
    Signed result;
    constexpr numeric::DType kType = sizeof(Signed) == 8   ? numeric::DType::int64
                                     : sizeof(Signed) == 4 ? numeric::DType::int32
                                     : sizeof(Signed) == 2 ? numeric::DType::int16
                                                           : numeric::DType::int8;
    numeric::store_element(kType, std::nearbyint(x), &result);
    return static_cast<Bits>(result);
  }
};

std::span<const uint8_t> bytes_of(std::span<const uint16_t> words) {
  return {reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()};
}

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
  double max_abs = 0, max_rel = 0, error2 = 0, reference2 = 0, noise2 = 0;
  std::vector<BadElement> worst;
};

std::vector<int64_t> element_index(const Correctness& correctness, int64_t row, int64_t column) {
  const std::vector<int64_t>& shape = correctness.shape;
  if (shape.empty()) return {row, column};
  // Views keep the order of elements, so the linear index of one is that of the other.
  int64_t at = row * std::max<int64_t>(correctness.columns, 1) + column;
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0; at /= shape[d]) index[d] = at % shape[d];
  return index;
}

std::string index_text(const Correctness& correctness, int64_t row, int64_t column) {
  return fmt::format("{}", fmt::join(element_index(correctness, row, column), ","));
}

Comparator::Comparator(std::span<const uint16_t> actual, int64_t rows, int64_t columns,
                       uint16_t poison)
    : Comparator(numeric::DType::bfloat16, bytes_of(actual), {1, rows, columns}, poison) {}

Comparator::Comparator(numeric::DType type, std::span<const uint8_t> actual, const OutputView& view,
                       uint64_t poison, const Tolerance& tolerance)
    : type_(type),
      actual_(actual),
      view_(view),
      tile_rows_((view.rows + kTile - 1) / kTile),
      tile_columns_((view.columns + kTile - 1) / kTile),
      poison_(poison),
      tolerance_(tolerance) {
  tiles_.resize(static_cast<size_t>(view.matrices * tile_rows_ * tile_columns_));
  sum_.total = static_cast<uint64_t>(view.matrices) * static_cast<uint64_t>(view.rows) *
               static_cast<uint64_t>(view.columns);
  sum_.columns = view.columns;
}

int64_t Comparator::tile_of(int64_t row) const {
  return (row / view_.rows * tile_rows_ + row % view_.rows / kTile) * tile_columns_;
}

void Comparator::add_strip(const Strip& strip, Partial& partial) {
  switch (type_) {
    case numeric::DType::float32:
      return add_strip<F32>(strip, partial);
    case numeric::DType::float16:
      return add_strip<F16>(strip, partial);
    case numeric::DType::float8_e4m3fn:
      return add_strip<E4m3>(strip, partial);
    case numeric::DType::float8_e5m2:
      return add_strip<E5m2>(strip, partial);
    case numeric::DType::int64:
      return add_strip<Integer<int64_t>>(strip, partial);
    case numeric::DType::int32:
      return add_strip<Integer<int32_t>>(strip, partial);
    case numeric::DType::int16:
      return add_strip<Integer<int16_t>>(strip, partial);
    case numeric::DType::int8:
    case numeric::DType::boolean:
      return add_strip<Integer<int8_t>>(strip, partial);
    default:  // make_outputs refuses other types
      return add_strip<Bf16>(strip, partial);
  }
}

template <class Format>
void Comparator::add_strip(const Strip& strip, Partial& partial) {
  using Bits = typename Format::Bits;
  const int64_t columns = view_.columns;
  const Bits poison = static_cast<Bits>(poison_);
  Tile* tiles = &tiles_[static_cast<size_t>(tile_of(strip.row))];
  for (int64_t row = 0; row < strip.count; ++row) {
    const uint8_t* actual_row =
        &actual_[static_cast<size_t>((strip.row + row) * columns) * sizeof(Bits)];
    const double* expected_row = strip.expected + row * columns;
    const double* noise_row = strip.noise == nullptr ? nullptr : strip.noise + row * columns;
    for (int64_t column = 0; column < columns; ++column) {
      Tile& tile = tiles[column / kTile];
      Bits bits;
      std::memcpy(&bits, actual_row + static_cast<size_t>(column) * sizeof(Bits), sizeof(Bits));
      const double right = expected_row[column];
      const Bits rounded_bits = Format::round(right);
      const double rounded = Format::value(rounded_bits);
      ++tile.elements;
      if (noise_row != nullptr) tile.noise2 += noise_row[column];
      if (bits == rounded_bits || ((bits | rounded_bits) == Format::kSign && rounded == 0)) {
        if (std::isfinite(rounded)) {  // the usual case: correctly rounded
          const double error = rounded - right;
          tile.error2 += error * error;
          tile.reference2 += right * right;
          partial.max_abs = std::max(partial.max_abs, std::abs(error));
          if (right != 0) partial.max_rel = std::max(partial.max_rel, std::abs(error / right));
        }
        continue;
      }
      const double actual = Format::value(bits);
      const bool is_poison = bits == poison;
      if (is_poison) ++partial.poisoned, ++tile.poisoned;
      if (is_poison || classify(actual) != classify(rounded)) {
        ++partial.class_mismatches, ++tile.class_mismatches;
        ++partial.misrounded, ++tile.misrounded;
        ++partial.rule_a_failures, ++tile.intolerable;
        if (std::isfinite(rounded)) tile.reference2 += right * right;
        keep_worst(partial.worst, {strip.row + row, column, right, actual});
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
      if (published_error > tolerance_.abs && published_error > tolerance_.rel * std::abs(rounded))
        ++tile.intolerable;
      if (partial.worst.size() < kWorst || error > badness(partial.worst.back()))
        keep_worst(partial.worst, {strip.row + row, column, right, actual});
    }
    partial.verified += static_cast<uint64_t>(columns);
  }
  for (int64_t t = 0; t < tile_columns_; ++t) {
    partial.error2 += tiles[t].error2;
    partial.reference2 += tiles[t].reference2;
    partial.noise2 += tiles[t].noise2;
  }
}

void Comparator::add_block(int64_t first_row, int64_t count, std::span<const double> expected,
                           int threads, std::span<const double> noise) {
  std::vector<Strip> strips;
  for (int64_t row = first_row; row < first_row + count; row += strips.back().count) {
    const int64_t in_matrix = row % view_.rows, at = (row - first_row) * view_.columns;
    strips.push_back(
        {row,
         std::min({kTile - in_matrix % kTile, view_.rows - in_matrix, first_row + count - row}),
         expected.data() + at, noise.empty() ? nullptr : noise.data() + at});
  }
  std::vector<Partial> partials(strips.size());
  auto work = [&](size_t begin, size_t step) {
    for (size_t s = begin; s < strips.size(); s += step) add_strip(strips[s], partials[s]);
  };
  std::vector<std::thread> helpers;
  const size_t step =
      std::clamp<size_t>(static_cast<size_t>(std::max(threads, 1)), 1, strips.size());
  for (size_t t = 1; t < step; ++t) helpers.emplace_back(work, t, step);
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
    noise2_ += partial.noise2;
    for (const BadElement& element : partial.worst) keep_worst(sum_.worst, element);
  }
}

int64_t Comparator::row_of(int64_t tile_row) const {
  return tile_row / tile_rows_ * view_.rows + tile_row % tile_rows_ * kTile;
}

Correctness Comparator::finish() {
  Correctness result = sum_;
  const double total = static_cast<double>(std::max<uint64_t>(result.total, 1));
  result.misround_rate /= total;
  result.matched_ratio =
      (static_cast<double>(result.verified) - static_cast<double>(result.rule_a_failures)) / total;
  result.rel_frobenius =
      result.class_mismatches > 0 ? kInfinity : std::sqrt(ratio(error2_, reference2_));
  if (noise2_ > 0)
    result.noise_ratio = result.class_mismatches > 0 ? kInfinity : std::sqrt(error2_ / noise2_);
  result.tiles = tiles_.size();
  uint64_t intolerable = 0;
  for (const Tile& tile : tiles_) intolerable += tile.intolerable;
  result.tolerated_ratio =
      (static_cast<double>(result.verified) - static_cast<double>(intolerable)) / total;
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
    double noise = 0;
    if (noise2_ > 0)
      noise = tile.class_mismatches > 0 ? kInfinity : std::sqrt(ratio(tile.error2, tile.noise2));
    result.tile_noise_ratio = std::max(result.tile_noise_ratio, noise);
    const double score =
        noise2_ > 0 ? std::min(noise, 1e300) : std::min(frobenius, 1e300) + misround * 1e-3;
    if (score > worst_score) {
      worst_score = score;
      result.tile_row = row_of(static_cast<int64_t>(t) / tile_columns_);
      result.tile_column = static_cast<int64_t>(t) % tile_columns_ * kTile;
    }
  }
  return result;
}

// Above 1: the tile breaks a bound. Infinite where NaN, infinity or poison decides.
double Comparator::severity(const Tile& tile, const Correctness& bounds) const {
  if (tile.class_mismatches > 0) return kInfinity;
  if (bounds.bound_tile_noise > 0)
    return ratio(std::sqrt(ratio(tile.error2, tile.noise2)), bounds.bound_tile_noise);
  if (bounds.bound_tolerated > 0)
    return tile.intolerable > (1 - bounds.bound_tolerated) * tile.elements ? kInfinity : 0;
  const double frobenius = std::sqrt(ratio(tile.error2, tile.reference2));
  const double misround = static_cast<double>(tile.misrounded) / (kTile * kTile);
  return std::max(ratio(frobenius, bounds.bound_tile_rel_frobenius),
                  ratio(misround, bounds.bound_tile_misround));
}

std::vector<uint64_t> Comparator::locate(Correctness& result) const {
  result.map = TileMap(view_.matrices * tile_rows_ * kTile, view_.columns);
  std::vector<uint64_t> bad;
  int64_t first_row = view_.matrices * view_.rows, last_row = -1, first_column = view_.columns,
          last_column = -1;
  for (size_t t = 0; t < tiles_.size(); ++t) {
    const double badness = severity(tiles_[t], result);
    const int64_t row = static_cast<int64_t>(t) / tile_columns_;
    const int64_t column = static_cast<int64_t>(t) % tile_columns_;
    result.map.add(row, column, badness, tiles_[t].poisoned > 0);
    if (badness <= 1) continue;
    bad.push_back(t);
    const int64_t matrix = row / tile_rows_;
    first_row = std::min(first_row, row_of(row));
    last_row = std::max(last_row, std::min((matrix + 1) * view_.rows, row_of(row) + kTile) - 1);
    first_column = std::min(first_column, column * kTile);
    last_column = std::max(last_column, std::min(view_.columns, (column + 1) * kTile) - 1);
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

namespace {

std::string why_beyond_bounds(const Correctness& c) {
  if (!(c.rel_frobenius <= c.bound_rel_frobenius))
    return fmt::format("relative Frobenius error {:.3g}, allowed {:.3g}", c.rel_frobenius,
                       c.bound_rel_frobenius);
  if (!(c.tile_rel_frobenius <= c.bound_tile_rel_frobenius))
    return fmt::format("relative Frobenius error {:.3g} in the 16x16 tile at [{}], allowed {:.3g}",
                       c.tile_rel_frobenius, index_text(c, c.tile_row, c.tile_column),
                       c.bound_tile_rel_frobenius);
  if (!(c.misround_rate <= c.bound_misround))
    return fmt::format("{:.2f} % of the elements are not correctly rounded, allowed {:.2f} %",
                       100 * c.misround_rate, 100 * c.bound_misround);
  if (!(c.tile_misround_rate <= c.bound_tile_misround))
    return fmt::format(
        "{:.1f} % of a 16x16 tile (at [{}]) are not correctly rounded, allowed {:.1f} %",
        100 * c.tile_misround_rate, index_text(c, c.tile_row, c.tile_column),
        100 * c.bound_tile_misround);
  return "";
}

std::string why_beyond_noise(const Correctness& c) {
  if (!(c.noise_ratio <= c.bound_noise))
    return fmt::format("the error of {} is {:.3g} times that of honest rounding, allowed {:.3g}",
                       c.output, c.noise_ratio, c.bound_noise);
  if (!(c.tile_noise_ratio <= c.bound_tile_noise))
    return fmt::format(
        "the error of {} is {:.3g} times that of honest rounding in the tile at [{}], allowed "
        "{:.3g}",
        c.output, c.tile_noise_ratio, index_text(c, c.tile_row, c.tile_column), c.bound_tile_noise);
  return "";
}

std::string why_beyond_tolerance(const Calibration& calibration, const Correctness& c) {
  if (c.tolerated_ratio >= c.bound_tolerated) return "";
  const auto own = calibration.tolerances.find(c.output);
  const Tolerance t = own == calibration.tolerances.end() ? Tolerance{} : own->second;
  return fmt::format(
      "{:.4g} % of the elements are off by more than {} and by more than {} of their value, "
      "allowed "
      "{:.4g} %",
      100 * (1 - c.tolerated_ratio), t.abs, t.rel, 100 * (1 - c.bound_tolerated));
}

void set_bounds(const Calibration& calibration, int64_t k, Correctness& c) {
  if (calibration.kind == "rounding-noise") {
    const auto bounds = calibration.outputs.find(c.output);
    const NoiseBounds own = bounds == calibration.outputs.end() ? NoiseBounds{} : bounds->second;
    c.bound_noise = own.ratio;
    c.bound_tile_noise = own.tile_ratio;
    return;
  }
  if (calibration.kind == "tolerance") {
    const auto own = calibration.tolerances.find(c.output);
    c.bound_tolerated =
        own == calibration.tolerances.end() ? Tolerance{}.matched_ratio : own->second.matched_ratio;
    return;
  }
  const HonestError honest = honest_error(calibration, k);
  c.bound_rel_frobenius = calibration.rel_frobenius_factor * honest.rel_frobenius;
  c.bound_tile_rel_frobenius = calibration.tile_rel_frobenius_factor * honest.rel_frobenius;
  c.bound_misround = std::max(calibration.misround, calibration.misround_factor * honest.misround);
  c.bound_tile_misround =
      std::max(calibration.tile_misround, calibration.misround_factor * honest.tile_misround);
}

}  // namespace

void decide(const Calibration& calibration, int64_t k, Correctness& c) {
  set_bounds(calibration, k, c);
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
  else if (c.bound_tolerated > 0)
    c.why = why_beyond_tolerance(calibration, c);
  else
    c.why = c.bound_noise > 0 ? why_beyond_noise(c) : why_beyond_bounds(c);
  c.passed = c.why.empty();
}

Correctness deciding_output(const std::vector<Correctness>& outputs) {
  const auto weight = [](const Correctness& c) {
    return 4 * (c.poisoned > 0) + 2 * !c.passed + !c.rule_a_passed;
  };
  const auto worst =
      std::max_element(outputs.begin(), outputs.end(),
                       [&](const auto& a, const auto& b) { return weight(a) < weight(b); });
  if (worst == outputs.end()) return {};
  Correctness result = *worst;
  for (const Correctness& c : outputs) result.rule_a_passed &= c.rule_a_passed;
  return result;
}

}  // namespace ptxbench::bench
