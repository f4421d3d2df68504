// mma.sync against recordings of an H200.
#include "emu/mma.h"

#include <gtest/gtest.h>

#include <cstring>

#include "emu/hw_vectors.h"
#include "emu/mma_forms.h"

namespace ptxbench::emu {
namespace {

// Raw registers in, raw registers out: fixes the layout of every fragment, and the numbers.
TEST(MmaVectors, RawRegisters) {
  const hw::Group& g = hw::group("matrix_warp");
  auto cases = g.cases("mma_raw");
  size_t compared = 0;
  for (const hw::Json& c : cases) {
    const std::string ptx = c.at("ptx");
    const MmaForm form = parse_mma(ptx);
    ASSERT_TRUE(check(form).ok()) << check(form).error().message;
    const MmaRegisters count = registers_of(form);
    hw::Array a = g.array(c.at("a")), b = g.array(c.at("b")), start = g.array(c.at("c")),
              want = g.array(c.at("d"));
    ASSERT_EQ(a.shape[2], static_cast<size_t>(count.a)) << ptx;
    ASSERT_EQ(b.shape[2], static_cast<size_t>(count.b)) << ptx;
    ASSERT_EQ(want.shape[2], static_cast<size_t>(count.d)) << ptx;
    WarpFragments f(form);
    size_t bad = 0;
    for (size_t w = 0; w < a.shape[0]; ++w) {
      auto at = [&](size_t l, int r, int registers) {
        return (w * 32 + l) * static_cast<size_t>(registers) + static_cast<size_t>(r);
      };
      for (size_t l = 0; l < 32; ++l) {
        for (int r = 0; r < count.a; ++r) f.set(f.a, r, l, a.at(at(l, r, count.a)));
        for (int r = 0; r < count.b; ++r) f.set(f.b, r, l, b.at(at(l, r, count.b)));
        for (int r = 0; r < count.c; ++r) f.set(f.c, r, l, start.at(at(l, r, count.c)));
      }
      mma(form, f.operands, plan::TensorMode::hw);
      for (size_t l = 0; l < 32; ++l)
        for (int r = 0; r < count.d; ++r, ++compared)
          bad += f.get(f.d, r, l) != want.at(at(l, r, count.d));
    }
    EXPECT_EQ(bad, 0u) << ptx << " " << c.value("fill", "");
  }
  EXPECT_EQ(cases.size(), 61u);
  EXPECT_EQ(compared, 14720u);
}

// Accumulation experiments: alignment, position in K, accumulators, NaNs, subnormals.
TEST(MmaVectors, Numerics) {
  const hw::Group& g = hw::group("matrix_warp");
  const tensor::Levels& levels = tensor::levels();
  size_t compared = 0;
  for (const hw::Json& c : g.cases("mma_numerics")) {
    const MmaForm form = parse_mma(c.at("ptx"));
    hw::Array a = g.array(c.at("a")), b = g.array(c.at("b")), start = g.array(c.at("c")),
              want = g.array(c.at("d"));
    size_t bad = 0;
    for (int tile = 0; tile < 4; ++tile) {
      WarpFragments f(form);
      f.fill([&](int row, int k) { return a.at((tile * 16 + row) * form.k + k); },
             [&](int k, int n) { return b.at(k * 8 + n); },
             [&](int row, int n) { return start.at((tile * 16 + row) * 8 + n); });
      for (int i = 0; i < levels.count; ++i) {
        tensor::mma_at(form, f.operands, plan::TensorMode::hw, *levels.level[i]);
        for (int row = 0; row < 16; ++row)
          for (int n = 0; n < 8; ++n, ++compared)
            bad += f.result(row, n) != want.at((tile * 16 + row) * 8 + n);
      }
    }
    EXPECT_EQ(bad, 0u) << c.at("name") << " " << c.at("ptx");
  }
  EXPECT_EQ(compared, 73728u * levels.count);
}

}  // namespace
}  // namespace ptxbench::emu
