#pragma once
// Comparison of a candidate's output with the fp64 result, block of rows by block of rows, and the
// policy that turns the statistics into "right" or "wrong". Nothing passes without positive
// evidence: every element is compared, and NaN or poison never counts as near.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/pattern/explain.h"
#include "bench/task.h"
#include "bench/tile_map.h"

namespace ptxbench::bench {

struct BadElement {
  int64_t row = 0, column = 0;
  double expected = 0, actual = 0;
};

// Statistics over one bf16 matrix output. Ratios are over all elements.
struct Correctness {
  uint64_t verified = 0, total = 0;
  uint64_t poisoned = 0;  // elements that still hold the poison pattern: never written
  uint64_t class_mismatches =
      0;  // NaN, +Inf, -Inf or finite where the fp64 result is of another class
  double max_abs = 0, max_rel = 0;        // over elements finite in both; relative to |expected|
  double rel_frobenius = 0;               // |actual - fp64| / |fp64|; infinite on a class mismatch
  double tile_rel_frobenius = 0;          // of the worst 16x16 tile
  int64_t tile_row = 0, tile_column = 0;  // first element of that tile
  double misround_rate = 0;       // share that differs from the correctly rounded fp64 result
  double tile_misround_rate = 0;  // of the worst 16x16 tile
  double matched_ratio = 0;       // share that meets the published rule (a)
  uint64_t rule_a_failures = 0;
  // What was allowed.
  double bound_rel_frobenius = 0, bound_tile_rel_frobenius = 0;
  double bound_misround = 0, bound_tile_misround = 0;
  bool passed = false;
  bool rule_a_passed = false;
  std::string why;                // !passed: the first bound that failed, in words
  std::string output;             // name of the tensor
  std::vector<BadElement> worst;  // up to 8, the largest errors first
  // Where the bad tiles lie: rows and columns of tiles with an error above the bound.
  uint64_t bad_tiles = 0, tiles = 0;
  int64_t first_bad_row = -1, last_bad_row = -1, first_bad_column = -1, last_bad_column = -1;
  Explanation explanation;  // !passed: the cause, where one was found
  TileMap map;
};

// Accumulates statistics. Blocks arrive in row order and begin at multiples of 16 rows.
class Comparator {
 public:
  // `actual`: bf16 bits, row-major rows x columns. `poison`: the bit pattern put there beforehand.
  Comparator(std::span<const uint16_t> actual, int64_t rows, int64_t columns, uint16_t poison);
  // `expected`: count x columns fp64 values of rows first_row...
  void add_block(int64_t first_row, int64_t count, std::span<const double> expected, int threads);
  // Statistics without the policy's decision.
  Correctness finish();
  // After decide(): which tiles break the bounds, and the picture of them. Returns their linear
  // indices, row by row.
  std::vector<uint64_t> locate(Correctness& result) const;

 private:
  struct Tile {
    double error2 = 0, reference2 = 0;
    uint32_t misrounded = 0, elements = 0, poisoned = 0, class_mismatches = 0;
  };
  struct Partial;
  double severity(const Tile& tile, const Correctness& bounds) const;
  void add_tile_row(int64_t first_row, int64_t count, const double* expected, Partial& partial);

  std::span<const uint16_t> actual_;
  int64_t rows_, columns_, tile_columns_;
  uint16_t poison_;
  std::vector<Tile> tiles_;
  Correctness sum_;
  double error2_ = 0, reference2_ = 0;
};

// Fills bounds, passed, rule_a_passed and why. `k`: the reduction's length.
void decide(const Calibration& calibration, int64_t k, Correctness& correctness);

// The honest errors at length k: interpolated between the measured lengths, the nearest one's
// outside them.
HonestError honest_error(const Calibration& calibration, int64_t k);

}  // namespace ptxbench::bench
