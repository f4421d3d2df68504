// wgmma against a plain model on random and adversarial operands, and levels against each other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "emu/tensor_model.h"
#include "emu/wgmma_forms.h"

namespace ptxbench::emu {
namespace {

using ptx::Type;

struct Trial {
  WgmmaForm form;
  std::vector<std::vector<double>> a, b;  // rows
  std::vector<float> c;                   // [64][n]
  std::vector<uint8_t> shared = std::vector<uint8_t>(64 * 1024);
  Fragments run;

  Trial(const WgmmaForm& f, Fill fill, Generator& g) : form(f) {
    const int bytes = bytes_of(f.a);
    const MatrixDescriptor da{0, 128, 256, 0, 0}, db{4096, 128, 256, 0, 0};
    auto rows = [&](int count, Type t, const MatrixDescriptor& d, bool negated) {
      std::vector<std::vector<double>> out(count, std::vector<double>(f.k));
      for (int i = 0; i < count; ++i)
        for (int k = 0; k < f.k; ++k) {
          const uint32_t x = g.element(bits_of(t), fill);
          out[i][k] = negated ? -value_of(t, x) : value_of(t, x);
          std::memcpy(&shared[element_address(d, false, bytes, i, k)], &x, bytes);
          const int word = k * bytes / 4;
          std::memcpy(reinterpret_cast<uint8_t*>(
                          &run.a[i / 16 % 4][word / 4 * 2 + i / 8 % 2][i % 8 * 4 + word % 4]) +
                          k * bytes % 4,
                      &x, count == 64 ? bytes : 0);
        }
      return out;
    };
    b = rows(f.n, f.b, db, f.negate_b);
    a = rows(64, f.a, da, f.negate_a);
    for (int i = 0; i < 64 * f.n; ++i) {
      const uint32_t x = g.element({23, 8}, fill);
      float v;
      std::memcpy(&v, &x, 4);
      c.push_back(v);
    }
    run.operands.shared = shared.data();
    run.operands.shared_bytes = static_cast<uint32_t>(shared.size());
    run.operands.a_descriptor = 256ull >> 4 << 32 | 128ull >> 4 << 16;
    run.operands.b_descriptor = run.operands.a_descriptor | 4096 >> 4;
  }

  void start() {
    for (int r = 0; r < 64; ++r)
      for (int n = 0; n < form.n; ++n) std::memcpy(&run.at(r, n), &c[r * form.n + n], 4);
  }
};

std::vector<WgmmaForm> forms() {
  std::vector<WgmmaForm> out;
  for (int n : {8, 24, 40, 256}) {
    out.push_back({n, 16, Type::bf16, Type::bf16, Type::f32});
    out.push_back({n, 16, Type::f16, Type::f16, Type::f32});
    out.push_back({n, 8, Type::tf32, Type::tf32, Type::f32});
    out.push_back({n, 32, Type::e4m3, Type::e5m2, Type::f32});
    out.push_back({n, 32, Type::e5m2, Type::e4m3, Type::f32});
  }
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].a_in_registers = i % 2;
    out[i].negate_a = i % 3 == 0;
    out[i].negate_b = i % 5 == 0;
  }
  return out;
}

void compare(plan::TensorMode mode) {
  Generator g;
  const tensor::Levels& levels = tensor::levels();
  for (const WgmmaForm& form : forms())
    for (Fill fill : kFills) {
      if (form.n == 256 && fill != Fill::narrow && fill != Fill::specials) continue;
      ASSERT_TRUE(check(form).ok());
      auto t = std::make_unique<Trial>(form, fill, g);
      const bool scale_d = g.next(4) != 0;
      const uint32_t warps = g.next(2) ? 0xf : g.next(15) + 1;
      t->run.operands.scale_d = scale_d;
      t->run.operands.warps = warps;
      for (int i = 0; i < levels.count; ++i) {
        t->start();
        tensor::wgmma_at(form, t->run.operands, mode, *levels.level[i]);
        int bad = 0;
        for (int r = 0; r < 64; ++r)
          for (int n = 0; n < form.n; ++n) {
            const float c = t->c[r * form.n + n], c0 = scale_d ? c : 0.0f;
            uint32_t want;
            if (!(warps >> (r / 16) & 1))
              std::memcpy(&want, &c, 4);
            else if (mode == plan::TensorMode::hw)
              want = model_hw(form.a, form.b, t->a[r], t->b[n], c0);
            else
              want = model_f32(t->a[r], t->b[n], c0);
            if (t->run.at(r, n) != want && ++bad == 1)
              ADD_FAILURE() << "n " << form.n << " k " << form.k << " types " << int(form.a)
                            << " fill " << int(fill) << " " << levels.level[i]->level << " row "
                            << r << " column " << n << ": " << std::hex << t->run.at(r, n)
                            << " instead of " << want;
          }
        EXPECT_EQ(bad, 0);
      }
    }
}

TEST(WgmmaProperty, HardwareMode) { compare(plan::TensorMode::hw); }

TEST(WgmmaProperty, F32ModeIsTheFixedOrderAtEveryLevel) { compare(plan::TensorMode::f32); }

// The CPU's own dot products round differently; they must stay near the f32 result, and subnormals
// must not vanish.
TEST(WgmmaProperty, FastModeIsClose) {
  Generator g;
  const tensor::Kernels& best = *tensor::levels().level[tensor::levels().count - 1];
  for (Fill fill : {Fill::narrow, Fill::cancelling, Fill::tiny}) {
    auto t = std::make_unique<Trial>(WgmmaForm{64, 16, Type::bf16, Type::bf16, Type::f32}, fill, g);
    if (fill == Fill::tiny)  // against large values of B: products in range, A partly subnormal
      for (auto& x : t->shared)
        x = &x - t->shared.data() >= 4096 ? (&x - t->shared.data()) % 2 ? 0x7e : 0x80 : x;
    t->run.operands.scale_d = false;
    auto fast = std::make_unique<Fragments>();
    fast->operands = t->run.operands;
    for (int w = 0; w < 4; ++w)
      for (int r = 0; r < 128; ++r) fast->operands.d[w][r] = fast->d[w][r];
    tensor::wgmma_at(t->form, t->run.operands, plan::TensorMode::f32, best);
    tensor::wgmma_at(t->form, fast->operands, plan::TensorMode::fast, best);
    for (int r = 0; r < 64; ++r)
      for (int n = 0; n < 64; ++n) {
        float want, got;
        std::memcpy(&want, &t->run.at(r, n), 4);
        std::memcpy(&got, &fast->at(r, n), 4);
        double scale = 0;
        for (int k = 0; k < 16; ++k)
          scale += fill == Fill::tiny ? std::fabs(t->a[r][k]) * 0x1p126
                                      : std::fabs(t->a[r][k] * t->b[n][k]);
        EXPECT_NEAR(got, want, scale * 0x1p-20);
      }
  }
}

TEST(WgmmaProperty, RefusesByName) {
  WgmmaForm good{64, 16, Type::bf16, Type::bf16, Type::f32};
  EXPECT_TRUE(check(good).ok());
  auto refused = [](WgmmaForm f, const char* word) {
    auto r = check(f);
    return !r.ok() && r.error().kind == "unsupported" &&
           r.error().message.find(word) != std::string::npos;
  };
  WgmmaForm f = good;
  f.n = 12;
  EXPECT_TRUE(refused(f, "multiple of 8"));
  f = good, f.k = 8;
  EXPECT_TRUE(refused(f, "K is 8"));
  f = good, f.d = Type::f16;
  EXPECT_TRUE(refused(f, "types"));
  f = {64, 8, Type::tf32, Type::tf32, Type::f32};
  f.b_mn_major = true;
  EXPECT_TRUE(refused(f, "transposed"));
  f = {40, 32, Type::s8, Type::u8, Type::s32};
  EXPECT_TRUE(refused(f, "steps of 16"));
  f = {64, 512, Type::b1, Type::b1, Type::s32};
  f.sparse = true;
  EXPECT_TRUE(refused(f, "b1"));
}

// Descriptors that point past the end of shared memory read zeros instead of the process.
TEST(WgmmaProperty, OutsideSharedMemoryIsZero) {
  Generator g;
  auto t = std::make_unique<Trial>(WgmmaForm{256, 16, Type::bf16, Type::bf16, Type::f32},
                                   Fill::narrow, g);
  for (uint64_t layout : {0ull, 1ull << 62, 2ull << 62, 3ull << 62})
    for (uint32_t bytes : {0u, 100u, 5000u})
      for (bool major : {false, true}) {
        t->form.b_mn_major = t->form.a_mn_major = major;
        t->run.operands.a_descriptor = layout | 0x3fff00003fff3fffull;
        t->run.operands.b_descriptor = layout | 0x0040000000400000ull;
        std::vector<uint8_t> exact(t->shared.begin(),
                                   t->shared.begin() + bytes);  // sanitizers see the end
        t->run.operands.shared = exact.data();
        t->run.operands.shared_bytes = bytes;
        t->run.operands.scale_d = false;
        t->start();
        wgmma(t->form, t->run.operands, plan::TensorMode::hw);
        EXPECT_EQ(t->run.at(63, 255), 0u);  // A lies outside
      }
}

}  // namespace
}  // namespace ptxbench::emu
