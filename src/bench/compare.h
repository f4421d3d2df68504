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
#include "numeric/dtype.h"

namespace ptxbench::bench {

// How an output is cut up for comparison: `matrices` of rows x columns, one after another. Rows are
// counted through all of them.
struct OutputView {
  int64_t matrices = 1, rows = 1, columns = 1;
};

struct BadElement {
  int64_t row = 0, column = 0;
  double expected = 0, actual = 0;
};

// Statistics over one output. Ratios are over all elements.
struct Correctness {
  uint64_t verified = 0, total = 0;
  uint64_t poisoned = 0;  // elements that still hold the poison pattern: never written
  uint64_t class_mismatches =
      0;  // NaN, +Inf, -Inf or finite where the fp64 result is of another class
  double max_abs = 0, max_rel = 0;        // over elements finite in both; relative to |expected|
  double rel_frobenius = 0;               // |actual - fp64| / |fp64|; infinite on a class mismatch
  double tile_rel_frobenius = 0;          // of the worst 16x16 tile
  int64_t tile_row = 0, tile_column = 0;  // first element of that tile
  // Root of (squared errors / the noise that honest rounding is expected to give), over all
  // elements and in the worst tile; 0 where the operation states no noise.
  double noise_ratio = 0, tile_noise_ratio = 0;
  double misround_rate = 0;       // share that differs from the correctly rounded fp64 result
  double tile_misround_rate = 0;  // of the worst 16x16 tile
  double matched_ratio = 0;       // share that meets the published rule (a)
  uint64_t rule_a_failures = 0;
  double tolerated_ratio = 1;  // share that meets the task's own tolerance, where it has one
  // What was allowed.
  double bound_rel_frobenius = 0, bound_tile_rel_frobenius = 0;
  double bound_misround = 0, bound_tile_misround = 0;
  double bound_noise = 0,
         bound_tile_noise = 0;  // 0: does not count, the others do not where it does
  double bound_tolerated =
      0;  // least tolerated_ratio; 0: does not count, only it does where it does
  bool passed = false;
  bool rule_a_passed = false;
  std::string why;                // !passed: the first bound that failed, in words
  std::string output;             // name of the tensor
  std::vector<int64_t> shape;     // of the tensor; empty: rows and columns
  int64_t columns = 0;            // of the view
  std::vector<BadElement> worst;  // up to 8, the largest errors first
  // Where the bad tiles lie: rows and columns of tiles with an error above the bound.
  uint64_t bad_tiles = 0, tiles = 0;
  int64_t first_bad_row = -1, last_bad_row = -1, first_bad_column = -1, last_bad_column = -1;
  Explanation explanation;  // !passed: the cause, where one was found
  TileMap map;
};

// "2,17,5": the element's index in the tensor.
std::string index_text(const Correctness& correctness, int64_t row, int64_t column);
std::vector<int64_t> element_index(const Correctness& correctness, int64_t row, int64_t column);

// Accumulates statistics. Blocks arrive in row order and begin at multiples of 16 rows of a matrix.
class Comparator {
 public:
  // `actual`: bf16 bits, row-major rows x columns. `poison`: the bit pattern put there beforehand.
  Comparator(std::span<const uint16_t> actual, int64_t rows, int64_t columns, uint16_t poison);
  // Elements of any type that make_outputs knows; `poison`: as of poison_bits.
  Comparator(numeric::DType type, std::span<const uint8_t> actual, const OutputView& view,
             uint64_t poison, const Tolerance& tolerance = {});
  // `expected`: count x columns fp64 values of rows first_row...; `noise`: as many variances of the
  // error of honest rounding, or empty.
  void add_block(int64_t first_row, int64_t count, std::span<const double> expected, int threads,
                 std::span<const double> noise = {});
  // Statistics without the policy's decision.
  Correctness finish();
  // After decide(): which tiles break the bounds, and the picture of them. Returns their linear
  // indices, row by row.
  std::vector<uint64_t> locate(Correctness& result) const;

 private:
  struct Tile {
    double error2 = 0, reference2 = 0, noise2 = 0;
    uint32_t misrounded = 0, elements = 0, poisoned = 0, class_mismatches = 0, intolerable = 0;
  };
  struct Partial;
  struct Strip {
    int64_t row = 0, count = 0;  // at most 16 rows of one matrix
    const double* expected = nullptr;
    const double* noise = nullptr;
  };
  double severity(const Tile& tile, const Correctness& bounds) const;
  int64_t tile_of(int64_t row) const;      // index of the first tile of the row's strip
  int64_t row_of(int64_t tile_row) const;  // first row of a row of tiles
  template <class Format>
  void add_strip(const Strip& strip, Partial& partial);
  void add_strip(const Strip& strip, Partial& partial);

  numeric::DType type_;
  std::span<const uint8_t> actual_;
  OutputView view_;
  int64_t tile_rows_, tile_columns_;  // of one matrix
  uint64_t poison_;
  Tolerance tolerance_;
  std::vector<Tile> tiles_;
  Correctness sum_;
  double error2_ = 0, reference2_ = 0, noise2_ = 0;
};

// The output that decides about all of them: one with unwritten elements, else one that did not
// pass, else one that the published rule rejects, else the first. Its rule_a_passed speaks for all.
Correctness deciding_output(const std::vector<Correctness>& outputs);

// Fills bounds, passed, rule_a_passed and why. `k`: the reduction's length.
void decide(const Calibration& calibration, int64_t k, Correctness& correctness);

// The honest errors at length k: interpolated between the measured lengths, the nearest one's
// outside them.
HonestError honest_error(const Calibration& calibration, int64_t k);

}  // namespace ptxbench::bench
