// FP8 attention: the oracle against a second formulation, honest kernels' arithmetic accepted, the
// usual faults not.
#include <gtest/gtest.h>

#include <cmath>

#include "judge_models.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench {
namespace {

constexpr Seed kSeed = {31, 32};

struct Kernel {
  const char* name = "";
  double p_scale = 1;  // of probabilities before they are rounded to e4m3; 0: not rounded
  bool no_descale_q = false, no_descale_k = false, no_descale_v = false, base_2_lse = false,
       no_rescale = false, no_mask = false, shifted_mask = false, last_tile_dropped = false,
       p_in_e5m2 = false, v_of_next_head = false;
};

double descale(const Problem& p, size_t i) { return to_doubles(p.inputs[3 + i])[0]; }

double round_p(const Kernel& kernel, double p) {
  const float x = static_cast<float>(p * (kernel.p_scale == 0 ? 1 : kernel.p_scale));
  if (kernel.p_in_e5m2)
    return static_cast<double>(numeric::e5m2_to_float(numeric::e5m2_from_float(x))) /
           kernel.p_scale;
  if (kernel.p_scale == 0) return p;
  return static_cast<double>(numeric::e4m3_to_float(numeric::e4m3_from_float(x))) / kernel.p_scale;
}

// Key tiles of 64 with a running maximum.
std::vector<Tensor> attend_in_tiles(const Problem& p, const Kernel& kernel) {
  std::vector<Tensor> out = make_outputs(p.definition, p.axes, 0).take();
  const int64_t heads = axis_value(p.axes, "B") * axis_value(p.axes, "H");
  const int64_t s = axis_value(p.axes, "L"), d = axis_value(p.axes, "D");
  const bool causal = has_tag(p.definition, "mask:causal");
  const std::vector<double> q = to_doubles(p.inputs[0]), k = to_doubles(p.inputs[1]),
                            v = to_doubles(p.inputs[2]);
  const double scale = (kernel.no_descale_q ? 1 : descale(p, 0)) *
                       (kernel.no_descale_k ? 1 : descale(p, 1)) / std::sqrt(double(d));
  const double scale_v = kernel.no_descale_v ? 1 : descale(p, 2);
  constexpr int64_t kTile = 64;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t i = 0; i < s; ++i) {
      const int64_t of_v = kernel.v_of_next_head ? (head + 1) % heads : head;
      double top = -INFINITY, sum = 0;
      std::vector<double> o(static_cast<size_t>(d), 0.0);
      int64_t seen = causal && !kernel.no_mask ? std::min(i + 1 + kernel.shifted_mask, s) : s;
      if (kernel.last_tile_dropped) seen = std::min(seen, (s - 1) / kTile * kTile);
      for (int64_t first = 0; first < seen; first += kTile) {
        const int64_t last = std::min(first + kTile, seen);
        double score[kTile], now = top;
        for (int64_t j = first; j < last; ++j) {
          float x = 0;
          for (int64_t c = 0; c < d; ++c)
            x += static_cast<float>(q[(head * s + i) * d + c] * k[(head * s + j) * d + c]);
          score[j - first] = x * scale;
          now = std::max(now, score[j - first]);
        }
        const double keep = kernel.no_rescale ? (first > 0 ? 1 : 0) : std::exp(top - now);
        sum *= keep;
        for (double& x : o) x *= keep;
        for (int64_t j = first; j < last; ++j) {
          const double probability = std::exp(score[j - first] - now);
          sum += probability;
          const double rounded = round_p(kernel, probability);
          for (int64_t c = 0; c < d; ++c) o[c] += rounded * v[(of_v * s + j) * d + c];
        }
        top = now;
      }
      for (int64_t c = 0; c < d; ++c)
        numeric::store_element(out[0].type, o[c] / sum * scale_v,
                               out[0].bytes.data() + (head * s + i) * d + c);
      const double lse = top + std::log(sum);
      numeric::store_element(out[1].type, kernel.base_2_lse ? lse / std::log(2.0) : lse,
                             out[1].bytes.data() + (head * s + i) * 4);
    }
  return out;
}

AxisValues small(const Task& task) {
  return resolve_axes(task.definition, nullptr, {{"B", 1}, {"H", 2}, {"L", 200}}).take();
}

// All keys at once, in long double, from what the e4m3 numbers stand for.
TEST(Fp8AttentionOracle, IsSoftmaxOfTheDequantisedScores) {
  for (const char* name : {"fp8_mha_with_lse_d64", "fp8_mha_with_lse_d64_causal"}) {
    const Task task = load_task(name);
    const AxisValues axes =
        resolve_axes(task.definition, nullptr, {{"B", 1}, {"H", 2}, {"L", 37}}).take();
    const Operation* operation = operation_of(task.definition).take();
    const auto inputs =
        operation->inputs(task.definition, axes, kSeed, kModelThreads, Distribution::spiky).take();
    const Problem p{task.definition, axes, inputs};
    std::vector<double> got[2];
    ASSERT_TRUE(operation
                    ->reference(p, kModelThreads,
                                [&](const ReferenceBlock& b) {
                                  got[b.output].insert(got[b.output].end(), b.values.begin(),
                                                       b.values.end());
                                })
                    .ok());
    std::vector<double> m[3];
    for (size_t t = 0; t < 3; ++t) {
      m[t] = to_doubles(p.inputs[t]);
      for (double& x : m[t]) x *= descale(p, t);
    }
    for (int64_t row = 0; row < 2 * 37; ++row) {
      const int64_t head = row / 37,
                    seen = task.definition.tags.back() == "mask:causal" ? row % 37 + 1 : 37;
      long double sum = 0, o[64] = {};
      for (int64_t j = 0; j < seen; ++j) {
        long double score = 0;
        for (int c = 0; c < 64; ++c) score += m[0][row * 64 + c] * m[1][(head * 37 + j) * 64 + c];
        const long double e = std::exp(score / 8);
        sum += e;
        for (int c = 0; c < 64; ++c) o[c] += e * m[2][(head * 37 + j) * 64 + c];
      }
      ASSERT_NEAR(got[1][row], static_cast<double>(std::log(sum)), 1e-12);
      for (int c = 0; c < 64; ++c)
        ASSERT_NEAR(got[0][row * 64 + c], static_cast<double>(o[c] / sum), 1e-11);
    }
  }
}

TEST(Fp8AttentionVerdicts, HonestArithmeticPassesOnEveryDistribution) {
  // As libraries do; with the whole range of e4m3; P V in a wider type, which the instructions
  // tell.
  const Kernel honest[] = {{"P as it is", 1}, {"P times 256", 256}, {"P exact", 0}};
  for (const char* name : {"fp8_mha_with_lse_d64", "fp8_mha_with_lse_d128_causal"}) {
    const Task task = load_task(name);
    for (int i = 0; i < kDistributions; ++i)
      for (const Kernel& kernel : honest)
        for (const Correctness& c :
             judge_model(task, small(task), kSeed, static_cast<Distribution>(i),
                         [&](const Problem& p) { return attend_in_tiles(p, kernel); }))
          EXPECT_TRUE(c.passed) << name << " " << bench::name(static_cast<Distribution>(i)) << " "
                                << kernel.name << " " << c.output << ": " << c.why;
  }
}

TEST(Fp8AttentionVerdicts, FaultsFail) {
  const Kernel faults[] = {{.name = "Q not descaled", .no_descale_q = true},
                           {.name = "K not descaled", .no_descale_k = true},
                           {.name = "V not descaled", .no_descale_v = true},
                           {.name = "LSE in base 2", .base_2_lse = true},
                           {.name = "no rescale", .no_rescale = true},
                           {.name = "no mask", .no_mask = true},
                           {.name = "mask off by one", .shifted_mask = true},
                           {.name = "last tile dropped", .last_tile_dropped = true},
                           {.name = "V of the next head", .v_of_next_head = true}};
  const Task task = load_task("fp8_mha_with_lse_d64_causal");
  for (const Kernel& fault : faults)
    for (Distribution distribution :
         {Distribution::mixed, Distribution::normal, Distribution::spiky})
      EXPECT_FALSE(
          deciding_output(judge_model(task, small(task), kSeed, distribution,
                                      [&](const Problem& p) { return attend_in_tiles(p, fault); }))
              .passed)
          << fault.name << " on " << bench::name(distribution);
}

}  // namespace
}  // namespace ptxbench::bench
