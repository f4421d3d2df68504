// Right values in wrong places, and operands read in the wrong order.
#include <fmt/format.h>

#include <algorithm>

#include "bench/pattern/samples.h"

namespace ptxbench::bench::pattern {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kFewest = 8;

// A formula of known name.
struct Hypothesis {
  const char* kind;
  std::string text;
  Samples::Formula formula;
};

Explanation first_that_fits(const Samples& samples, const std::vector<Hypothesis>& hypotheses) {
  for (const Hypothesis& h : hypotheses)
    if (auto fit = samples.fits(h.formula)) return {h.kind, h.text, *fit};
  return {};
}

double right_at(const Samples& samples, int64_t row, int64_t column) {
  return samples.inside(row, column) ? samples.right(row, column) : kNan;
}

Explanation explain_transposed_output(const Samples& samples) {
  const int64_t m = samples.gemm().m, n = samples.gemm().n;
  return first_that_fits(
      samples, {{"transposed-output", "the transposed result",
                 [&](const Sample& s) { return right_at(samples, s.column, s.row); }},
                {"transposed-output", "the result stored column by column", [&](const Sample& s) {
                   const int64_t linear = s.row * n + s.column;
                   return right_at(samples, linear % m, linear / m);
                 }}});
}

// Operand X[rows, k] with element (row, i) taken from (row', i').
using Place = std::function<std::pair<int64_t, int64_t>(int64_t row, int64_t i)>;

double dot_through(const Samples& samples, const Sample& s, const Place* a, const Place* b) {
  const GemmView& g = samples.gemm();
  double sum = 0;
  for (int64_t i = 0; i < g.k; ++i) {
    const auto [row, at_a] = a ? (*a)(s.row, i) : std::pair(s.row, i);
    const auto [column, at_b] = b ? (*b)(s.column, i) : std::pair(s.column, i);
    if (row >= g.m || column >= g.n || at_a >= g.k || at_b >= g.k) return kNan;
    sum += samples.a(row, at_a) * samples.b(column, at_b);
  }
  return sum;
}

// The whole matrix read as if stored the other way round: element (row, i) at i * rows + row.
Place column_major(int64_t rows, int64_t k) {
  return [rows, k](int64_t row, int64_t i) {
    const int64_t linear = i * rows + row;
    return std::pair(linear / k, linear % k);
  };
}

// Transposed inside blocks, as where a tile in shared memory is taken for the other major order.
Place block_transposed(int64_t side) {
  return [side](int64_t row, int64_t i) {
    return std::pair(row / side * side + i % side, i / side * side + row % side);
  };
}

Explanation explain_transposed_operand(const Samples& samples) {
  const GemmView& g = samples.gemm();
  std::vector<std::tuple<std::string, Place, Place>> places = {
      {"the other way round", column_major(g.m, g.k), column_major(g.n, g.k)}};
  for (int64_t side : {64, 32, 16, 8})
    places.emplace_back(fmt::format("transposed in blocks of {0}x{0}", side),
                        block_transposed(side), block_transposed(side));
  std::vector<Hypothesis> hypotheses;
  for (const auto& [how, a, b] : places)
    for (int which : {1, 2, 3}) {
      const char* operand = which == 1 ? "A" : which == 2 ? "B" : "A and B";
      hypotheses.push_back({"transposed-operand", fmt::format("{} read {}", operand, how),
                            [&samples, which, pa = &a, pb = &b](const Sample& s) {
                              return dot_through(samples, s, which & 1 ? pa : nullptr,
                                                 which & 2 ? pb : nullptr);
                            }});
    }
  return first_that_fits(samples, hypotheses);
}

std::string shift_text(int64_t rows, int64_t columns) {
  std::string text = rows != 0 ? fmt::format("{:+} rows", rows) : "";
  if (columns != 0) text += fmt::format("{}{:+} columns", text.empty() ? "" : " and ", columns);
  return text;
}

// The right result of another place, at a fixed distance.
Explanation explain_shift(const Samples& samples) {
  constexpr int64_t kDistances[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256};
  for (int64_t rows : kDistances)
    for (int64_t columns : kDistances)
      for (int signs = 0; signs < 4; ++signs) {
        const int64_t r = signs & 1 ? -rows : rows, c = signs & 2 ? -columns : columns;
        if ((r == 0 && c == 0) || (rows == 0 && signs & 1) || (columns == 0 && signs & 2)) continue;
        size_t seen = 0, hits = 0;
        for (const Sample& s : samples.wrong()) {
          if (!samples.inside(s.row + r, s.column + c)) continue;
          hits += Samples::near(s, samples.right(s.row + r, s.column + c));
          if (++seen >= 2 && hits == 0) break;
        }
        // Most must have a counterpart inside the matrix.
        if (hits < kFewest || hits * 20 < seen * 19 || seen * 2 < samples.wrong().size()) continue;
        return {"shifted", fmt::format("the right result of another place ({})", shift_text(r, c)),
                static_cast<double>(hits) / static_cast<double>(seen)};
      }
  return {};
}

// Rows and columns exchanged by a bit: fragments of mma stored in the wrong order.
Explanation explain_exchange(const Samples& samples) {
  for (int64_t row_bit : {0, 1, 2, 4, 8, 16, 32, 64})
    for (int64_t column_bit : {0, 1, 2, 4, 8, 16, 32, 64}) {
      if (row_bit == 0 && column_bit == 0) continue;
      const auto fit = samples.fits([&](const Sample& s) {
        return right_at(samples, s.row ^ row_bit, s.column ^ column_bit);
      });
      if (!fit) continue;
      std::string text;
      if (row_bit) text = fmt::format("rows r and r^{}", row_bit);
      if (column_bit)
        text += fmt::format("{}columns c and c^{}", row_bit ? " and " : "", column_bit);
      return {"exchanged", text + " exchanged", *fit};
    }
  return {};
}

// The epilogue's buffer written with one swizzle and read with another: 16-byte chunks of a row
// permuted by bits of the row number.
Explanation explain_output_swizzle(const Samples& samples) {
  for (auto [mode, mask, shift] : {std::tuple{128, 7, 0}, {64, 3, 1}, {32, 1, 2}}) {
    const auto fit = samples.fits([&](const Sample& s) {
      return right_at(samples, s.row, s.column ^ ((s.row >> shift & mask) * 8));
    });
    if (fit)
      return {"swizzle-output",
              fmt::format("the output's 16-byte chunks permuted as by a {}-byte swizzle that only "
                          "one side of the store knows",
                          mode),
              *fit};
  }
  return {};
}

// Tiles at a distance: the result of another tile, alone (stale) or added (not cleared). Different
// CTAs may be at different distances, so a few of them together must explain the samples.
class OtherTiles {
 public:
  explicit OtherTiles(const Samples& samples) : samples_(samples) {
    const GemmView& g = samples.gemm();
    const double budget = 3e8 / static_cast<double>(g.k * static_cast<int64_t>(kTried));
    for (int64_t step : {64, 128, 256})
      for (int64_t r = -(g.m / step) * step; r < g.m; r += step)
        for (int64_t c = -(g.n / step) * step; c < g.n; c += step)
          if ((r != 0 || c != 0) && static_cast<double>(distances_.size()) < budget)
            distances_.emplace_back(r, c);
    auto key = [](const Distance& d) {
      return std::tuple(std::abs(d.first) + std::abs(d.second), d.first, d.second);
    };
    std::sort(distances_.begin(), distances_.end(),
              [&](const Distance& x, const Distance& y) { return key(x) < key(y); });
    distances_.erase(std::unique(distances_.begin(), distances_.end()), distances_.end());
  }

  Explanation explain(bool added) const {
    std::vector<const Sample*> left;
    const auto& wrong = samples_.wrong();
    const size_t count = std::min(wrong.size(), kTried);
    for (size_t i = 0; i < count; ++i) left.push_back(&wrong[i * wrong.size() / count]);
    std::string text;
    for (int member = 0; member < 4 && left.size() * 20 > count; ++member) {
      // The first must explain much by itself; with it, a pair of the rest is no chance.
      const size_t enough = member == 0 ? std::max<size_t>(6, count / 4) : 2;
      const auto best = best_distance(left, added, enough);
      if (!best) return {};
      text += (text.empty() ? "" : "; ") + shift_text(best->first, best->second);
      std::erase_if(left, [&](const Sample* s) { return hit(*s, *best, added); });
    }
    if (left.size() * 20 > count) return {};
    const double fit = 1 - static_cast<double>(left.size()) / static_cast<double>(count);
    if (added)
      return {"not-cleared",
              "the result of another tile added (" + text + "): accumulators that were not cleared",
              fit};
    return {"stale-tile", "the result of another tile (" + text + ")", fit};
  }

 private:
  static constexpr size_t kTried = 32;
  using Distance = std::pair<int64_t, int64_t>;

  bool hit(const Sample& s, const Distance& d, bool added) const {
    const int64_t row = s.row + d.first, column = s.column + d.second;
    return samples_.inside(row, column) &&
           Samples::near(s, samples_.right(row, column) + (added ? s.right : 0));
  }
  // The distance that explains most of what is left, `enough` of them at least.
  std::optional<Distance> best_distance(const std::vector<const Sample*>& left, bool added,
                                        size_t enough) const {
    std::optional<Distance> best;
    size_t most = enough - 1;
    for (const Distance& d : distances_) {
      size_t hits = 0;
      for (size_t i = 0; i < left.size() && hits + left.size() - i > most; ++i)
        hits += hit(*left[i], d, added);
      if (hits > most) most = hits, best = d;
    }
    return best;
  }

  const Samples& samples_;
  std::vector<Distance> distances_;
};

}  // namespace

Explanation explain_layout(const Samples& samples) {
  if (samples.wrong().size() < kFewest) return {};
  for (auto* group : {explain_transposed_output, explain_exchange, explain_output_swizzle,
                      explain_shift, explain_transposed_operand})
    if (Explanation found = group(samples); !found.kind.empty()) return found;
  const OtherTiles tiles(samples);
  if (Explanation found = tiles.explain(false); !found.kind.empty()) return found;
  return tiles.explain(true);
}

}  // namespace ptxbench::bench::pattern
