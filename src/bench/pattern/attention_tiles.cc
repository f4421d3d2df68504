#include "bench/pattern/attention_tiles.h"

#include <algorithm>
#include <cmath>

#include "bench/op/operation.h"

namespace ptxbench::bench::pattern {
namespace {

constexpr int kOperandBits = 8;

double largest(const AttentionView& view, const Values& dots, int64_t first, int64_t last) {
  double top = -INFINITY;
  for (int64_t t = first; t < last; ++t)
    top = std::max(top, view.scale * dots[static_cast<size_t>(t)]);
  return top;
}

}  // namespace

TileSums::TileSums(const Lines& lines, const Line& line, const Walk& walk)
    : view_(lines.view()), walk_(walk) {
  const auto [begin, end] = others_of(view_, line, {});
  // A group's rows walk to where the last of them ends.
  const int64_t group = line.row / walk.group * walk.group;
  const int64_t group_end =
      view_.causal ? std::min(view_.s, std::max(end, group + walk.group)) : end;
  const int64_t count = (group_end + walk.keys - 1) / walk.keys;
  std::vector<Values> dots;
  for (int64_t r = group; walk.group > 1 && r < std::min(group + walk.group, view_.s); ++r)
    dots.push_back(lines.dots_of_query(line.head, r));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = (walk.last_first ? count - 1 - i : i) * walk.keys;
    const int64_t last = std::min(first + walk.keys, end);
    Tile tile;
    tile.top = largest(view_, line.dots, first, last);
    std::vector<double> tops;
    for (size_t r = 0; r < dots.size(); ++r) {
      const int64_t seen = view_.causal ? group + static_cast<int64_t>(r) + 1 : view_.s;
      tops.push_back(largest(view_, dots[r], first, std::min(first + walk.keys, seen)));
    }
    if (dots.empty()) tops.push_back(tile.top);
    group_tops_.push_back(std::move(tops));
    tile.values.assign(static_cast<size_t>(view_.d), 0.0);
    tile.squares = tile.values;
    for (int64_t t = first; t < last; ++t) {
      const double w = std::exp(view_.scale * line.dots[static_cast<size_t>(t)] - tile.top);
      tile.sum += w;
      const double* v = line.summed->data() + t * view_.d;
      for (size_t c = 0; c < tile.values.size(); ++c) {
        tile.values[c] += w * v[c];
        tile.squares[c] += w * w * v[c] * v[c];
      }
    }
    tiles_.push_back(std::move(tile));
  }
}

// The shift that a tile's weights refer to, tile by tile.
std::vector<double> TileSums::shifts() const {
  std::vector<double> result;
  std::vector<double> group(group_tops_.empty() ? 0 : group_tops_[0].size(), -INFINITY);
  double own = -INFINITY;
  for (size_t i = 0; i < tiles_.size(); ++i) {
    bool moves = false;
    for (size_t r = 0; r < group.size(); ++r) moves |= group_tops_[i][r] > group[r] + walk_.slack;
    if (moves) {
      own = std::max(own, tiles_[i].top);
      for (size_t r = 0; r < group.size(); ++r) group[r] = std::max(group[r], group_tops_[i][r]);
    }
    result.push_back(own);
  }
  return result;
}

Prediction TileSums::predict(TileFault fault) const {
  const std::vector<double> shift = shifts();
  const double end = shift.empty() ? 0 : shift.back();
  // Factors of each tile's weights in O and in the sum.
  Values of_output, of_sum;
  for (size_t i = 0; i < tiles_.size(); ++i) {
    const Tile& tile = tiles_[i];
    const bool empty = tile.sum == 0;
    const double right = empty ? 0 : std::exp(tile.top - end);
    const double kept = empty ? 0 : std::exp(tile.top - shift[i]);
    const double own = empty ? 0 : 1;
    const bool last = i + 1 == tiles_.size();
    switch (fault) {
      case TileFault::output_not_rescaled:
        of_output.push_back(kept), of_sum.push_back(right);
        break;
      case TileFault::sum_not_rescaled:
        of_output.push_back(right), of_sum.push_back(kept);
        break;
      case TileFault::nothing_rescaled:
        of_output.push_back(kept), of_sum.push_back(kept);
        break;
      case TileFault::tile_maximum:
        of_output.push_back(own), of_sum.push_back(own);
        break;
      case TileFault::tile_softmax:
        of_output.push_back(empty ? 0 : 1 / tile.sum), of_sum.push_back(last ? own : 0);
        break;
      case TileFault::last_tile:
        of_output.push_back(last ? own : 0), of_sum.push_back(last ? own : 0);
        break;
    }
  }
  const bool by_tile = fault == TileFault::tile_maximum || fault == TileFault::tile_softmax ||
                       fault == TileFault::last_tile;
  double sum = 0;
  for (size_t i = 0; i < tiles_.size(); ++i) sum += of_sum[i] * tiles_[i].sum;
  Prediction p;
  p.lse = (by_tile && !tiles_.empty() ? tiles_.back().top : end) + std::log(sum);
  const double divisor = fault == TileFault::tile_softmax ? 1 : sum;
  p.values.assign(static_cast<size_t>(view_.d), 0.0);
  p.noise.assign(p.values.size(), 0.0);
  const double variance = rounding_variance(kOperandBits);
  for (size_t c = 0; c < p.values.size(); ++c) {
    for (size_t i = 0; i < tiles_.size(); ++i) {
      const double factor = of_output[i] / divisor;
      p.values[c] += factor * tiles_[i].values[c];
      p.noise[c] += variance * factor * factor * tiles_[i].squares[c];
    }
    p.noise[c] += variance * p.values[c] * p.values[c];
  }
  return p;
}

}  // namespace ptxbench::bench::pattern
