// A grid over the whole output finds what is wrong everywhere; a 4x4 grid inside known bad tiles
// finds what is wrong in few places, with rows and columns in common.
#include "bench/pattern/samples.h"

#include <algorithm>

#include "bench/compare.h"
#include "numeric/float_formats.h"
#include "numeric/random.h"

namespace ptxbench::bench::pattern {
namespace {

constexpr size_t kMaxWrong = 96, kMaxMisrounded = 48, kMaxBadTiles = 24;
constexpr int64_t kGridSide = 20;
constexpr uint64_t kMoreForRounding = 3000;
constexpr int64_t kInTileRows[] = {1, 6, 8, 15}, kInTileColumns[] = {2, 5, 8, 15};

double value(std::span<const uint16_t> matrix, int64_t index) {
  return static_cast<double>(numeric::bf16_to_float(matrix[static_cast<size_t>(index)]));
}

// Every other one of more than `limit`, evenly.
std::vector<Sample> thin(const std::vector<Sample>& samples, size_t limit) {
  if (samples.size() <= limit) return samples;
  std::vector<Sample> result;
  for (size_t i = 0; i < limit; ++i) result.push_back(samples[i * samples.size() / limit]);
  return result;
}

}  // namespace

double Samples::a(int64_t row, int64_t k) const { return value(gemm_.a, row * gemm_.k + k); }
double Samples::b(int64_t column, int64_t k) const { return value(gemm_.b, column * gemm_.k + k); }

double Samples::dot(int64_t row, int64_t column, int64_t begin, int64_t end) const {
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += a(row, i) * b(column, i);
  return sum;
}

Samples::Samples(const GemmView& gemm, std::span<const uint64_t> bad_tiles) : gemm_(gemm) {
  from_bad_tiles_ = !bad_tiles.empty();
  add_grid();
  const size_t tiles = std::min(bad_tiles.size(), kMaxBadTiles);
  for (size_t i = 0; i < tiles; ++i) add_tile(bad_tiles[i * bad_tiles.size() / tiles]);
  split();
  if (misrounded_.size() < kMaxMisrounded && wrong_.size() < 8) add_more_for_rounding();
}

void Samples::add(int64_t row, int64_t column) {
  Sample sample;
  sample.row = row;
  sample.column = column;
  sample.bits = gemm_.c[static_cast<size_t>(row * gemm_.n + column)];
  sample.actual = static_cast<double>(numeric::bf16_to_float(sample.bits));
  double squares = 0;
  for (int64_t i = 0; i < gemm_.k; ++i) {
    const double product = a(row, i) * b(column, i);
    sample.right += product;
    squares += product * product;
  }
  sample.spread = std::sqrt(squares);
  sample.wrong = !near(sample, sample.right);
  all_.push_back(sample);
}

void Samples::add_grid() {
  const int64_t rows = std::min(kGridSide, gemm_.m), columns = std::min(kGridSide, gemm_.n);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      add((2 * i + 1) * gemm_.m / (2 * rows), (2 * j + 1) * gemm_.n / (2 * columns));
}

void Samples::add_tile(uint64_t tile) {
  const int64_t tile_columns = (gemm_.n + kTile - 1) / kTile;
  const int64_t row = static_cast<int64_t>(tile) / tile_columns * kTile;
  const int64_t column = static_cast<int64_t>(tile) % tile_columns * kTile;
  for (int64_t i : kInTileRows)
    for (int64_t j : kInTileColumns)
      if (inside(row + i, column + j)) add(row + i, column + j);
}

// Where only roundings differ, few elements show it.
void Samples::add_more_for_rounding() {
  const numeric::Random random({0, 0}, 3);
  const uint64_t rows = static_cast<uint64_t>(gemm_.m), columns = static_cast<uint64_t>(gemm_.n);
  for (uint64_t i = 0; i < kMoreForRounding; ++i)
    add(static_cast<int64_t>(random.below(2 * i, rows)),
        static_cast<int64_t>(random.below(2 * i + 1, columns)));
  split();
}

void Samples::split() {
  std::vector<Sample> wrong, misrounded;
  for (const Sample& sample : all_) {
    if (sample.wrong) wrong.push_back(sample);
    const uint16_t rounded = numeric::bf16_from_double(sample.right);
    if (sample.bits != rounded && ((sample.bits | rounded) & 0x7fff) != 0)
      misrounded.push_back(sample);
  }
  wrong_ = thin(wrong, kMaxWrong);
  misrounded_ = thin(misrounded, kMaxMisrounded);
}

std::optional<double> Samples::fits(const Formula& predict) const {
  size_t misses = 0, silent = 0;
  for (const Sample& sample : wrong_) {
    const double predicted = predict(sample);
    if (std::isnan(predicted)) {
      if (++silent * 2 > wrong_.size()) return std::nullopt;
    } else if (!near(sample, predicted)) {
      if (++misses * 20 > wrong_.size()) return std::nullopt;
    }
  }
  if (wrong_.empty()) return std::nullopt;
  return 1 - static_cast<double>(misses) / static_cast<double>(wrong_.size() - silent);
}

}  // namespace ptxbench::bench::pattern
