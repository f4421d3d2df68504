// Attention tasks: the oracles against a second formulation and finite differences, honest kernels'
// arithmetic accepted, the usual faults not.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "bench/op/attention_math.h"
#include "bench/op/operation.h"
#include "numeric/dtype.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench {
namespace {

constexpr Seed kSeed = {11, 12};
constexpr int kThreads = 2;

Task load(const std::string& name) {
  return TaskSuite::open(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tasks")
      .take()
      .load(name)
      .take();
}
float bf16(double v) {
  return numeric::bf16_to_float(numeric::bf16_from_float(static_cast<float>(v)));
}

// ---- the oracle ----

struct Small {
  int64_t s = 7, d = 4;
  std::vector<double> q, k, v, d_o;
  explicit Small(bool tiny_scores = false) {
    uint64_t state = 5;
    const auto next = [&] {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return static_cast<double>(state >> 40) / (1 << 23) - 1;
    };
    for (auto* x : {&q, &k, &v, &d_o})
      for (int64_t i = 0; i < s * d; ++i) x->push_back(next() * (tiny_scores ? 1 : 3));
  }
  AttentionHead head(bool causal) const {
    AttentionHead h;
    h.queries = h.keys = s, h.d = h.d_v = d;
    h.scale = 1 / std::sqrt(static_cast<double>(d)), h.causal = causal;
    h.q = q, h.k = k, h.v = v;
    return h;
  }
};

// Key by key with a running maximum, as kernels do, instead of whole rows.
void attend_online(const AttentionHead& h, std::vector<double>& o, std::vector<double>& lse) {
  for (int64_t i = 0; i < h.queries; ++i) {
    double top = -INFINITY, sum = 0;
    std::vector<double> row(static_cast<size_t>(h.d_v), 0.0);
    for (int64_t j = 0; j < h.visible(i); ++j) {
      double score = 0;
      for (int64_t c = 0; c < h.d; ++c) score += h.q[i * h.d + c] * h.k[j * h.d + c];
      score *= h.scale;
      const double now = std::max(top, score), keep = std::exp(top - now),
                   p = std::exp(score - now);
      sum = sum * keep + p;
      for (int64_t c = 0; c < h.d_v; ++c) row[c] = row[c] * keep + p * h.v[j * h.d_v + c];
      top = now;
    }
    for (double x : row) o.push_back(x / sum);
    lse.push_back(top + std::log(sum));
  }
}

TEST(AttentionOracle, IsTheOnlineFormulation) {
  const Small small;
  for (bool causal : {false, true}) {
    const AttentionHead head = small.head(causal);
    const AttentionResult r = attend(head, kThreads).take();
    std::vector<double> o, lse;
    attend_online(head, o, lse);
    for (size_t i = 0; i < o.size(); ++i) ASSERT_NEAR(r.o[i], o[i], 1e-13) << causal;
    for (size_t i = 0; i < lse.size(); ++i) ASSERT_NEAR(r.lse[i], lse[i], 1e-13) << causal;
  }
}

// The gradient of sum(O o dO) by central differences of the forward pass.
TEST(AttentionOracle, GradientsAreFiniteDifferences) {
  for (bool causal : {false, true}) {
    Small small;
    const AttentionResult forward = attend(small.head(causal), kThreads).take();
    const AttentionGradient g =
        attend_backward(small.head(causal), forward.o, small.d_o, forward.lse, kThreads).take();
    const auto loss = [&] {
      const AttentionResult r = attend(small.head(causal), kThreads).take();
      double sum = 0;
      for (size_t i = 0; i < r.o.size(); ++i) sum += r.o[i] * small.d_o[i];
      return sum;
    };
    const auto check = [&](std::vector<double>& x, const std::vector<double>& gradient) {
      for (size_t i = 0; i < x.size(); ++i) {
        const double was = x[i], h = 1e-5;
        x[i] = was + h;
        const double up = loss();
        x[i] = was - h;
        const double down = loss();
        x[i] = was;
        ASSERT_NEAR(gradient[i], (up - down) / (2 * h), 1e-7) << causal << " " << i;
      }
    };
    check(small.q, g.dq);
    check(small.k, g.dk);
    check(small.v, g.dv);
  }
}

// ---- verdicts on values: a kernel's arithmetic on the host ----

struct Fault {
  const char* name = "honest";
  bool base_2_lse = false, no_rescale = false, no_scale = false, shifted_mask = false,
       no_mask = false, last_tile_dropped = false, heads_swapped = false, tile_softmax = false;
};

// Forward in fp32 over key tiles of 64, probabilities and result rounded to bf16.
std::vector<Tensor> model_forward(const Problem& p, const Fault& f) {
  std::vector<Tensor> out = make_outputs(p.definition, p.axes, 0).take();
  const int64_t heads = axis_value(p.axes, "B") * axis_value(p.axes, "H");
  const int64_t s = axis_value(p.axes, "S"), d = axis_value(p.axes, "D");
  const bool causal = has_tag(p.definition, "mask:causal");
  const std::vector<double> q = to_doubles(p.inputs[0]), k = to_doubles(p.inputs[1]),
                            v = to_doubles(p.inputs[2]);
  const float scale = f.no_scale ? 1.0f : 1 / std::sqrt(static_cast<float>(d));
  constexpr int64_t kTile = 64;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t i = 0; i < s; ++i) {
      const int64_t of_kv = f.heads_swapped ? (head + 1) % heads : head;
      const double* row = &q[(head * s + i) * d];
      float top = -INFINITY, sum = 0;
      std::vector<float> o(static_cast<size_t>(d), 0.0f);
      int64_t seen = causal && !f.no_mask ? i + 1 + f.shifted_mask : s;
      seen = std::min(seen, s);
      if (f.last_tile_dropped) seen = std::min(seen, (s - 1) / kTile * kTile);
      for (int64_t first = 0; first < seen; first += kTile) {
        const int64_t last = std::min(first + kTile, seen);
        float score[kTile], tile_top = -INFINITY;
        for (int64_t j = first; j < last; ++j) {
          float x = 0;
          for (int64_t c = 0; c < d; ++c)
            x += static_cast<float>(row[c] * k[(of_kv * s + j) * d + c]);
          score[j - first] = x * scale;
          tile_top = std::max(tile_top, score[j - first]);
        }
        const float now = f.tile_softmax ? tile_top : std::max(top, tile_top);
        const float keep =
            f.no_rescale || f.tile_softmax ? (first > 0 ? 1.0f : 0.0f) : std::exp(top - now);
        sum *= keep;
        for (float& x : o) x *= keep;
        for (int64_t j = first; j < last; ++j) {
          const float probability = std::exp(score[j - first] - now);
          sum += probability;
          const float rounded = bf16(probability);
          for (int64_t c = 0; c < d; ++c)
            o[c] += rounded * static_cast<float>(v[(of_kv * s + j) * d + c]);
        }
        top = now;
      }
      uint8_t* to = out[0].bytes.data() + (head * s + i) * d * 2;
      for (int64_t c = 0; c < d; ++c) numeric::store_element(out[0].type, o[c] / sum, to + 2 * c);
      const float lse = top + std::log(sum);
      numeric::store_element(out[1].type, f.base_2_lse ? lse * 1.44269504f : lse,
                             out[1].bytes.data() + (head * s + i) * 4);
    }
  return out;
}

struct BackwardFault {
  const char* name = "honest";
  bool no_delta = false, dq_unscaled = false, no_mask = false, last_tile_dropped = false;
};

std::vector<Tensor> model_backward(const Problem& p, const BackwardFault& f) {
  std::vector<Tensor> out = make_outputs(p.definition, p.axes, 0).take();
  const int64_t heads = axis_value(p.axes, "B") * axis_value(p.axes, "H");
  const int64_t s = axis_value(p.axes, "S"), d = axis_value(p.axes, "D");
  const bool causal = has_tag(p.definition, "mask:causal");
  std::vector<std::vector<double>> in;
  for (const Tensor& tensor : p.inputs) in.push_back(to_doubles(tensor));
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  for (int64_t head = 0; head < heads; ++head) {
    const auto at = [&](size_t tensor, int64_t r, int64_t c) {
      return static_cast<float>(in[tensor][(head * s + r) * d + c]);
    };
    std::vector<float> g[3];
    for (auto& x : g) x.assign(static_cast<size_t>(s * d), 0.0f);
    for (int64_t i = 0; i < s; ++i) {
      float delta = 0;
      for (int64_t c = 0; c < d; ++c) delta += at(3, i, c) * at(4, i, c);
      const float l = static_cast<float>(in[5][head * s + i]);
      int64_t seen = causal && !f.no_mask ? i + 1 : s;
      if (f.last_tile_dropped) seen = std::min(seen, (s - 1) / 64 * 64);
      for (int64_t j = 0; j < seen; ++j) {
        float score = 0, dp = 0;
        for (int64_t c = 0; c < d; ++c)
          score += at(0, i, c) * at(1, j, c), dp += at(4, i, c) * at(2, j, c);
        const float probability = std::exp(score * scale - l);
        const float ds = bf16(probability * (dp - (f.no_delta ? 0 : delta))),
                    rounded = bf16(probability);
        for (int64_t c = 0; c < d; ++c) {
          g[0][i * d + c] += ds * at(1, j, c);
          g[1][j * d + c] += ds * at(0, i, c);
          g[2][j * d + c] += rounded * at(4, i, c);
        }
      }
    }
    for (int t = 0; t < 3; ++t)
      for (int64_t i = 0; i < s * d; ++i)
        numeric::store_element(out[t].type,
                               g[t][i] * (t == 2 || (t == 0 && f.dq_unscaled) ? 1.0f : scale),
                               out[t].bytes.data() + (head * s * d + i) * 2);
  }
  return out;
}

// The verdict on values, as the evaluator comes to it.
std::vector<Correctness> judge(const Task& task, const Problem& p, const std::vector<Tensor>& got) {
  const Operation* operation = operation_of(task.definition).take();
  std::vector<Comparator> comparators;
  for (size_t i = 0; i < got.size(); ++i)
    comparators.emplace_back(got[i].type, got[i].bytes, operation->view(p.definition, p.axes, i),
                             poison_bits(got[i].type, 0x7fbd));
  EXPECT_TRUE(operation
                  ->reference(p, kThreads,
                              [&](const ReferenceBlock& b) {
                                comparators[b.output].add_block(b.first_row, b.count, b.values,
                                                                kThreads, b.noise);
                              })
                  .ok());
  std::vector<Correctness> all;
  for (size_t i = 0; i < got.size(); ++i) {
    Correctness c = comparators[i].finish();
    c.output = got[i].spec.name;
    c.shape = got[i].shape;
    decide(task.calibration, 0, c);
    all.push_back(c);
  }
  return all;
}

using Model = std::function<std::vector<Tensor>(const Problem&)>;

// (outputs that pass, largest noise ratio) of a model on a distribution.
std::vector<Correctness> outcome(const Task& task, const AxisValues& axes,
                                 Distribution distribution, const Model& model) {
  const Operation* operation = operation_of(task.definition).take();
  const std::vector<Tensor> inputs =
      operation->inputs(task.definition, axes, kSeed, kThreads, distribution).take();
  const Problem p{task.definition, axes, inputs};
  return judge(task, p, model(p));
}

constexpr Distribution kReal[] = {Distribution::mixed, Distribution::normal, Distribution::spiky};

TEST(AttentionVerdicts, HonestArithmeticPassesOnEveryDistribution) {
  for (const char* name : {"mha_with_lse_d64", "mha_with_lse_d64_causal", "mha_with_lse_d128"}) {
    const Task task = load(name);
    const AxisValues axes =
        resolve_axes(task.definition, nullptr, {{"B", 1}, {"H", 2}, {"S", 200}}).take();
    for (int i = 0; i < kDistributions; ++i)
      for (const Correctness& c : outcome(task, axes, static_cast<Distribution>(i),
                                          [](const Problem& p) { return model_forward(p, {}); }))
        EXPECT_TRUE(c.passed) << name << " distribution " << i << " " << c.output << ": " << c.why;
  }
  for (const char* name : {"mha_bwd_d64", "mha_bwd_d64_causal"}) {
    const Task task = load(name);
    const AxisValues axes =
        resolve_axes(task.definition, nullptr, {{"B", 1}, {"H", 2}, {"S", 150}}).take();
    for (int i = 0; i < kDistributions; ++i)
      for (const Correctness& c : outcome(task, axes, static_cast<Distribution>(i),
                                          [](const Problem& p) { return model_backward(p, {}); }))
        EXPECT_TRUE(c.passed) << name << " distribution " << i << " " << c.output << ": " << c.why;
  }
}

TEST(AttentionVerdicts, FaultsOfTheForwardPassFail) {
  const Task task = load("mha_with_lse_d64_causal");
  const AxisValues axes =
      resolve_axes(task.definition, nullptr, {{"B", 1}, {"H", 2}, {"S", 200}}).take();
  const Fault faults[] = {{.name = "LSE in base 2", .base_2_lse = true},
                          {.name = "no rescale", .no_rescale = true},
                          {.name = "no scale", .no_scale = true},
                          {.name = "mask off by one", .shifted_mask = true},
                          {.name = "no mask", .no_mask = true},
                          {.name = "last tile dropped", .last_tile_dropped = true},
                          {.name = "heads mixed up", .heads_swapped = true},
                          {.name = "softmax a tile", .tile_softmax = true}};
  for (const Fault& fault : faults)
    for (Distribution distribution : kReal) {
      const auto all = outcome(task, axes, distribution,
                               [&](const Problem& p) { return model_forward(p, fault); });
      EXPECT_FALSE(all[0].passed && all[1].passed)
          << fault.name << " on " << static_cast<int>(distribution);
      EXPECT_FALSE(deciding_output(all).passed);
    }
}

TEST(AttentionVerdicts, FaultsOfTheBackwardPassFail) {
  const Task task = load("mha_bwd_d64_causal");
  const AxisValues axes =
      resolve_axes(task.definition, nullptr, {{"B", 1}, {"H", 2}, {"S", 150}}).take();
  const BackwardFault faults[] = {{.name = "no delta", .no_delta = true},
                                  {.name = "dQ unscaled", .dq_unscaled = true},
                                  {.name = "no mask", .no_mask = true},
                                  {.name = "last tile dropped", .last_tile_dropped = true}};
  for (const BackwardFault& fault : faults)
    for (Distribution distribution : kReal)
      EXPECT_FALSE(
          deciding_output(outcome(task, axes, distribution,
                                  [&](const Problem& p) { return model_backward(p, fault); }))
              .passed)
          << fault.name << " on " << static_cast<int>(distribution);
}

}  // namespace
}  // namespace ptxbench::bench
