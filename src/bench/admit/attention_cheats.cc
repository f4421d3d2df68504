// Attention that is right in fp64 but for one cheat, and the batteries of both passes.
#include <algorithm>
#include <cmath>

#include "bench/admit/attention_models.h"
#include "bench/blas.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench::admit {
namespace {

using Values = std::vector<double>;
using Round = std::function<double(double)>;

double e4m3(double x) {
  return static_cast<double>(numeric::e4m3_to_float(numeric::e4m3_from_double(x)));
}
double f16(double x) {
  return static_cast<double>(numeric::f16_to_float(numeric::f16_from_double(x)));
}
double bf16(double x) {
  return static_cast<double>(numeric::bf16_to_float(numeric::bf16_from_double(x)));
}
// e4m3 with 1 at 256: weights of a softmax as FP8 kernels keep them.
double e4m3_weight(double x) { return e4m3(x * 256) / 256; }

void apply(const Round& round, Values& values) {
  if (!round) return;
  for (double& x : values) x = round(x);
}

// The largest value at the largest of the format.
void through_scaled_e4m3(Values& values) {
  double largest = 0;
  for (double x : values) largest = std::max(largest, std::abs(x));
  const double scale = largest > 0 ? 448 / largest : 1;
  for (double& x : values) x = e4m3(x * scale) / scale;
}

struct Range {
  int64_t begin = 0, end = 0;
};
using Part = std::function<Range(int64_t length)>;
Part without_last(int64_t count) {
  return [count](int64_t length) { return Range{0, length - std::min(count, length - 1)}; };
}
Part without_first(int64_t count) {
  return [count](int64_t length) { return Range{std::min(count, length - 1), length}; };
}
Part first_half() {
  return [](int64_t length) { return Range{0, (length + 1) / 2}; };
}

constexpr int64_t kSumStep = 16;

struct Cheat {
  Round q, k, v, d_o;   // inputs
  bool scaled = false;  // all inputs through e4m3 with a scale for each head
  Round score, weight;  // weights relative to the largest of their row; backward: P
  Round ds, out;        // out: before the rounding to bf16
  Part keys, queries;   // that take part; backward: queries that keys and values hear of
  bool no_mask = false, shifted_mask = false, no_delta = false;
  int64_t window = 0;  // keys a query sees, of S/window; 0: all
  Round sums;          // after every kSumStep of the reduction
};

Result<void> product(bool at, bool bt, int64_t m, int64_t n, int64_t k, const Values& a,
                     const Values& b, Values& c) {
  c.assign(static_cast<size_t>(m * n), 0.0);
  return dgemm({at, bt, m, n, k, a.data(), b.data(), c.data(), 0}, 1);
}

// c[m,n] = a[m,k] b[k,n], or rounded after every few terms.
Result<void> summed(const Cheat& cheat, int64_t m, int64_t n, int64_t k, const Values& a,
                    const Values& b, Values& c) {
  if (!cheat.sums) return product(false, false, m, n, k, a, b, c);
  c.assign(static_cast<size_t>(m * n), 0.0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t first = 0; first < k; first += kSumStep) {
      double* row = &c[static_cast<size_t>(i * n)];
      for (int64_t x = first; x < std::min(k, first + kSumStep); ++x) {
        const double factor = a[static_cast<size_t>(i * k + x)];
        if (factor == 0) continue;
        for (int64_t j = 0; j < n; ++j) row[j] += factor * b[static_cast<size_t>(x * n + j)];
      }
      for (int64_t j = 0; j < n; ++j) row[j] = cheat.sums(row[j]);
    }
  return {};
}

Values transposed(const Values& from, int64_t rows, int64_t columns) {
  Values to(from.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      to[static_cast<size_t>(c * rows + r)] = from[static_cast<size_t>(r * columns + c)];
  return to;
}

Values head_of(const Values& tensor, int64_t head, size_t size) {
  const auto first = tensor.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(head) * size);
  return {first, first + static_cast<std::ptrdiff_t>(size)};
}

// Keys that the query sees.
Range seen(const Cheat& cheat, const AttentionSize& z, int64_t query) {
  Range range = cheat.keys ? cheat.keys(z.s) : Range{0, z.s};
  if (z.causal && !cheat.no_mask)
    range.end = std::min({range.end, query + 1 + (cheat.shifted_mask ? 1 : 0), z.s});
  if (cheat.window > 0) range.begin = std::max(range.begin, query - z.s / cheat.window);
  return range;
}

// The masked scores of a head, -infinity where there is none.
Result<Values> scores(const Cheat& cheat, const AttentionSize& z, const Values& q,
                      const Values& k) {
  Values s;
  PB_RETURN_IF_ERROR(product(false, true, z.s, z.s, z.d, q, k, s));
  for (int64_t i = 0; i < z.s; ++i) {
    const Range range = seen(cheat, z, i);
    for (int64_t j = 0; j < z.s; ++j) {
      double& x = s[static_cast<size_t>(i * z.s + j)];
      x *= 1 / std::sqrt(static_cast<double>(z.d));
      if (cheat.score) x = cheat.score(x);
      if (j < range.begin || j >= range.end) x = -INFINITY;
    }
  }
  return s;
}

struct Inputs {
  Values q, k, v, o, d_o, lse;
};

Inputs inputs_of(const Case& c, const Cheat& cheat, const AttentionSize& z, int64_t head) {
  Inputs in;
  Values* all[] = {&in.q, &in.k, &in.v, &in.o, &in.d_o, &in.lse};
  for (size_t i = 0; i < c.inputs.size(); ++i)
    *all[i] =
        head_of(to_doubles(c.inputs[i]), head, i == 5 ? static_cast<size_t>(z.s) : z.matrix());
  apply(cheat.q, in.q);
  apply(cheat.k, in.k);
  apply(cheat.v, in.v);
  apply(cheat.d_o, in.d_o);
  if (cheat.scaled)
    for (Values* x : {&in.q, &in.k, &in.v, &in.d_o}) through_scaled_e4m3(*x);
  return in;
}

// Appends a head's results to those of the heads before.
void append(Values& to, Values values, const Round& out) {
  apply(out, values);
  to.insert(to.end(), values.begin(), values.end());
}

Result<std::vector<Tensor>> forward(const Case& c, const Cheat& cheat) {
  const AttentionSize z = attention_size(c.problem());
  Values o, lse;
  for (int64_t head = 0; head < z.heads; ++head) {
    const Inputs in = inputs_of(c, cheat, z, head);
    PB_ASSIGN_OR_RETURN(Values s, scores(cheat, z, in.q, in.k));
    Values sums, of_head;
    for (int64_t i = 0; i < z.s; ++i) {
      const auto row = s.begin() + i * z.s;
      const double top = *std::max_element(row, row + z.s);
      double sum = 0;
      for (auto x = row; x < row + z.s; ++x) sum += * x = std::exp(*x - top);
      if (cheat.weight) std::transform(row, row + z.s, row, cheat.weight);
      sums.push_back(sum);
      lse.push_back(top + std::log(sum));
    }
    PB_RETURN_IF_ERROR(summed(cheat, z.s, z.d, z.s, s, in.v, of_head));
    for (size_t i = 0; i < of_head.size(); ++i) of_head[i] /= sums[i / static_cast<size_t>(z.d)];
    append(o, of_head, cheat.out);
  }
  return std::vector<Tensor>{rounded_output(c, 0, o), rounded_output(c, 1, lse)};
}

// O is the mean of the values that a query sees.
Result<std::vector<Tensor>> mean_of_v(const Case& c) {
  const AttentionSize z = attention_size(c.problem());
  const Values v = to_doubles(c.inputs[2]);
  Values o(c.right[0].size());
  for (int64_t head = 0; head < z.heads; ++head)
    for (int64_t column = 0; column < z.d; ++column) {
      double sum = 0;
      int64_t key = 0;
      for (int64_t i = 0; i < z.s; ++i) {
        for (; key < z.visible(i); ++key)
          sum += v[static_cast<size_t>((head * z.s + key) * z.d + column)];
        o[static_cast<size_t>((head * z.s + i) * z.d + column)] = sum / static_cast<double>(key);
      }
    }
  return std::vector<Tensor>{rounded_output(c, 0, o), rounded_output(c, 1, c.right[1])};
}

Result<std::vector<Tensor>> backward(const Case& c, const Cheat& cheat) {
  const AttentionSize z = attention_size(c.problem());
  const double scale = 1 / std::sqrt(static_cast<double>(z.d));
  Values dq, dk, dv;
  for (int64_t head = 0; head < z.heads; ++head) {
    const Inputs in = inputs_of(c, cheat, z, head);
    PB_ASSIGN_OR_RETURN(Values p, scores(cheat, z, in.q, in.k));
    Values dp, of_head;
    PB_RETURN_IF_ERROR(product(false, true, z.s, z.s, z.d, in.d_o, in.v, dp));
    const Range heard = cheat.queries ? cheat.queries(z.s) : Range{0, z.s};
    for (int64_t i = 0; i < z.s; ++i) {
      double delta = 0;
      for (int64_t x = 0; x < z.d && !cheat.no_delta; ++x)
        delta += in.o[static_cast<size_t>(i * z.d + x)] * in.d_o[static_cast<size_t>(i * z.d + x)];
      for (int64_t j = 0; j < z.s; ++j) {
        const size_t at = static_cast<size_t>(i * z.s + j);
        p[at] = std::exp(p[at] - in.lse[static_cast<size_t>(i)]);
        dp[at] = p[at] * (dp[at] - delta);
      }
    }
    apply(cheat.weight, p);
    apply(cheat.ds, dp);
    PB_RETURN_IF_ERROR(summed(cheat, z.s, z.d, z.s, dp, in.k, of_head));
    for (double& x : of_head) x *= scale;
    append(dq, of_head, cheat.out);
    for (int64_t i = 0; i < z.s; ++i)
      if (i < heard.begin || i >= heard.end)
        for (Values* x : {&p, &dp}) std::fill_n(x->begin() + i * z.s, z.s, 0.0);
    PB_RETURN_IF_ERROR(summed(cheat, z.s, z.d, z.s, transposed(dp, z.s, z.s), in.q, of_head));
    for (double& x : of_head) x *= scale;
    append(dk, of_head, cheat.out);
    PB_RETURN_IF_ERROR(summed(cheat, z.s, z.d, z.s, transposed(p, z.s, z.s), in.d_o, of_head));
    append(dv, of_head, cheat.out);
  }
  return std::vector<Tensor>{rounded_output(c, 0, dq), rounded_output(c, 1, dk),
                             rounded_output(c, 2, dv)};
}

std::optional<AxisValues> reduced(const Definition&, const AxisValues& axes) {
  constexpr int64_t kLongest = 512;
  if (axis_value(axes, "S") > kLongest) return std::nullopt;
  AxisValues result = axes;
  for (auto& [axis, value] : result)
    if (axis == "B" || axis == "H") value = 1;
  return result;
}

struct NamedCheat {
  const char *name, *what;
  Cheat cheat;
  std::vector<Distribution> hidden_on = {};
};

// Of both passes.
std::vector<NamedCheat> common_cheats(bool causal) {
  std::vector<NamedCheat> all = {
      {"e4m3-inputs",
       "Q, K, V (and dO) rounded to e4m3",
       {.q = e4m3, .k = e4m3, .v = e4m3, .d_o = e4m3}},
      {"e4m3-scaled-inputs",
       "the same, scaled to the range of the format, head by head",
       {.scaled = true}},
      {"e4m3-q", "Q alone rounded to e4m3", {.q = e4m3}},
      {"e4m3-k", "K alone rounded to e4m3", {.k = e4m3}},
      {"e4m3-v", "V alone rounded to e4m3", {.v = e4m3}},
      // Hundreds of terms of one sign average such errors away, below the rounding of the result.
      // With one-hot rows a score is a single product, so rounding it loses little, and few
      // different probabilities occur.
      {"e4m3-p",
       "probabilities rounded to e4m3",
       {.weight = e4m3},
       {Distribution::one_sign, Distribution::one_hot}},
      {"e4m3-p-scaled",
       "the same times 256",
       {.weight = e4m3_weight},
       {Distribution::one_sign, Distribution::one_hot}},
      {"bf16-scores", "scores rounded to bf16", {.score = bf16}, {Distribution::one_hot}},
      {"fp16-accumulation",
       "sums over keys (and queries) rounded to fp16 after every 16",
       {.sums = f16},
       {Distribution::one_hot}},
      {"rounded-through-fp16", "results rounded to fp16, then to bf16", {.out = f16}},
      {"last-keys-16", "the last 16 keys left out", {.keys = without_last(16)}},
      {"last-keys-64", "the last 64 keys left out", {.keys = without_last(64)}},
      {"first-keys-16", "the first 16 keys left out", {.keys = without_first(16)}},
      {"half-the-keys", "the second half of the keys left out", {.keys = first_half()}},
      {"window", "a query sees the S/2 keys before it only", {.window = 2}},
  };
  if (causal) {
    all.push_back({"no-mask", "every query sees all keys", {.no_mask = true}});
    all.push_back({"shifted-mask", "every query sees one key more", {.shifted_mask = true}});
  }
  return all;
}

}  // namespace

Battery attention_battery(const Definition& definition) {
  Battery battery;
  const auto honest = [&](const char* name, const char* what, const ForwardOrder& order) {
    battery.honest.push_back({name, what, [order](const Case& c) -> Result<std::vector<Tensor>> {
                                return attention_forward(c.problem(), order);
                              }});
  };
  honest("wgmma-lazy",
         "blocks of 128 keys from the last on, O rescaled when a maximum grew by 2^8: the order "
         "of kernels/sm_90a",
         {128, true, 8, false, plan::TensorMode::hw});
  honest("mma-eager",
         "blocks of 64 keys from the first on, O rescaled at every new maximum: the order of "
         "kernels/sm_80",
         {64, false, 0, false, plan::TensorMode::hw});
  honest("two-passes",
         "LSE first, then normalised probabilities; fp32 fused multiply-adds in order",
         {80, false, 0, true, plan::TensorMode::f32});
  const bool causal = has_tag(definition, "mask:causal");
  for (const NamedCheat& n : common_cheats(causal))
    battery.cheats.push_back({n.name, n.what,
                              [cheat = n.cheat](const Case& c) { return forward(c, cheat); },
                              n.hidden_on});
  battery.cheats.push_back({"fp16-scores",
                            "scores rounded to fp16",
                            [](const Case& c) { return forward(c, {.score = f16}); },
                            {Distribution::one_hot}});
  battery.cheats.push_back({"mean-of-v", "of the values that a query sees", mean_of_v});
  battery.not_applicable = {
      {"tf32-inputs", "bf16 inputs are exact in TF32"},
      {"bf16-accumulation",
       "sums rounded to bf16 block by block err as much as rounded probabilities do"},
      {"rounded-toward-zero",
       "truncating O adds no more than honest rounding of the probabilities does"}};
  if (!causal) battery.not_applicable.push_back({"no-mask", "there is none"});
  battery.reduce = reduced;
  battery.reduced_how = "one head, S = 512; longer ones are not tried";
  return battery;
}

Battery attention_backward_battery(const Definition& definition) {
  Battery battery;
  const auto honest = [&](const char* name, const char* what, const BackwardOrder& order) {
    battery.honest.push_back({name, what, [order](const Case& c) -> Result<std::vector<Tensor>> {
                                return attention_backward(c.problem(), order);
                              }});
  };
  using Dq = BackwardOrder::Dq;
  honest("wgmma-atomic",
         "64 queries by 128 keys, dQ added up in memory in any order: the order of kernels/sm_90a",
         {64, 128, Dq::any_order, plan::TensorMode::hw});
  honest("wgmma-deterministic", "the same, dQ in the order of the keys",
         {64, 128, Dq::key_order, plan::TensorMode::hw});
  honest("mma", "blocks of 32 queries, 64 keys, dQ in accumulators: the order of kernels/sm_80",
         {32, 64, Dq::accumulator, plan::TensorMode::hw});
  honest("fp32-chain", "fp32 fused multiply-adds in order, 48 queries by 80 keys",
         {48, 80, Dq::key_order, plan::TensorMode::f32});
  const bool causal = has_tag(definition, "mask:causal");
  std::vector<NamedCheat> cheats = common_cheats(causal);
  cheats.push_back({"e4m3-do", "dO alone rounded to e4m3", {.d_o = e4m3}});
  cheats.push_back({"e4m3-ds", "dS rounded to e4m3", {.ds = e4m3}});
  cheats.push_back({"no-delta", "dS without rowsum(dO o O)", {.no_delta = true}});
  cheats.push_back({"last-queries-16",
                    "keys and values do not hear of the last 16 queries",
                    {.queries = without_last(16)}});
  cheats.push_back({"first-queries-64", "nor of the first 64", {.queries = without_first(64)}});
  for (NamedCheat& n : cheats) {
    const std::string name = n.name;
    // Exact in e4m3 but for the columns of 2^-20, which hardly count in dO V^T.
    if (name == "e4m3-v") n.hidden_on = {Distribution::integers, Distribution::one_hot};
    battery.cheats.push_back({n.name, n.what,
                              [cheat = n.cheat](const Case& c) { return backward(c, cheat); },
                              n.hidden_on});
  }
  battery.not_applicable = {
      {"tf32-inputs", "bf16 inputs are exact in TF32"},
      {"mean-of-v", "no output is a mean of V"},
      {"bf16-accumulation",
       "sums rounded to bf16 block by block err as much as rounded P and dS do"},
      {"rounded-toward-zero",
       "truncating a gradient adds no more than honest rounding of P and dS does"}};
  if (!causal) battery.not_applicable.push_back({"no-mask", "there is none"});
  battery.reduce = reduced;
  battery.reduced_how = "one head, S = 512; longer ones are not tried";
  // L has a number for each query.
  battery.slice_elements = [](const Case& c, size_t index) {
    return index == 5 ? int64_t{64} : 64 * axis_value(c.axes, "D");
  };
  return battery;
}

}  // namespace ptxbench::bench::admit
