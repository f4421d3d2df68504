#include "te/kernels/scale_update.h"

#include <gtest/gtest.h>

#include <cmath>

#include "te/device_array.h"
#include "te/fp8/golden_updates.h"
#include "te/fp8/scaling.h"
#include "te/kernels/fused_cast.h"
#include "te/reference.h"

namespace ptxbench::te {
namespace {

using test::DeviceArray;

ScalingState state_of(int length, AmaxAlgorithm algorithm, int margin,
                      std::vector<Fp8Format> formats) {
  DelayedScaling recipe;
  recipe.amax_history_len = length, recipe.amax_algorithm = algorithm, recipe.margin = margin;
  return make_state(recipe, formats).take();
}

// The golden case with everything in it: casts of full tensors raise the amax, the update follows.
TEST(ScaleUpdate, FourStepsWithTheirCasts) {
  for (AmaxAlgorithm algorithm : {AmaxAlgorithm::max, AmaxAlgorithm::most_recent}) {
    auto state = DeviceScalingState::create(
        state_of(1024, algorithm, 2, {test::kFourStepFormats, test::kFourStepFormats + 3}));
    ASSERT_TRUE(state.ok()) << state.error().message;
    DeviceArray<uint8_t> data(256), transpose(256);
    DeviceArray<float> scale_inv(1);
    float scales[3] = {1, 1, 1};
    for (int step = 0; step < 4; ++step) {
      for (uint32_t k = 0; k < 3; ++k) {
        const float value = step + test::kFourStepOffsets[k];
        DeviceArray<uint16_t> x(std::vector<uint16_t>(256, numeric::bf16_from_float(value)));
        FusedCast call;
        call.format = test::kFourStepFormats[k];
        call.rows = call.cols = 16, call.in = x.get();
        call.out = {data.get(), transpose.get(), state->scale(k), scale_inv.get(), state->amax(k)};
        ASSERT_TRUE(fused_cast(call, nullptr).ok());
        EXPECT_EQ(data.fetch()[255], fp8_encode(call.format, value * scales[k]));
        EXPECT_EQ(scale_inv.fetch()[0], 1.0f / scales[k]);
      }
      ASSERT_TRUE(state->update(nullptr, nullptr).ok());
      auto now = state->download();
      ASSERT_TRUE(now.ok());
      for (int k = 0; k < 3; ++k) {
        EXPECT_EQ(float_word(now->scale[k]), test::kFourSteps[step][k]) << step << " " << k;
        for (int row = 0; row < 1024; ++row) {
          const int back = 1023 - row;
          ASSERT_EQ(now->history[row * 3 + k],
                    row > 0 && back <= step ? step - back + test::kFourStepOffsets[k] : 0);
        }
        scales[k] = now->scale[k];
      }
    }
  }
}

TEST(ScaleUpdate, RollingWindow) {
  for (AmaxAlgorithm algorithm : {AmaxAlgorithm::max, AmaxAlgorithm::most_recent}) {
    auto state = DeviceScalingState::create(state_of(4, algorithm, 0, {Fp8Format::e4m3}));
    int step = 0;
    for (const test::WindowStep& w : test::window_steps()) {
      test::check_cuda(cudaMemcpy(state->amaxes(), &w.amax, 4, cudaMemcpyHostToDevice), "amax");
      ASSERT_TRUE(state->update(nullptr, nullptr).ok());
      EXPECT_EQ(state->download()->scale[0],
                algorithm == AmaxAlgorithm::max ? w.scale_max : w.scale_most_recent)
          << "step " << step;
      ++step;
    }
    EXPECT_EQ(step, 12);
  }
}

TEST(ScaleUpdate, CornersOfTheScale) {
  std::vector<Fp8Format> formats;
  std::vector<float> amaxes;
  for (const test::Corner& c : test::corners())
    formats.push_back(c.format), amaxes.push_back(c.amax);
  ScalingState host = state_of(1, AmaxAlgorithm::max, 0, formats);
  host.history = amaxes;
  auto state = DeviceScalingState::create(host);
  ASSERT_TRUE(state->update(nullptr, nullptr).ok());
  const ScalingState now = state->download().take();
  for (size_t k = 0; k < formats.size(); ++k)
    EXPECT_EQ(now.scale[k], test::corners()[k].scale) << "amax " << amaxes[k];
}

// Bit for bit the CPU's update, for sizes around the kernel's own (32 columns, 1024 rows), with
// idle columns and reduced amaxes.
TEST(ScaleUpdate, EqualsTheCpu) {
  for (int length : {1, 2, 31, 1024, 1025, 2500})
    for (size_t tensors : {1, 33, 64})
      for (AmaxAlgorithm algorithm : {AmaxAlgorithm::max, AmaxAlgorithm::most_recent})
        for (bool reduce : {false, true}) {
          ScalingState host = state_of(length, algorithm, 1, std::vector(tensors, Fp8Format::e5m2));
          numeric::Random({3, tensors}, length).fill_uniform(0, host.history);
          for (size_t k = 0; k < tensors; k += 5) host.history[k] = 0;
          auto state = DeviceScalingState::create(host);
          std::vector<float> reduced(tensors);
          for (size_t k = 0; k < tensors; ++k) reduced[k] = k % 3 == 0 ? 0 : 2.0f + k;
          DeviceArray<float> device_reduced(reduced);
          for (int step = 0; step < 2; ++step) {
            update(host, reduce ? reduced : std::vector<float>());
            ASSERT_TRUE(state->update(reduce ? device_reduced.get() : nullptr, nullptr).ok());
          }
          ASSERT_EQ(*state->download(), host) << length << " " << tensors;
        }
}

// Two ranks, each with its own amaxes; the reduced maximum gives both the same scales.
TEST(ScaleUpdate, RanksAgreeAfterTheMaximum) {
  ScalingState rank[2] = {state_of(16, AmaxAlgorithm::max, 0, {Fp8Format::e4m3, Fp8Format::e5m2}),
                          {}};
  rank[1] = rank[0];
  rank[0].history[0] = 1, rank[0].history[1] = 8;
  rank[1].history[0] = 4, rank[1].history[1] = 2;
  DeviceArray<float> reduced(std::vector<float>{4, 8});
  for (ScalingState& r : rank) {
    auto state = DeviceScalingState::create(r);
    ASSERT_TRUE(state->update(reduced.get(), nullptr).ok());
    r = state->download().take();
  }
  EXPECT_EQ(rank[0], rank[1]);
  EXPECT_EQ(rank[0].scale, (std::vector<float>{112, 7168}));
}

TEST(ScaleUpdate, ResumeIsBitExact) {
  auto straight =
      DeviceScalingState::create(state_of(16, AmaxAlgorithm::max, 0, {Fp8Format::e4m3}));
  auto resumed = DeviceScalingState::create(straight->download().take());
  for (int step = 0; step < 6; ++step) {
    const float amax = 1.0f + step % 4;
    for (auto* s : {&*straight, &*resumed}) {
      test::check_cuda(cudaMemcpy(s->amaxes(), &amax, 4, cudaMemcpyHostToDevice), "amax");
      ASSERT_TRUE(s->update(nullptr, nullptr).ok());
    }
    auto loaded = deserialize(serialize(resumed->download().take()));
    ASSERT_TRUE(loaded.ok());
    resumed = DeviceScalingState::create(*loaded);
  }
  EXPECT_EQ(*straight->download(), *resumed->download());
  EXPECT_EQ(straight->download()->scale[0], 112);
}

TEST(ScaleUpdate, OneLaunchForAllTensors) {
  auto state = DeviceScalingState::create(
      state_of(1024, AmaxAlgorithm::max, 0, std::vector(200, Fp8Format::e4m3)));
  EXPECT_EQ(test::work_of([&](cudaStream_t s) { EXPECT_TRUE(state->update(nullptr, s).ok()); }),
            test::kOneKernel);
}

TEST(ScaleUpdate, AnotherSizeIsRefused) {
  auto state = DeviceScalingState::create(state_of(4, AmaxAlgorithm::max, 0, {Fp8Format::e4m3}));
  EXPECT_FALSE(state->upload(state_of(5, AmaxAlgorithm::max, 0, {Fp8Format::e4m3})).ok());
}

}  // namespace
}  // namespace ptxbench::te
