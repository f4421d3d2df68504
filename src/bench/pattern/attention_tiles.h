#pragma once
// What goes wrong between the tiles of a running softmax. A row's sums over each tile are computed
// once; every fault is a choice of factors for them.

#include <optional>

#include "bench/pattern/attention_line.h"

namespace ptxbench::bench::pattern {

// Keys in tiles of `keys`, walked from the first or from the last on. Maxima may grow by `slack`
// (natural logarithm) before earlier sums are brought to a new one, then all `group` rows together.
struct Walk {
  int64_t keys = 64;
  bool last_first = false;
  double slack = 0;
  int64_t group = 1;
};

enum class TileFault {
  output_not_rescaled,
  sum_not_rescaled,
  nothing_rescaled,
  tile_maximum,  // each tile has its own maximum, and nothing is rescaled
  tile_softmax,  // each tile is divided by its own sum
  last_tile,     // O or the sums begin anew at every tile
};

// Sums of a row's tiles, in the order of the walk. For rows of O and LSE.
class TileSums {
 public:
  TileSums(const Lines& lines, const Line& line, const Walk& walk);
  Prediction predict(TileFault fault) const;

 private:
  struct Tile {
    double top = 0;          // the tile's largest score
    double group_top = 0;    // by how much any row of the group exceeds its shift decides
    double sum = 0;          // of exp(score - top)
    Values values, squares;  // of these weights times V; of their squares times V squared
  };
  std::vector<double> shifts() const;

  const AttentionView& view_;
  const Walk walk_;
  std::vector<Tile> tiles_;
  std::vector<std::vector<double>> group_tops_;  // by tile, by row of the group
};

}  // namespace ptxbench::bench::pattern
