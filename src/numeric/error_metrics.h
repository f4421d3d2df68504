#pragma once
// How far an output is from its fp64 reference: over all, and in the worst 16x16 tile, since an
// error that is large in few places vanishes in an average. Measures only; what is acceptable is
// the evaluator's business. Nothing here can be fooled by NaN: a NaN or infinity where the
// reference has none makes the norms infinite.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "numeric/dtype.h"

namespace ptxbench::numeric {

struct ErrorOptions {
  double abs_tolerance = 1e-2;  // an element breaks the rule where both are exceeded
  double rel_tolerance = 1e-2;
  double rel_epsilon = 1e-8;  // relative error is |out - ref| / (|ref| + epsilon)
};

// One tile's statistics and the place of its first element.
struct TileError {
  double value = 0;
  uint64_t row = 0, column = 0;
};

struct ErrorMetrics {
  uint64_t elements = 0;          // compared, all of them
  uint64_t class_mismatches = 0;  // NaN, +-infinity or finite against another of these
  uint64_t rule_failures = 0;     // elements beyond both tolerances, and all class mismatches
  uint64_t misrounded = 0;        // bits differ from the correctly rounded reference (-0 equals +0)
  double max_abs = 0, max_rel = 0;
  uint64_t worst_row = 0, worst_column = 0;  // where max_abs is (the first class mismatch, if any)
  double worst_output = 0, worst_reference = 0;
  double error_norm = 0, reference_norm = 0;  // Frobenius
  TileError worst_tile_frobenius;             // relative
  TileError worst_tile_misround;              // share of the tile's elements

  // error_norm / reference_norm; infinite when only the reference is zero, and when nothing was
  // compared.
  double rel_frobenius() const;
  double misround_rate() const;  // misrounded / elements; 1 when nothing was compared
  double matched_ratio() const;  // 1 - rule_failures / elements; 0 when nothing was compared
};

// Accumulates over a row-major matrix (vectors: one row; higher ranks: fold the leading
// dimensions). Bands of rows may be added in any order and from different meters (merge), as long
// as each band but the matrix's last holds a multiple of 16 rows starting at a multiple of 16.
class ErrorMeter {
 public:
  static constexpr uint64_t kTile = 16;

  ErrorMeter(DType output_type, uint64_t columns, ErrorOptions options = {});

  // `output`: rows x columns elements of the output type; `reference` as many doubles.
  void add_band(uint64_t first_row, uint64_t rows, const void* output,
                std::span<const double> reference);
  void merge(const ErrorMeter& other);
  ErrorMetrics result() const;

 private:
  struct Tile {
    double error2 = 0, reference2 = 0;
    uint32_t misrounded = 0, elements = 0;
    bool mismatch = false;
  };
  void add_row(uint64_t row, std::span<const double> output, std::span<const double> reference,
               std::vector<Tile>& tiles);
  void note_worst(double abs, uint64_t row, uint64_t column, double output, double reference);
  void close_tiles(uint64_t first_row, std::vector<Tile>& tiles);

  DType type_;
  uint64_t columns_;
  ErrorOptions options_;
  ErrorMetrics sum_;  // norms squared until result()
};

// All at once.
ErrorMetrics compare(DType output_type, const void* output, std::span<const double> reference,
                     uint64_t rows, uint64_t columns, ErrorOptions options = {});

}  // namespace ptxbench::numeric
