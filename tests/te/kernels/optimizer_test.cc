#include "te/kernels/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "te/device_array.h"
#include "te/reference.h"

namespace ptxbench::te {
namespace {

using test::DeviceArray;

uint32_t word(float v) {
  uint32_t u;
  std::memcpy(&u, &v, 4);
  return u;
}
float number(uint32_t u) {
  float v;
  std::memcpy(&v, &u, 4);
  return v;
}

enum class Keep { master, master_and_copy, remainder };

// Several tensors on the device, and their fp64 images.
struct Model {
  Keep keep;
  GradType type;
  std::vector<int64_t> counts;
  std::vector<std::vector<float>> p, m, v, g;
  std::vector<std::unique_ptr<DeviceArray<float>>> master, dm, dv, g32;
  std::vector<std::unique_ptr<DeviceArray<uint16_t>>> param, g16;
  std::vector<std::unique_ptr<DeviceArray<int16_t>>> remainder;
  std::vector<OptimizerTensor> tensors;

  Model(Keep k, GradType t, std::vector<int64_t> sizes, size_t shift = 0)
      : keep(k), type(t), counts(std::move(sizes)) {
    uint64_t stream = 100;
    for (int64_t n : counts) {
      p.push_back(test::random_f32(n, stream++));
      m.push_back(test::random_f32(n, stream++, 0.01f));
      v.push_back(test::random_f32(n, stream++, 0.01f));
      for (float& x : v.back()) x = x * x;
      g.push_back(test::random_f32(n, stream++, 0.1f));
      std::vector<uint16_t> half(n), upper(n);
      std::vector<int16_t> lower(n);
      for (int64_t i = 0; i < n; ++i) {
        half[i] = numeric::bf16_from_float(g.back()[i]);
        if (type == GradType::bf16) g.back()[i] = numeric::bf16_to_float(half[i]);
        upper[i] = static_cast<uint16_t>((word(p.back()[i]) + 0x8000u) >> 16);
        lower[i] = static_cast<int16_t>(word(p.back()[i]) & 0xffff);
      }
      g16.push_back(std::make_unique<DeviceArray<uint16_t>>(half, shift));
      g32.push_back(std::make_unique<DeviceArray<float>>(g.back(), shift));
      master.push_back(std::make_unique<DeviceArray<float>>(p.back(), shift));
      param.push_back(std::make_unique<DeviceArray<uint16_t>>(upper, shift));
      remainder.push_back(std::make_unique<DeviceArray<int16_t>>(lower, shift));
      dm.push_back(std::make_unique<DeviceArray<float>>(m.back(), shift));
      dv.push_back(std::make_unique<DeviceArray<float>>(v.back(), shift));
      OptimizerTensor t;
      t.count = n;
      t.grad =
          type == GradType::bf16 ? static_cast<const void*>(g16.back()->get()) : g32.back()->get();
      t.m = dm.back()->get(), t.v = dv.back()->get();
      if (keep == Keep::remainder)
        t.remainder = remainder.back()->get(), t.param = param.back()->get();
      else
        t.master = master.back()->get();
      if (keep == Keep::master_and_copy) t.param = param.back()->get();
      tensors.push_back(t);
    }
  }

  // The master, however it is kept.
  std::vector<float> fetch_master(size_t k) const {
    if (keep != Keep::remainder) return master[k]->fetch();
    const auto upper = param[k]->fetch();
    const auto lower = remainder[k]->fetch();
    std::vector<float> all(upper.size());
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = number((uint32_t{upper[i]} << 16) + static_cast<uint32_t>(int32_t{lower[i]}));
    return all;
  }
};

void expect_step(Model& model, const AdamW& how, double factor) {
  int64_t compared = 0;
  for (size_t k = 0; k < model.counts.size(); ++k) {
    const auto p = model.fetch_master(k), m = model.dm[k]->fetch(), v = model.dv[k]->fetch();
    const auto copy = model.param[k]->fetch();
    for (int64_t i = 0; i < model.counts[k]; ++i) {
      const double g = model.g[k][i] * factor;
      const double b1 = how.beta1, b2 = how.beta2;
      const double em = b1 * model.m[k][i] + (1 - b1) * g,
                   ev = b2 * model.v[k][i] + (1 - b2) * g * g;
      const double direction = em / (1 - std::pow(b1, how.step)) /
                               (std::sqrt(ev / (1 - std::pow(b2, how.step))) + how.epsilon);
      const double ep = model.p[k][i] - how.lr * (direction + how.weight_decay * model.p[k][i]);
      ASSERT_NEAR(m[i], em, 1e-6 * (std::fabs(model.m[k][i]) + std::fabs(g))) << k << " " << i;
      ASSERT_NEAR(v[i], ev, 1e-6 * ev + 1e-30);
      ASSERT_NEAR(p[i], ep, 1e-6 * (std::fabs(ep) + how.lr * (1 + std::fabs(direction))));
      if (model.keep == Keep::master_and_copy) {
        ASSERT_EQ(copy[i], numeric::bf16_from_float(p[i]));
      }
      ++compared;
      model.p[k][i] = p[i], model.m[k][i] = m[i], model.v[k][i] = v[i];
    }
  }
  EXPECT_GT(compared, 0);
}

const std::vector<int64_t> kCounts = {8192, 1, 5, 20000, 4096 * 3 + 3};

TEST(AdamW, EqualsTheFormula) {
  for (Keep keep : {Keep::master, Keep::master_and_copy, Keep::remainder})
    for (GradType type : {GradType::bf16, GradType::f32})
      for (size_t shift : {0, 1}) {
        Model model(keep, type, kCounts, shift);
        auto tensors = OptimizerTensors::create(model.tensors, type);
        ASSERT_TRUE(tensors.ok()) << tensors.error().message;
        DeviceArray<float> factor(std::vector<float>{0.5f});
        AdamW how;
        for (how.step = 1; how.step <= 2; ++how.step) {
          ASSERT_TRUE(tensors->adamw(how, factor.get(), nullptr, nullptr).ok());
          expect_step(model, how, 0.5);
        }
      }
}

TEST(AdamW, RateAndStepFromDeviceMemory) {
  Model model(Keep::master, GradType::f32, {1000});
  auto tensors = OptimizerTensors::create(model.tensors, GradType::f32);
  DeviceArray<float> lr_step(std::vector<float>{0.25f, 7});
  ASSERT_TRUE(tensors->adamw({}, nullptr, lr_step.get(), nullptr).ok());
  expect_step(model, {.lr = 0.25f, .step = 7}, 1);
}

TEST(AdamW, FactorThatIsNotFiniteChangesNothing) {
  for (float bad : {NAN, INFINITY}) {
    Model model(Keep::master, GradType::bf16, {5000});
    auto tensors = OptimizerTensors::create(model.tensors, GradType::bf16);
    DeviceArray<float> factor(std::vector<float>{bad});
    ASSERT_TRUE(tensors->adamw({}, factor.get(), nullptr, nullptr).ok());
    EXPECT_EQ(model.master[0]->fetch(), model.p[0]);
    EXPECT_EQ(model.dm[0]->fetch(), model.m[0]);
    EXPECT_EQ(model.dv[0]->fetch(), model.v[0]);
  }
}

TEST(GradNorm, NormAndFactor) {
  for (GradType type : {GradType::bf16, GradType::f32})
    for (float max_norm : {1.0f, 1e6f}) {
      Model model(Keep::master, type, kCounts, type == GradType::f32 ? 1 : 0);
      auto tensors = OptimizerTensors::create(model.tensors, type);
      DeviceArray<float> norm(1), factor(1);
      double squares = 0;
      for (const auto& g : model.g)
        for (float x : g) squares += double{x} * x;
      float first = 0;
      for (int run = 0; run < 2; ++run) {
        ASSERT_TRUE(tensors->grad_norm(max_norm, norm.get(), factor.get(), nullptr).ok());
        const float got = norm.fetch()[0];
        EXPECT_NEAR(got, std::sqrt(squares), 1e-6 * std::sqrt(squares));
        EXPECT_NEAR(factor.fetch()[0], std::min(1.0, max_norm / (std::sqrt(squares) + 1e-6)), 1e-6);
        if (run == 1) {
          EXPECT_EQ(got, first);
        }
        first = got;
      }
    }
}

TEST(GradNorm, NanAndInfinityGiveNoFactor) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    Model model(Keep::master, GradType::f32, {9000});
    model.g[0][8500] = bad;
    model.g32[0]->put(model.g[0]);
    auto tensors = OptimizerTensors::create(model.tensors, GradType::f32);
    DeviceArray<float> norm(1), factor(1);
    ASSERT_TRUE(tensors->grad_norm(1, norm.get(), factor.get(), nullptr).ok());
    EXPECT_FALSE(std::isfinite(norm.fetch()[0]));
    EXPECT_TRUE(std::isnan(factor.fetch()[0]));
  }
}

TEST(Optimizer, OneLaunchEach) {
  Model model(Keep::master_and_copy, GradType::bf16, kCounts);
  auto tensors = OptimizerTensors::create(model.tensors, GradType::bf16);
  DeviceArray<float> norm(1), factor(1);
  EXPECT_EQ(test::work_of([&](cudaStream_t s) {
              EXPECT_TRUE(tensors->adamw({}, factor.get(), nullptr, s).ok());
            }),
            test::kOneKernel);
  EXPECT_EQ(test::work_of([&](cudaStream_t s) {
              EXPECT_TRUE(tensors->grad_norm(1, norm.get(), factor.get(), s).ok());
            }),
            test::kOneKernel);
  EXPECT_EQ(tensors->describe(), "5 tensors, 40489 parameters, 8 chunks of 8192");
}

TEST(Optimizer, BadArgumentsAreNamed) {
  Model model(Keep::master, GradType::bf16, {64, 64});
  auto message = [&](auto change) {
    auto tensors = model.tensors;
    change(tensors);
    auto made = OptimizerTensors::create(tensors, GradType::bf16);
    return made.ok() ? std::string("accepted") : made.error().message;
  };
  EXPECT_EQ(message([](auto& t) { t[1].grad = nullptr; }),
            "optimizer: tensor 1: grad is a null pointer");
  EXPECT_EQ(message([](auto& t) { t[1].count = 0; }),
            "optimizer: tensor 1: the tensor is empty (0 x 1)");
  EXPECT_EQ(message([](auto& t) { t.clear(); }), "optimizer: no tensors");
  EXPECT_EQ(message([](auto& t) { t[1].param = reinterpret_cast<uint16_t*>(t[1].m); }),
            "optimizer: tensor 1 and tensor 0 differ in having a bf16 param");
  auto tensors = OptimizerTensors::create(model.tensors, GradType::bf16);
  EXPECT_EQ(tensors->adamw({.beta2 = 1}, nullptr, nullptr, nullptr).error().message,
            "AdamW: beta2 is 1");
  EXPECT_EQ(tensors->adamw({.step = 0}, nullptr, nullptr, nullptr).error().message,
            "AdamW: step is 0");
}

}  // namespace
}  // namespace ptxbench::te
