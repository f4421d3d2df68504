// FP8 attention: the oracle against a second formulation, honest kernels' arithmetic accepted, the
// usual faults not.
#include <gtest/gtest.h>

#include <cmath>

#include "bench/admit/fp8_attention_models.h"
#include "judge_models.h"

namespace ptxbench::bench {
namespace {

constexpr Seed kSeed = {31, 32};

double descale(const Problem& p, size_t i) { return to_doubles(p.inputs[3 + i])[0]; }

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
  auto honest = admit::honest_fp8_attention();
  ASSERT_GE(honest.size(), 3u);
  honest.push_back({.name = "fp64"});  // P V in a wider type: right values, other instructions
  for (const char* task_name : {"fp8_mha_with_lse_d64", "fp8_mha_with_lse_d128_causal"}) {
    const Task task = load_task(task_name);
    for (int i = 0; i < kDistributions; ++i)
      for (const admit::Fp8AttentionKernel& kernel : honest)
        for (const Correctness& c :
             judge_model(task, small(task), kSeed, static_cast<Distribution>(i),
                         [&](const Problem& p) { return admit::fp8_attention(p, kernel); }))
          EXPECT_TRUE(c.passed) << task_name << " " << name(static_cast<Distribution>(i)) << " "
                                << kernel.name << " " << c.output << ": " << c.why;
  }
}

TEST(Fp8AttentionVerdicts, FaultsFail) {
  const Task task = load_task("fp8_mha_with_lse_d64_causal");
  const auto faults = admit::fp8_attention_faults(true);
  ASSERT_GE(faults.size(), 14u);
  for (const admit::Fp8AttentionKernel& fault : faults)
    for (Distribution distribution :
         {Distribution::mixed, Distribution::normal, Distribution::spiky})
      EXPECT_FALSE(deciding_output(judge_model(task, small(task), kSeed, distribution,
                                               [&](const Problem& p) {
                                                 return admit::fp8_attention(p, fault);
                                               }))
                       .passed)
          << fault.name << " on " << name(distribution);
}

}  // namespace
}  // namespace ptxbench::bench
