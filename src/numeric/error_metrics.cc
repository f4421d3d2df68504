#include "numeric/error_metrics.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace ptxbench::numeric {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Class : uint8_t { finite, nan, positive_infinity, negative_infinity };

Class classify(double v) {
  if (std::isfinite(v)) return Class::finite;
  if (std::isnan(v)) return Class::nan;
  return v > 0 ? Class::positive_infinity : Class::negative_infinity;
}

double ratio(double error2, double reference2) {
  if (error2 == 0) return 0;
  return reference2 == 0 ? kInfinity : std::sqrt(error2 / reference2);
}

// Earlier places win ties, so that the result does not depend on the order of bands.
bool before(uint64_t row_a, uint64_t column_a, uint64_t row_b, uint64_t column_b) {
  return row_a != row_b ? row_a < row_b : column_a < column_b;
}

void take_worse(TileError& worst, const TileError& candidate) {
  bool tie = candidate.value == worst.value && candidate.value > 0 &&
             before(candidate.row, candidate.column, worst.row, worst.column);
  if (candidate.value > worst.value || tie) worst = candidate;
}

}  // namespace

double ErrorMetrics::rel_frobenius() const {
  if (elements == 0) return kInfinity;
  if (error_norm == 0) return 0;
  return reference_norm == 0 ? kInfinity : error_norm / reference_norm;
}

double ErrorMetrics::misround_rate() const {
  return elements == 0 ? 1 : static_cast<double>(misrounded) / static_cast<double>(elements);
}

double ErrorMetrics::matched_ratio() const {
  return elements == 0 ? 0 : 1 - static_cast<double>(rule_failures) / static_cast<double>(elements);
}

ErrorMeter::ErrorMeter(DType output_type, uint64_t columns, ErrorOptions options)
    : type_(output_type), columns_(columns), options_(options) {}

void ErrorMeter::note_worst(double abs, uint64_t row, uint64_t column, double output,
                            double reference) {
  bool tie =
      abs == sum_.max_abs && abs > 0 && before(row, column, sum_.worst_row, sum_.worst_column);
  if (!(abs > sum_.max_abs) && !tie) return;
  sum_.max_abs = abs;
  sum_.worst_row = row;
  sum_.worst_column = column;
  sum_.worst_output = output;
  sum_.worst_reference = reference;
}

void ErrorMeter::add_row(uint64_t row, std::span<const double> output,
                         std::span<const double> reference, std::vector<Tile>& tiles) {
  for (uint64_t column = 0; column < columns_; ++column) {
    Tile& tile = tiles[column / kTile];
    double out = output[column], ref = reference[column];
    double rounded = round_to(type_, ref);
    ++tile.elements;
    // A finite reference beyond the type's range rounds to infinity; the output may do so too.
    Class expected = classify(rounded);
    if (classify(out) != expected) {
      ++sum_.class_mismatches;
      ++sum_.rule_failures;
      ++tile.misrounded;
      tile.mismatch = true;
      sum_.max_rel = kInfinity;
      note_worst(kInfinity, row, column, out, ref);
      continue;
    }
    if (expected != Class::finite) continue;
    if (out != rounded) ++tile.misrounded;
    double abs = std::fabs(out - ref);
    double rel = abs / (std::fabs(ref) + options_.rel_epsilon);
    if (abs > options_.abs_tolerance && rel > options_.rel_tolerance) ++sum_.rule_failures;
    sum_.max_rel = std::max(sum_.max_rel, rel);
    if (abs >= sum_.max_abs) note_worst(abs, row, column, out, ref);
    tile.error2 += abs * abs;
    tile.reference2 += ref * ref;
  }
}

void ErrorMeter::close_tiles(uint64_t first_row, std::vector<Tile>& tiles) {
  for (size_t i = 0; i < tiles.size(); ++i) {
    Tile& tile = tiles[i];
    double error2 = tile.mismatch ? kInfinity : tile.error2;
    uint64_t column = i * kTile;
    sum_.elements += tile.elements;
    sum_.misrounded += tile.misrounded;
    sum_.error_norm += error2;
    sum_.reference_norm += tile.reference2;
    take_worse(sum_.worst_tile_frobenius, {ratio(error2, tile.reference2), first_row, column});
    double share = tile.elements ? static_cast<double>(tile.misrounded) / tile.elements : 0;
    take_worse(sum_.worst_tile_misround, {share, first_row, column});
    tile = Tile{};
  }
}

void ErrorMeter::add_band(uint64_t first_row, uint64_t rows, const void* output,
                          std::span<const double> reference) {
  assert(first_row % kTile == 0);
  assert(reference.size() == rows * columns_);
  const uint8_t* bytes = static_cast<const uint8_t*>(output);
  std::vector<Tile> tiles((columns_ + kTile - 1) / kTile);
  std::vector<double> values(columns_);
  for (uint64_t row = 0; row < rows; ++row) {
    load_elements(type_, bytes + row * columns_ * dtype_size(type_), std::span<double>(values));
    add_row(first_row + row, values, reference.subspan(row * columns_, columns_), tiles);
    if ((row + 1) % kTile == 0 || row + 1 == rows)
      close_tiles(first_row + row / kTile * kTile, tiles);
  }
}

void ErrorMeter::merge(const ErrorMeter& other) {
  const ErrorMetrics& o = other.sum_;
  sum_.elements += o.elements;
  sum_.class_mismatches += o.class_mismatches;
  sum_.rule_failures += o.rule_failures;
  sum_.misrounded += o.misrounded;
  sum_.max_rel = std::max(sum_.max_rel, o.max_rel);
  note_worst(o.max_abs, o.worst_row, o.worst_column, o.worst_output, o.worst_reference);
  sum_.error_norm += o.error_norm;
  sum_.reference_norm += o.reference_norm;
  take_worse(sum_.worst_tile_frobenius, o.worst_tile_frobenius);
  take_worse(sum_.worst_tile_misround, o.worst_tile_misround);
}

ErrorMetrics ErrorMeter::result() const {
  ErrorMetrics result = sum_;
  result.error_norm = std::sqrt(sum_.error_norm);
  result.reference_norm = std::sqrt(sum_.reference_norm);
  return result;
}

ErrorMetrics compare(DType output_type, const void* output, std::span<const double> reference,
                     uint64_t rows, uint64_t columns, ErrorOptions options) {
  ErrorMeter meter(output_type, columns, options);
  meter.add_band(0, rows, output, reference);
  return meter.result();
}

}  // namespace ptxbench::numeric
