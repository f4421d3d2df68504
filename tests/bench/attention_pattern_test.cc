// Planted faults of attention: each must be named as what it is, on the inputs that decide and on
// others.
#include <set>

#include "attention_faults.h"

namespace ptxbench::bench {
namespace {

constexpr Seed kSeed = {21, 22};

using Model = std::function<std::vector<Tensor>(const Problem&)>;

// By output: kind and text of the explanation, "" where the output is right.
std::vector<Explanation> explained(const char* name, const AxisValues& sizes,
                                   Distribution distribution, const Model& model) {
  const Task task = load_task(name);
  const AxisValues axes = resolve_axes(task.definition, nullptr, sizes).take();
  const Operation* operation = operation_of(task.definition).take();
  const std::vector<Tensor> inputs =
      operation->inputs(task.definition, axes, kSeed, 2, distribution).take();
  const Problem p{task.definition, axes, inputs};
  std::vector<Explanation> all;
  for (const Correctness& c : judge(task, p, model(p), true))
    all.push_back(c.passed ? Explanation{"right", "", 0} : c.explanation);
  return all;
}

struct Planted {
  const char* what;
  Fault fault;
  const char *o, *lse;  // kinds
  const char* words;    // of the first wrong output's explanation
  bool causal = true;
};

void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.what; }

class AttentionPattern : public ::testing::TestWithParam<Planted> {};

TEST_P(AttentionPattern, NamesFaultsOfTheForwardPass) {
  const Planted& planted = GetParam();
  for (Distribution distribution : {Distribution::mixed, Distribution::normal}) {
    SCOPED_TRACE(std::string(planted.what) + " on " + name(distribution));
    const auto all = explained(planted.causal ? "mha_with_lse_d64_causal" : "mha_with_lse_d64",
                               {{"B", 2}, {"H", 2}, {"S", 200}}, distribution,
                               [&](const Problem& p) { return model_forward(p, planted.fault); });
    EXPECT_EQ(all[0].kind, planted.o) << all[0].text;
    EXPECT_EQ(all[1].kind, planted.lse) << all[1].text;
    const Explanation& first = all[0].kind == "right" ? all[1] : all[0];
    EXPECT_NE(first.text.find(planted.words), std::string::npos) << first.text;
    EXPECT_GE(first.explains, 0.95);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forward, AttentionPattern,
    ::testing::Values(
        Planted{"LSE in base 2", {.base_2_lse = true}, "right", "lse-base-2", "base 2"},
        Planted{"no rescale",
                {.no_rescale = true},
                "missing-rescale",
                "missing-rescale",
                "tiles of 64 keys, from the first on"},
        Planted{"O not rescaled",
                {.output_not_rescaled = true},
                "missing-rescale",
                "right",
                "O is not rescaled"},
        Planted{"sum not rescaled",
                {.sum_not_rescaled = true},
                "missing-rescale",
                "missing-rescale",
                "the sum of weights"},
        Planted{"no scale", {.no_scale = true}, "scale-forgotten", "scale-forgotten", "1/sqrt(D)"},
        Planted{"mask off by one",
                {.shifted_mask = true},
                "mask-shifted",
                "mask-shifted",
                "the key after its own"},
        Planted{"no mask", {.no_mask = true}, "mask-absent", "mask-absent", "no causal mask"},
        Planted{"last tile dropped",
                {.last_tile_dropped = true},
                "tail-dropped",
                "tail-dropped",
                "last 8 keys",
                false},
        Planted{"last tile dropped, causal",
                {.last_tile_dropped = true},
                "tail-dropped",
                "tail-dropped",
                "last 8 keys"},
        Planted{"heads mixed up",
                {.heads_swapped = true},
                "heads-mixed",
                "heads-mixed",
                "batch 0, head 0 has those of batch 0, head 1"},
        Planted{"batches mixed up",
                {.batches_swapped = true},
                "batches-mixed",
                "batches-mixed",
                "batch 0, head 0 has those of batch 1, head 0"},
        Planted{"maximum a tile",
                {.tile_softmax = true},
                "tile-softmax",
                "tile-softmax",
                "its own maximum"},
        Planted{"softmax a tile",
                {.own_sum_a_tile = true},
                "tile-softmax",
                "head-dropped",
                "its own sum",
                false},
        Planted{"last tile only",
                {.last_tile_only = true},
                "head-dropped",
                "head-dropped",
                "first 192 keys",
                false},
        Planted{"not divided", {.undivided = true}, "not-divided", "right", "not divided"},
        Planted{"padding counted",
                {.padding_counted = true},
                "padding-counted",
                "padding-counted",
                "56 keys past the end",
                false},
        Planted{"LSE without maximum",
                {.lse_without_maximum = true},
                "right",
                "lse-part",
                "without the largest score"},
        Planted{"2^x for e^x",
                {.exponent_base_2 = true},
                "exponent-base",
                "exponent-base",
                "log2(e)"}));

struct PlantedBackward {
  const char* what;
  BackwardFault fault;
  const char *dq, *dk, *dv;
  const char* words;
};

void PrintTo(const PlantedBackward& planted, std::ostream* out) { *out << planted.what; }

class AttentionBackwardPattern : public ::testing::TestWithParam<PlantedBackward> {};

TEST_P(AttentionBackwardPattern, NamesFaultsOfTheBackwardPass) {
  const PlantedBackward& planted = GetParam();
  for (Distribution distribution : {Distribution::mixed, Distribution::normal}) {
    SCOPED_TRACE(std::string(planted.what) + " on " + name(distribution));
    const auto all = explained("mha_bwd_d64_causal", {{"B", 1}, {"H", 3}, {"S", 150}}, distribution,
                               [&](const Problem& p) { return model_backward(p, planted.fault); });
    const char* kinds[] = {planted.dq, planted.dk, planted.dv};
    std::string text;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(all[i].kind, kinds[i]) << all[i].text;
      if (text.empty()) text = all[i].text;
    }
    EXPECT_NE(text.find(planted.words), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Backward, AttentionBackwardPattern,
                         ::testing::Values(PlantedBackward{"no delta",
                                                           {.no_delta = true},
                                                           "delta-missing",
                                                           "delta-missing",
                                                           "right",
                                                           "delta term is missing"},
                                           PlantedBackward{"dQ unscaled",
                                                           {.dq_unscaled = true},
                                                           "dq-unscaled",
                                                           "right",
                                                           "right",
                                                           "not multiplied by 1/sqrt(D)"},
                                           PlantedBackward{"dK unscaled",
                                                           {.dk_unscaled = true},
                                                           "right",
                                                           "dk-unscaled",
                                                           "right",
                                                           "not multiplied by 1/sqrt(D)"},
                                           PlantedBackward{"no mask",
                                                           {.no_mask = true},
                                                           "mask-absent",
                                                           "mask-absent",
                                                           "mask-absent",
                                                           "no causal mask"},
                                           PlantedBackward{"mask off by one",
                                                           {.shifted_mask = true},
                                                           "mask-shifted",
                                                           "mask-shifted",
                                                           "mask-shifted",
                                                           "the key after its own"},
                                           PlantedBackward{"last tile dropped",
                                                           {.last_tile_dropped = true},
                                                           "tail-dropped",
                                                           "zeros",
                                                           "zeros",
                                                           "last 22 keys"},
                                           PlantedBackward{"queries dropped",
                                                           {.first_queries_dropped = true},
                                                           "right",
                                                           "head-dropped",
                                                           "head-dropped",
                                                           "first 64 queries"},
                                           PlantedBackward{"L in base 2",
                                                           {.base_2_l = true},
                                                           "lse-base-2",
                                                           "lse-base-2",
                                                           "lse-base-2",
                                                           "base 2"},
                                           PlantedBackward{"no scale",
                                                           {.no_scale = true},
                                                           "scale-forgotten",
                                                           "scale-forgotten",
                                                           "scale-forgotten",
                                                           "1/sqrt(D)"},
                                           PlantedBackward{"heads mixed up",
                                                           {.heads_swapped = true},
                                                           "heads-mixed",
                                                           "heads-mixed",
                                                           "heads-mixed",
                                                           "K and V are another head's"}));

// Values that no formula gives are not explained.
TEST(AttentionPatterns, NoiseIsNotExplained) {
  const auto all = explained("mha_with_lse_d64", {{"B", 1}, {"H", 2}, {"S", 100}},
                             Distribution::normal, [](const Problem& p) {
                               std::vector<Tensor> out = model_forward(p, {});
                               uint32_t state = 1;
                               for (size_t i = 0; i + 1 < out[0].bytes.size(); i += 2) {
                                 state = state * 1664525 + 1013904223;
                                 out[0].bytes[i + 1] ^= static_cast<uint8_t>(state >> 31);
                               }
                               return out;
                             });
  EXPECT_EQ(all[0].kind, "") << all[0].text;
  EXPECT_EQ(all[1].kind, "right");
}

}  // namespace
}  // namespace ptxbench::bench
