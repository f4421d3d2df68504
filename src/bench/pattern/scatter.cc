// Faults that differ from place to place, as a race leaves them. Two signs: every wrong element
// lacks (or has twice) some K step, but not the same one everywhere; or wrong elements stand among
// right ones in no arrangement that tiles share.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "bench/compare.h"
#include "bench/pattern/samples.h"

namespace ptxbench::bench::pattern {
namespace {

constexpr size_t kFewest = 12;

// Sums over K steps of one element.
std::vector<double> step_sums(const Samples& samples, const Sample& s, int64_t length) {
  std::vector<double> sums;
  for (int64_t at = 0; at < samples.gemm().k; at += length)
    sums.push_back(samples.dot(s.row, s.column, at, std::min(samples.gemm().k, at + length)));
  return sums;
}

// The step whose sum, left out or added again, makes `error`; -1 if none.
int step_that_explains(const std::vector<double>& sums, const Sample& s, double error) {
  const double tolerance = 0.004 * std::abs(s.right + error) + 1e-5 * s.spread;
  for (size_t i = 0; i < sums.size(); ++i)
    if (std::abs(std::abs(sums[i]) - std::abs(error)) <= tolerance) return static_cast<int>(i);
  return -1;
}

// With many steps some sum fits any error by chance; how often is measured by giving each sample
// the error of another.
Explanation explain_single_steps(const Samples& samples) {
  const auto& wrong = samples.wrong();
  for (int64_t length : {64, 32, 16, 128}) {
    size_t hits = 0, chance = 0;
    std::set<int> steps;
    for (size_t i = 0; i < wrong.size(); ++i) {
      const Sample& s = wrong[i];
      const Sample& other = wrong[(i + wrong.size() / 2) % wrong.size()];
      const std::vector<double> sums = step_sums(samples, s, length);
      const int step = step_that_explains(sums, s, s.actual - s.right);
      if (step >= 0) ++hits, steps.insert(step);
      const double scaled = (other.actual - other.right) * s.spread / other.spread;
      chance += step_that_explains(sums, s, scaled) >= 0;
    }
    const double count = static_cast<double>(wrong.size());
    const double share = static_cast<double>(hits) / count;
    if (share < 0.9 || static_cast<double>(chance) / count > 0.5 || steps.size() < 3) continue;
    return {"race",
            fmt::format("single K steps of {} missing or counted twice, other ones in other "
                        "places: as of a race between copies and arithmetic",
                        length),
            share};
  }
  return {};
}

// Wrong elements among right ones inside bad tiles, in other places from tile to tile.
Explanation explain_scattered(const Samples& samples) {
  if (!samples.from_bad_tiles()) return {};
  std::map<std::pair<int64_t, int64_t>, std::pair<size_t, size_t>> by_place;  // in tile: wrong, all
  size_t wrong = 0, all = 0;
  std::set<std::pair<int64_t, int64_t>> bad_tiles;
  for (const Sample& s : samples.all())
    if (s.wrong) bad_tiles.insert({s.row / kTile, s.column / kTile});
  for (const Sample& s : samples.all()) {
    if (bad_tiles.count({s.row / kTile, s.column / kTile}) == 0) continue;
    auto& [wrong_here, all_here] = by_place[{s.row % kTile, s.column % kTile}];
    wrong_here += s.wrong;
    ++all_here;
    wrong += s.wrong;
    ++all;
  }
  if (bad_tiles.size() < 8 || wrong < kFewest) return {};
  const double share = static_cast<double>(wrong) / static_cast<double>(all);
  if (share > 0.6) return {};
  // A fault of the layout hits the same places in every tile.
  for (const auto& [place, counts] : by_place)
    if (counts.second >= 8 && counts.first * 10 >= counts.second * 9) return {};
  return {"scattered",
          fmt::format("wrong elements here and there ({:.0f} % of those in bad tiles), in other "
                      "places from tile to tile: as of a race",
                      100 * share),
          0};
}

}  // namespace

Explanation explain_scatter(const Samples& samples) {
  if (samples.wrong().size() < kFewest) return {};
  if (Explanation found = explain_single_steps(samples); !found.kind.empty()) return found;
  return explain_scattered(samples);
}

}  // namespace ptxbench::bench::pattern
