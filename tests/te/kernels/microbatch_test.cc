// Golden case G11: several microbatches a step, the weight cast once and kept (a device flag makes
// its later casts do nothing), against the weight cast anew every time. The kept weight must be the
// same bits, also after its scale has moved on: what decodes it travels with it.
#include <gtest/gtest.h>

#include <cmath>

#include "te/device_array.h"
#include "te/kernels/fused_cast.h"
#include "te/kernels/scale_update.h"
#include "te/reference.h"

namespace ptxbench::te {
namespace {

using test::DeviceArray;

constexpr int64_t kTokens = 32, kIn = 48, kOut = 64;
enum Tensor : uint32_t { kInput, kWeight };

struct Layer {
  explicit Layer(const DeviceScalingState& state) : state(state) {}

  // Casts the microbatch, and the weight unless it is kept; the output in double, from FP8 operands
  // decoded as a GEMM does, and the bits of the weight.
  std::vector<double> forward(const std::vector<uint16_t>& x, bool keep_weight) {
    DeviceArray<uint16_t> input(x);
    flag.put({keep_weight ? 1.0f : 0.0f});
    cast(input.get(), kTokens, kInput, input_fp8.get(), nullptr, input_inv.get(), nullptr);
    cast(weight.get(), kOut, kWeight, weight_fp8.get(), weight_transpose.get(), weight_inv.get(),
         flag.get());
    const auto a = input_fp8.fetch(), b = weight_fp8.fetch();
    const double decode = double{input_inv.fetch()[0]} * weight_inv.fetch()[0];
    std::vector<double> y(kTokens * kOut);
    for (int64_t t = 0; t < kTokens; ++t)
      for (int64_t o = 0; o < kOut; ++o) {
        double sum = 0;
        for (int64_t k = 0; k < kIn; ++k)
          sum += double{numeric::e4m3_to_float(a[t * kIn + k])} *
                 numeric::e4m3_to_float(b[o * kIn + k]);
        y[t * kOut + o] = sum * decode;
      }
    return y;
  }
  void cast(const uint16_t* in, int64_t rows, uint32_t tensor, uint8_t* data, uint8_t* transpose,
            float* inverse, const float* noop) {
    FusedCast c;
    c.rows = rows, c.cols = kIn, c.in = in, c.noop = noop;
    c.out = {data, transpose, state.scale(tensor), inverse, state.amax(tensor)};
    auto done = fused_cast(c, nullptr);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }

  const DeviceScalingState& state;
  const std::vector<uint16_t> weights = test::random_bf16(kOut * kIn, 77);
  DeviceArray<uint16_t> weight{weights};
  DeviceArray<uint8_t> input_fp8{size_t{kTokens * kIn}}, weight_fp8{size_t{kOut * kIn}},
      weight_transpose{size_t{kOut * kIn}};
  DeviceArray<float> input_inv{size_t{1}}, weight_inv{size_t{1}}, flag{size_t{1}};
};

DeviceScalingState fresh_state() {
  DelayedScaling recipe;
  recipe.amax_history_len = 4;
  auto host = make_state(recipe, std::vector(2, Fp8Format::e4m3));
  EXPECT_TRUE(host.ok());
  auto state = DeviceScalingState::create(host.value());
  EXPECT_TRUE(state.ok());
  return state.take();
}

TEST(Microbatches, KeptWeightIsTheWeightCastAnew) {
  DeviceScalingState kept_state = fresh_state(), anew_state = fresh_state();
  Layer kept(kept_state), anew(anew_state);
  for (int step = 0; step < 3; ++step) {
    for (int microbatch = 0; microbatch < 3; ++microbatch) {
      const auto x = test::random_bf16(kTokens * kIn, 100 + 10 * step + microbatch);
      const std::vector<double> a = kept.forward(x, microbatch > 0), b = anew.forward(x, false);
      ASSERT_EQ(a, b) << "step " << step << ", microbatch " << microbatch;
      ASSERT_EQ(kept.weight_fp8.fetch(), anew.weight_fp8.fetch());
      ASSERT_EQ(kept.weight_transpose.fetch(), anew.weight_transpose.fetch());
      ASSERT_EQ(kept.weight_inv.fetch(), anew.weight_inv.fetch());
    }
    ASSERT_TRUE(kept_state.update(nullptr, nullptr).ok());
    ASSERT_TRUE(anew_state.update(nullptr, nullptr).ok());
    ASSERT_EQ(kept_state.download().value(), anew_state.download().value()) << "step " << step;
  }
}

TEST(Microbatches, KeptWeightOutlivesItsScale) {
  DeviceScalingState state = fresh_state();
  Layer layer(state);
  const auto x = test::random_bf16(kTokens * kIn, 5);
  layer.forward(x, false);
  const auto bits = layer.weight_fp8.fetch();
  const float inverse = layer.weight_inv.fetch()[0];
  EXPECT_EQ(inverse, 1.0f);
  ASSERT_TRUE(state.update(nullptr, nullptr).ok());
  const ScalingState before = state.download().value();
  ASSERT_NE(before.scale[kWeight], 1.0f);  // the scale has moved on
  const std::vector<double> y = layer.forward(x, true);
  EXPECT_EQ(layer.weight_fp8.fetch(), bits);
  EXPECT_EQ(layer.weight_inv.fetch()[0], inverse);
  double error = 0, size = 0;
  for (int64_t t = 0; t < kTokens; ++t)
    for (int64_t o = 0; o < kOut; ++o) {
      double sum = 0;
      for (int64_t k = 0; k < kIn; ++k)
        sum += test::bf16(x[t * kIn + k]) * test::bf16(layer.weights[o * kIn + k]);
      error += std::pow(y[t * kOut + o] - sum, 2), size += sum * sum;
    }
  EXPECT_LT(std::sqrt(error / size), 0.07);  // a wrong scale_inv gives more than 1
  // A step without a cast of the weight leaves its column of the history alone.
  ASSERT_TRUE(state.update(nullptr, nullptr).ok());
  const ScalingState after = state.download().value();
  EXPECT_EQ(after.scale[kWeight], before.scale[kWeight]);
  for (uint32_t row = 0; row < after.history_len; ++row)
    EXPECT_EQ(after.history[row * 2 + kWeight], before.history[row * 2 + kWeight]);
  EXPECT_NE(after.history, before.history);
}

}  // namespace
}  // namespace ptxbench::te
