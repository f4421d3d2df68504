// mma.sync against recordings of an H200.
#include "emu/mma.h"

#include <gtest/gtest.h>

#include <cstring>

#include "emu/hw_vectors.h"
#include "emu/isa_recorder.h"
#include "emu/mma_forms.h"

namespace ptxbench::emu {
namespace {

// One recorded case: registers of a warp in, registers out. The number of registers that differ.
size_t replay(const hw::Group& g, const hw::Json& c, size_t* compared) {
  isa::executed(c.at("ptx").get<std::string>());
  MmaForm form = parse_mma(c.at("ptx"));
  form.selector = std::max(c.value("selector", -1), 0);
  Result<void> known = check(form);
  EXPECT_TRUE(known.ok()) << known.error().message;
  const MmaRegisters count = registers_of(form);
  hw::Array a = g.array(c.at("a")), b = g.array(c.at("b")), start = g.array(c.at("c")),
            want = g.array(c.at("d"));
  EXPECT_EQ(a.shape[2], static_cast<size_t>(count.a));
  EXPECT_EQ(b.shape[2], static_cast<size_t>(count.b));
  EXPECT_EQ(want.shape[2], static_cast<size_t>(count.d));
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
      if (form.sparse) f.metadata[l] = static_cast<uint32_t>(g.array(c.at("e")).at(w * 32 + l));
    }
    mma(form, f.operands, plan::TensorMode::hw);
    for (size_t l = 0; l < 32; ++l)
      for (int r = 0; r < count.d; ++r, ++*compared)
        bad += f.get(f.d, r, l) != want.at(at(l, r, count.d));
  }
  return bad;
}

// Fixes the layout of every fragment, and the numbers.
TEST(MmaVectors, RawRegisters) {
  for (auto [name, cases, registers] :
       {std::tuple{"matrix_warp", 61u, 14720u}, std::tuple{"matrix_more", 512u, 123904u}}) {
    const hw::Group& g = hw::group(name);
    size_t compared = 0;
    auto list = g.cases("mma_raw");
    for (const hw::Json& c : list)
      EXPECT_EQ(replay(g, c, &compared), 0u)
          << c.at("ptx") << " " << c.value("fill", "") << " " << c.value("selector", -1);
    EXPECT_EQ(list.size(), cases);
    EXPECT_EQ(compared, registers);
  }
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
