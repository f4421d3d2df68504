// From formulas without freedom to searches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "bench/pattern/attention_tiles.h"

namespace ptxbench::bench {
namespace {

using namespace pattern;

constexpr double kLn2 = 0.69314718055994530942;
constexpr size_t kTiles = 24, kMostRows = 32;
constexpr int64_t kTileRows = 16, kRowStep = 5;
constexpr double kRequired = 0.95;
constexpr int64_t kTileSizes[] = {16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256};

using Formula = std::function<Prediction(const Line&)>;

class Explaining {
 public:
  Explaining(const AttentionView& view, std::span<const uint64_t> bad_tiles)
      : view_(view), lines_(view) {
    pick(bad_tiles);
  }

  Explanation run() {
    if (wrong_.empty()) return {};
    for (auto group : {&Explaining::constants, &Explaining::factors, &Explaining::masks,
                       &Explaining::forward_only, &Explaining::backward_only, &Explaining::parts,
                       &Explaining::tiles, &Explaining::heads})
      if (Explanation e = (this->*group)(); !e.kind.empty()) return e;
    return {};
  }

 private:
  // Wrong rows from bad tiles that are spread over the output.
  void pick(std::span<const uint64_t> bad_tiles) {
    const int64_t columns = view_.output == AttentionOutput::lse ? 1 : (view_.d + 15) / 16;
    const int64_t strips = (view_.s + kTileRows - 1) / kTileRows;
    std::vector<int64_t> bad;  // strips of 16 rows, through all heads
    for (uint64_t tile : bad_tiles) {
      const int64_t strip = static_cast<int64_t>(tile) / columns;
      if (bad.empty() || bad.back() != strip) bad.push_back(strip);
    }
    const size_t step = std::max<size_t>(1, (bad.size() + kTiles - 1) / kTiles);
    for (size_t i = 0; i < bad.size(); i += step)
      for (int64_t offset = 0; offset < kTileRows; offset += kRowStep) {
        const int64_t row = bad[i] % strips * kTileRows + offset;
        if (row >= view_.s || wrong_.size() >= kMostRows) break;
        Line line = lines_.make(bad[i] / strips, row);
        if (!pattern::fits(view_, line, predict(view_, line, {})))
          wrong_.push_back(std::move(line));
      }
  }

  std::optional<double> share(const Formula& formula) const {
    size_t right = 0, missed = 0;
    for (const Line& line : wrong_) {
      if (pattern::fits(view_, line, formula(line)))
        ++right;
      else if (++missed > static_cast<size_t>((1 - kRequired) * static_cast<double>(wrong_.size())))
        return std::nullopt;
    }
    return static_cast<double>(right) / static_cast<double>(wrong_.size());
  }

  std::string first_place() const {
    const Line& line = wrong_.front();
    return fmt::format("[{},{},{}]", line.head / view_.heads, line.head % view_.heads, line.row);
  }

  Explanation named(const char* kind, const std::string& text, double explains) const {
    return {kind,
            fmt::format("{} ({} of {} wrong rows looked at, such as {})", text,
                        std::lround(explains * static_cast<double>(wrong_.size())), wrong_.size(),
                        first_place()),
            explains};
  }

  Explanation attempt(const char* kind, const std::string& text, const Variant& variant) const {
    if (auto explains = share([&](const Line& line) { return predict(view_, line, variant); }))
      return named(kind, text, *explains);
    return {};
  }

  Explanation attempt_lse(const char* kind, const std::string& text,
                          const std::function<double(double lse, double top)>& f) const {
    const auto explains = share([&](const Line& line) {
      Prediction p = predict(view_, line, {});
      const auto [first, last] = others_of(view_, line, {});
      double top = -INFINITY;
      for (int64_t t = first; t < last; ++t)
        top = std::max(top, view_.scale * line.dots[static_cast<size_t>(t)]);
      p.lse = f(p.lse, top);
      return p;
    });
    return explains ? named(kind, text, *explains) : Explanation{};
  }

  struct Named {
    const char* kind;
    std::string text;
    Variant variant;
  };
  Explanation first_of(const std::vector<Named>& candidates) const {
    for (const Named& n : candidates)
      if (Explanation e = attempt(n.kind, n.text, n.variant); !e.kind.empty()) return e;
    return {};
  }

  Explanation constants() {
    const auto all = [&](auto is) {
      return std::all_of(wrong_.begin(), wrong_.end(), [&](const Line& line) {
        return std::all_of(line.written.begin(), line.written.end(), is);
      });
    };
    if (all([](double x) { return x == 0; })) return named("zeros", "zeros", 1);
    if (all([](double x) { return std::isnan(x); })) return named("nan", "NaN", 1);
    return {};
  }

  Explanation factors() {
    const double log2e = 1 / kLn2;
    if (Explanation e = first_of({
            {"scale-forgotten",
             "scores are not scaled by 1/sqrt(D)",
             {.exponent = 1 / view_.scale}},
            {"scale-twice",
             "scores are scaled by 1/D instead of 1/sqrt(D)",
             {.exponent = view_.scale}},
            {"exponent-base",
             "2^x is computed where e^x is meant: scores lack the factor log2(e)",
             {.exponent = kLn2}},
            {"exponent-base", "scores carry the factor log2(e) twice", {.exponent = log2e}},
        });
        !e.kind.empty())
      return e;
    if (view_.output == AttentionOutput::lse) return {};
    const char* result = view_.output == AttentionOutput::dq ? "dq-unscaled" : "dk-unscaled";
    if (view_.output == AttentionOutput::dq || view_.output == AttentionOutput::dk)
      if (Explanation e = first_of({
              {result, "the gradient is not multiplied by 1/sqrt(D)", {.factor = 1 / view_.scale}},
              {result, "the gradient is multiplied by 1/sqrt(D) twice", {.factor = view_.scale}},
              {result, "the gradient carries a factor log2(e)", {.factor = log2e}},
              {result, "the gradient carries a factor ln 2", {.factor = kLn2}},
          });
          !e.kind.empty())
        return e;
    return any_factor();
  }

  // The same factor in all rows.
  Explanation any_factor() {
    double above = 0, below = 0;
    for (const Line& line : wrong_) {
      const Prediction p = predict(view_, line, {});
      for (size_t c = 0; c < p.values.size(); ++c) {
        above += line.written[c] * p.values[c] / std::max(p.noise[c], 1e-300);
        below += p.values[c] * p.values[c] / std::max(p.noise[c], 1e-300);
      }
    }
    if (!(below > 0) || !std::isfinite(above / below) || above == 0) return {};
    return attempt("scaled", fmt::format("the result is multiplied by {:.4g}", above / below),
                   {.factor = above / below});
  }

  Explanation masks() {
    if (!view_.causal) return {};
    return first_of({
        {"mask-absent",
         "there is no causal mask: queries see the keys after them",
         {.masked = false}},
        {"mask-shifted",
         "the causal mask is off by one: a query sees the key after its own",
         {.shift = 1}},
        {"mask-shifted",
         "the causal mask is off by one: a query does not see its own key",
         {.shift = -1}},
    });
  }

  Explanation forward_only() {
    if (view_.backward()) return {};
    if (view_.output == AttentionOutput::o)
      return attempt("not-divided", "O is not divided by the sum of the weights",
                     {.undivided = true});
    const std::tuple<const char*, const char*, double (*)(double, double)> kForms[] = {
        {"lse-base-2", "LSE in base 2: it lacks the factor ln 2",
         [](double lse, double) { return lse / kLn2; }},
        {"lse-base-2", "LSE is multiplied by ln 2 once too often",
         [](double lse, double) { return lse * kLn2; }},
        {"lse-part", "the largest score alone, without the logarithm of the sum",
         [](double, double top) { return top; }},
        {"lse-part", "the logarithm of the sum alone, without the largest score",
         [](double lse, double top) { return lse - top; }},
        {"lse-part", "the maximum in base e, the sum's logarithm in base 2",
         [](double lse, double top) { return top + (lse - top) / kLn2; }},
        {"lse-part", "the maximum in base 2, the sum's logarithm in base e",
         [](double lse, double top) { return top / kLn2 + (lse - top); }},
        {"lse-part", "the sum itself, without a logarithm",
         [](double lse, double top) { return std::exp(lse - top); }},
        {"lse-part", "the negative of LSE", [](double lse, double) { return -lse; }},
    };
    for (const auto& [kind, text, f] : kForms)
      if (Explanation e = attempt_lse(kind, text, f); !e.kind.empty()) return e;
    return {};
  }

  Explanation backward_only() {
    if (!view_.backward()) return {};
    std::vector<Named> candidates = {
        {"lse-base-2", "L is taken for a logarithm in base 2", {.lse = kLn2}},
        {"lse-base-2", "L is multiplied by log2(e) once too often", {.lse = 1 / kLn2}},
        {"lse-ignored", "probabilities without L: exp of the scores alone", {.lse = 0}},
    };
    if (view_.output != AttentionOutput::dv) {
      candidates.push_back(
          {"delta-missing", "dS lacks rowsum(dO o O): the delta term is missing", {.delta = 0}});
      candidates.push_back(
          {"delta-missing", "delta is added instead of subtracted", {.delta = -1}});
    }
    return first_of(candidates);
  }

  const char* others() const {
    return view_.output == AttentionOutput::dk || view_.output == AttentionOutput::dv ? "queries"
                                                                                      : "keys";
  }

  // Others left out at the end, at the beginning, beyond the diagonal; counted though not there.
  Explanation parts() {
    std::vector<Named> candidates;
    std::set<int64_t> ends, begins;
    for (int64_t tile : kTileSizes) {
      ends.insert((view_.s - 1) / tile * tile);
      ends.insert(view_.s - tile);
      begins.insert(tile);
    }
    const int64_t step = view_.s <= 1024 ? 16 : 256;
    for (int64_t at = step; at < view_.s; at += step) ends.insert(at), begins.insert(at);
    const auto part = [&](const char* kind, const std::string& text, const Variant& variant) {
      candidates.push_back({kind, text, variant});
    };
    for (auto end = ends.rbegin(); end != ends.rend(); ++end)
      if (*end > 0 && *end < view_.s)
        part("tail-dropped",
             fmt::format("the last {} {} are left out ({} and on)", view_.s - *end, others(), *end),
             {.end = *end});
    for (int64_t begin : begins)
      if (begin < view_.s)
        part("head-dropped", fmt::format("the first {} {} are left out", begin, others()),
             {.begin = begin});
    for (int64_t tile : kTileSizes) {
      if (view_.causal)
        part("tail-dropped",
             fmt::format("the last tile of {} keys that a query sees is left out", tile),
             {.whole_tiles = tile});
      const int64_t padding = (view_.s + tile - 1) / tile * tile - view_.s;
      if (padding > 0 && !view_.backward())
        part("padding-counted",
             fmt::format("{} keys past the end, zeros, take part as if they were there", padding),
             {.padding = padding});
      for (int64_t first = 0; first < std::min<int64_t>(view_.s, 16 * tile); first += tile)
        part("one-tile", fmt::format("only {} {}..{} take part", others(), first, first + tile - 1),
             {.begin = first, .end = first + tile});
    }
    return first_of(candidates);
  }

  Explanation tiles() {
    if (view_.backward()) return {};
    struct Fault {
      TileFault fault;
      const char *kind, *text;
    };
    const Fault kFaults[] = {
        {TileFault::output_not_rescaled, "missing-rescale",
         "O is not rescaled when a row's running maximum grows"},
        {TileFault::nothing_rescaled, "missing-rescale",
         "neither O nor the sum is rescaled when a row's running maximum grows"},
        {TileFault::sum_not_rescaled, "missing-rescale",
         "the sum of weights is not rescaled when a row's running maximum grows"},
        {TileFault::tile_maximum, "tile-softmax",
         "every tile of keys uses its own maximum, and sums are added as if it were the same"},
        {TileFault::tile_softmax, "tile-softmax",
         "softmax is taken tile by tile: every tile of keys is divided by its own sum"},
        {TileFault::last_tile, "one-tile", "only the tile of keys walked last counts"},
    };
    for (int64_t keys : kTileSizes)
      for (const bool last_first : {false, true})
        for (const auto& [slack, group] :
             {std::pair{0.0, int64_t{1}}, std::pair{8 * kLn2, kTileRows},
              std::pair{8 * kLn2, int64_t{1}}}) {
          const Walk walk{keys, last_first, slack, group};
          if (const Fault* fault = fitting(walk, kFaults))
            return named(fault->kind,
                         fmt::format("{} (tiles of {} keys, from the {} on)", fault->text, keys,
                                     last_first ? "last" : "first"),
                         explains_);
        }
    return {};
  }

  template <size_t N, class Fault>
  const Fault* fitting(const Walk& walk, const Fault (&faults)[N]) {
    size_t right[N] = {};
    size_t looked = 0;
    for (const Line& line : wrong_) {
      const TileSums sums(lines_, line, walk);
      ++looked;
      size_t most = 0;
      for (size_t f = 0; f < N; ++f) {
        right[f] += pattern::fits(view_, line, sums.predict(faults[f].fault));
        most = std::max(most, right[f]);
      }
      if (static_cast<double>(looked - most) > (1 - kRequired) * static_cast<double>(wrong_.size()))
        return nullptr;
    }
    for (size_t f = 0; f < N; ++f) {
      explains_ = static_cast<double>(right[f]) / static_cast<double>(wrong_.size());
      if (explains_ >= kRequired) return &faults[f];
    }
    return nullptr;
  }

  // Which head's inputs a row was computed from.
  Explanation heads() {
    const int64_t all = view_.batches * view_.heads;
    if (all < 2) return {};
    struct Mix {
      const char* text;
      bool q, k, v;
    };
    std::vector<Mix> mixes = {
        {"the result of another head", true, true, true},
        {"K and V are another head's", false, true, true},
        {"K is another head's", false, true, false},
        {"V is another head's", false, false, true},
        {view_.backward() ? "Q, dO, O and L are another head's" : "Q is another head's", true,
         false, false}};
    for (const Mix& mix : mixes) {
      size_t right = 0, missed = 0;
      int64_t source = -1;
      for (const Line& line : wrong_) {
        const int64_t from = source_of(line, mix.q, mix.k, mix.v);
        right += from >= 0;
        if (source < 0) source = from;
        if (from < 0 &&
            ++missed > static_cast<size_t>((1 - kRequired) * static_cast<double>(wrong_.size())))
          break;
      }
      const double explains = static_cast<double>(right) / static_cast<double>(wrong_.size());
      if (explains < kRequired) continue;
      const int64_t head = wrong_.front().head;
      return named(head / view_.heads == source / view_.heads ? "heads-mixed" : "batches-mixed",
                   fmt::format("{}: batch {}, head {} has those of batch {}, head {}", mix.text,
                               head / view_.heads, head % view_.heads, source / view_.heads,
                               source % view_.heads),
                   explains);
    }
    return {};
  }

  int64_t source_of(const Line& line, bool q, bool k, bool v) const {
    for (int64_t other : neighbours(line.head)) {
      const Line mixed =
          lines_.make(line.head, line.row,
                      {q ? other : line.head, k ? other : line.head, v ? other : line.head});
      if (pattern::fits(view_, mixed, predict(view_, mixed, {}))) return other;
    }
    return -1;
  }

  // Other heads worth trying, all where that is cheap.
  std::vector<int64_t> neighbours(int64_t head) const {
    const int64_t all = view_.batches * view_.heads, batch = head / view_.heads,
                  own = head % view_.heads;
    std::set<int64_t> chosen;
    if (all * view_.s * view_.d <= int64_t{1} << 23)
      for (int64_t h = 0; h < all; ++h) chosen.insert(h);
    for (int64_t step : {1, 2, 4, 8})
      for (int64_t h : {head - step, head + step, head / step, head / step * step, head * step})
        chosen.insert(h);
    for (int64_t b = 0; b < std::min<int64_t>(view_.batches, 8); ++b) {
      chosen.insert(b * view_.heads + own);
      chosen.insert(own * view_.batches + batch);  // batch and head exchanged
    }
    std::vector<int64_t> result;
    for (int64_t h : chosen)
      if (h >= 0 && h < all && h != head) result.push_back(h);
    return result;
  }

  const AttentionView& view_;
  Lines lines_;
  std::vector<Line> wrong_;
  double explains_ = 0;
};

}  // namespace

Explanation explain_attention(const AttentionView& view, std::span<const uint64_t> bad_tiles) {
  return Explaining(view, bad_tiles).run();
}

}  // namespace ptxbench::bench
