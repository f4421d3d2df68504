// Attention tasks: the oracles against a second formulation and finite differences, honest kernels'
// arithmetic accepted, the usual faults not.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "attention_faults.h"
#include "bench/op/attention_math.h"

namespace ptxbench::bench {
namespace {

constexpr Seed kSeed = {11, 12};
constexpr int kThreads = 2;

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

// ---- verdicts on values ----

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
    const Task task = load_task(name);
    const AxisValues axes =
        resolve_axes(task.definition, nullptr, {{"B", 1}, {"H", 2}, {"S", 200}}).take();
    for (int i = 0; i < kDistributions; ++i)
      for (const Correctness& c : outcome(task, axes, static_cast<Distribution>(i),
                                          [](const Problem& p) { return model_forward(p, {}); }))
        EXPECT_TRUE(c.passed) << name << " distribution " << i << " " << c.output << ": " << c.why;
  }
  for (const char* name : {"mha_bwd_d64", "mha_bwd_d64_causal"}) {
    const Task task = load_task(name);
    const AxisValues axes =
        resolve_axes(task.definition, nullptr, {{"B", 1}, {"H", 2}, {"S", 150}}).take();
    for (int i = 0; i < kDistributions; ++i)
      for (const Correctness& c : outcome(task, axes, static_cast<Distribution>(i),
                                          [](const Problem& p) { return model_backward(p, {}); }))
        EXPECT_TRUE(c.passed) << name << " distribution " << i << " " << c.output << ": " << c.why;
  }
}

TEST(AttentionVerdicts, FaultsOfTheForwardPassFail) {
  const Task task = load_task("mha_with_lse_d64_causal");
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
  const Task task = load_task("mha_bwd_d64_causal");
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
