#include "te/fp8/state.h"

#include <gtest/gtest.h>

#include <cmath>

#include "numeric/random.h"
#include "te/fp8/golden_updates.h"
#include "te/fp8/scaling.h"

namespace ptxbench::te {
namespace {

const std::vector<Fp8Format> kOneE4m3 = {Fp8Format::e4m3};

ScalingState state_of(int length, AmaxAlgorithm algorithm, int margin = 0,
                      std::vector<Fp8Format> formats = kOneE4m3) {
  DelayedScaling recipe;
  recipe.amax_history_len = length, recipe.amax_algorithm = algorithm, recipe.margin = margin;
  return make_state(recipe, formats).take();
}

void step(ScalingState& s, float amax) {
  s.history[0] = amax;
  update(s);
}

TEST(ScalingState, FourStepsOfKnownValues) {
  for (AmaxAlgorithm a : {AmaxAlgorithm::max, AmaxAlgorithm::most_recent}) {
    ScalingState s = state_of(
        1024, a, 2, {std::begin(test::kFourStepFormats), std::end(test::kFourStepFormats)});
    for (int t = 0; t < 4; ++t) {
      for (int k = 0; k < 3; ++k) s.history[k] = t + test::kFourStepOffsets[k];
      update(s);
      for (int k = 0; k < 3; ++k) {
        EXPECT_EQ(float_word(s.scale[k]), test::kFourSteps[t][k])
            << "step " << t << " tensor " << k;
        for (int row = 0; row < 1024; ++row) {
          const int back = 1023 - row;  // 0: the newest
          const float expected = row > 0 && back <= t ? t - back + test::kFourStepOffsets[k] : 0;
          ASSERT_EQ(s.history[size_t(row) * 3 + k], expected) << "row " << row;
        }
      }
    }
  }
}

TEST(ScalingState, CornersOfTheScale) {
  for (const test::Corner& c : test::corners()) {
    ScalingState s = state_of(1, AmaxAlgorithm::max, 0, {c.format});
    step(s, c.amax);
    EXPECT_EQ(s.scale[0], c.scale) << fp8_name(c.format) << " amax " << c.amax;
    EXPECT_EQ(s.history[0], 0);
  }
}

TEST(ScalingState, RollingWindow) {
  ScalingState max = state_of(4, AmaxAlgorithm::max),
               recent = state_of(4, AmaxAlgorithm::most_recent);
  int t = 0;
  for (const test::WindowStep& w : test::window_steps()) {
    step(max, w.amax);
    step(recent, w.amax);
    EXPECT_EQ(max.scale[0], w.scale_max) << "step " << t;
    EXPECT_EQ(recent.scale[0], w.scale_most_recent) << "step " << t;
    ++t;
  }
  EXPECT_EQ(t, 12);
}

// Random histories: a column that saw something rolls, one that did not stays, bit for bit.
TEST(ScalingState, RandomHistoriesRollAndIdleColumnsStay) {
  for (int length : {31, 1024})
    for (AmaxAlgorithm a : {AmaxAlgorithm::max, AmaxAlgorithm::most_recent})
      for (bool weight_runs : {true, false}) {
        ScalingState s =
            state_of(length, a, 2, {Fp8Format::e4m3, Fp8Format::e4m3, Fp8Format::e5m2});
        numeric::Random({1, static_cast<uint64_t>(length)}).fill_uniform(0, s.history);
        if (!weight_runs) s.history[1] = 0;
        const ScalingState before = s;
        update(s);
        for (uint32_t k = 0; k < 3; ++k) {
          auto was = [&](int row) { return before.history[size_t(row) * 3 + k]; };
          auto is = [&](int row) { return s.history[size_t(row) * 3 + k]; };
          if (k == 1 && !weight_runs) {
            for (int row = 0; row < length; ++row) ASSERT_EQ(is(row), was(row));
            EXPECT_EQ(s.scale[k], before.scale[k]);
            continue;
          }
          float amax = was(0);
          for (int row = 1; row < length; ++row) {
            ASSERT_EQ(is(row), row == length - 1 ? was(0) : was(row + 1));
            if (a == AmaxAlgorithm::max) amax = std::max(amax, was(row));
          }
          EXPECT_EQ(is(0), 0);
          EXPECT_EQ(s.scale[k], (k == 2 ? 14336.0f : 112.0f) / amax);
        }
      }
}

TEST(ScalingState, RanksAgreeAfterTheMaximum) {
  ScalingState a = state_of(16, AmaxAlgorithm::max), b = a;
  for (int t = 0; t < 20; ++t) {
    a.history[0] = 1.0f + t % 3, b.history[0] = 2.0f + t % 5;
    const float reduced[1] = {std::max(a.history[0], b.history[0])};
    update(a, reduced);
    update(b, reduced);
    EXPECT_EQ(a, b);
    if (t == 0) {
      EXPECT_EQ(a.scale[0], 224);
    }
  }
}

TEST(ScalingState, ResumeIsBitExact) {
  for (AmaxAlgorithm algorithm : {AmaxAlgorithm::max, AmaxAlgorithm::most_recent}) {
    ScalingState straight = state_of(16, algorithm, 1, {Fp8Format::e4m3, Fp8Format::e5m2});
    ScalingState resumed = straight;
    numeric::Random random({7, 7});
    for (int t = 0; t < 40; ++t) {
      for (int k = 0; k < 2; ++k)
        straight.history[k] = resumed.history[k] = random.uniform(t * 2 + k);
      update(straight);
      update(resumed);
      auto loaded = deserialize(serialize(resumed));
      ASSERT_TRUE(loaded.ok()) << loaded.error().message;
      EXPECT_EQ(*loaded, resumed);
      resumed = loaded.take();
    }
    EXPECT_EQ(straight, resumed);
    EXPECT_NE(straight.scale[0], 1);
  }
}

TEST(ScalingState, DamagedCheckpointsAreRefused) {
  ScalingState s = state_of(8, AmaxAlgorithm::max);
  step(s, 3);
  const std::string good = serialize(s);
  int refused = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 0x10;
    refused += !deserialize(bad).ok();
    EXPECT_FALSE(deserialize(good.substr(0, i)).ok());
  }
  EXPECT_EQ(refused, static_cast<int>(good.size()));
  std::string newer = good;
  newer[8] = 2;
  EXPECT_NE(deserialize(newer).error().message.find("version 2"), std::string::npos);
}

TEST(ScalingState, AnotherWindowLengthKeepsTheNewest) {
  ScalingState s = state_of(6, AmaxAlgorithm::max);
  for (int t = 1; t <= 5; ++t) step(s, t);
  s.history[0] = 9;
  ScalingState shorter = s, longer = s;
  resize_history(shorter, 3);
  resize_history(longer, 8);
  EXPECT_EQ(shorter.history, (std::vector<float>{9, 4, 5}));
  EXPECT_EQ(longer.history, (std::vector<float>{9, 0, 0, 1, 2, 3, 4, 5}));
}

TEST(Recipe, FieldsOutOfRangeAreNamed) {
  EXPECT_TRUE(validate(DelayedScaling{}).ok());
  EXPECT_NE(validate(DelayedScaling{.margin = -1}).error().message.find("margin"),
            std::string::npos);
  EXPECT_NE(validate(DelayedScaling{.amax_history_len = 0}).error().message.find("history"),
            std::string::npos);
  EXPECT_FALSE(validate(CurrentScaling{.amax_epsilon = std::nanf("")}).ok());
  EXPECT_FALSE(validate(BlockScaling{.amax_epsilon = -1}).ok());
  EXPECT_EQ(format_of(DelayedScaling{}, Direction::backward), Fp8Format::e5m2);
  EXPECT_EQ(format_of(DelayedScaling{.format = FormatChoice::e4m3}, Direction::backward),
            Fp8Format::e4m3);
  EXPECT_EQ(format_of(BlockScaling{}, Direction::backward), Fp8Format::e4m3);
  EXPECT_EQ(describe(DelayedScaling{}),
            "delayed scaling, hybrid, margin 0, history 1024, max, amax over all ranks");
}

TEST(Scaling, CurrentScaleCorners) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(current_scale(2, 448, 0, false), 224);
  EXPECT_EQ(current_scale(2, 448, 0, true), 128);
  EXPECT_EQ(current_scale(0.5f, 448, 1, false), 448);  // epsilon
  for (float odd : {0.0f, inf, std::nanf("")}) EXPECT_EQ(current_scale(odd, 448, 0, false), 1);
  EXPECT_EQ(current_scale(0x1p-140f, 448, 0, false), std::numeric_limits<float>::max());
  EXPECT_EQ(current_scale(0x1p-140f, 448, 0, true), 0x1p127f);
}

}  // namespace
}  // namespace ptxbench::te
