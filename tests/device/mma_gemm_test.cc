// Whole kernels of mma.sync, cp.async and ldmatrix, compiled as candidates are, against fp64; and
// one against the wgmma kernel, whose steps are the same arithmetic.
#include <gtest/gtest.h>

#include <cmath>

#include "../../bench/hardware/gemm_bits.h"
#include "device/recorded.h"

namespace ptxbench::device {
namespace {

size_t size(int x, int y) { return static_cast<size_t>(x) * static_cast<size_t>(y); }

float bf16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float f;
  std::memcpy(&f, &wide, 4);
  return f;
}

struct Outcome {
  std::vector<uint16_t> c;
  RunResult result;
};

Result<Outcome> run(const plan::LaunchPlan& plan, const bits::Shape& s, const RunOptions& options) {
  auto a = bits::matrix(size(s.m, s.k), 1), b = bits::matrix(size(s.n, s.k), 2);
  Outcome out{std::vector<uint16_t>(size(s.m, s.n), 0xffff), {}};
  auto bind = [](std::vector<uint16_t>& v, bool input) {
    return Binding{{reinterpret_cast<uint8_t*>(v.data()), v.size() * 2}, input, input};
  };
  std::vector<Binding> arguments{bind(a, true), bind(b, true), bind(out.c, false)};
  PB_ASSIGN_OR_RETURN(out.result, make_emu_device("h200")->replay(plan, arguments, options));
  return out;
}

constexpr char kSource[] = "tests/device/candidates/gemm_mma_sync.cu";

void compare(const std::string& source, int tile_k) {
  for (const bits::Shape& s : {bits::Shape{200, 136, 200}, bits::Shape{70, 256, 96}}) {
    auto plan = record_gemm(source, s.m, s.n, s.k);
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    auto a = bits::matrix(size(s.m, s.k), 1), b = bits::matrix(size(s.n, s.k), 2);
    for (TensorMode mode : {TensorMode::hw, TensorMode::f32, TensorMode::fast}) {
      RunOptions options;
      options.tensor = mode;
      auto out = run(*plan, s, options);
      ASSERT_TRUE(out.ok()) << out.error().to_string();
      EXPECT_EQ(out->result.status, RunStatus::completed) << out->result.message;
      EXPECT_TRUE(out->result.findings.empty()) << out->result.findings[0].message;
      int bad = 0;
      for (int row = 0; row < s.m; ++row)
        for (int column = 0; column < s.n; ++column) {
          double sum = 0, scale = 0;
          for (int k = 0; k < s.k; ++k) {
            const double p = double{bf16(a[size(row, s.k) + static_cast<size_t>(k)])} *
                             bf16(b[size(column, s.k) + static_cast<size_t>(k)]);
            sum += p, scale += std::fabs(p);
          }
          const double got = bf16(out->c[size(row, s.n) + static_cast<size_t>(column)]);
          bad += !(std::fabs(got - sum) <= std::fabs(sum) * 0x1p-8 + scale * 0x1p-20);
        }
      EXPECT_EQ(bad, 0) << s.m << " " << s.n << " " << s.k << " mode " << static_cast<int>(mode);
      // Padding is computed as well, to whole tiles.
      auto up = [](int x, int y) { return (x + y - 1) / y * y; };
      const double flop = 2.0 * up(s.m, 128) * up(s.n, 128) * up(s.k, tile_k);
      bool found = false;
      for (const FamilyCount& f : out->result.families)
        if (f.family == "mma") {
          found = true;
          EXPECT_EQ(f.tensor_flop, flop);
          EXPECT_EQ(static_cast<double>(f.warps) * 4096, flop);
          EXPECT_EQ(f.threads, f.warps * 32);
        }
      EXPECT_TRUE(found);
    }
  }
}

TEST(MmaGemm, AgreesWithFp64OnRaggedShapes) { compare(kSource, 32); }

TEST(MmaGemm, TheSecondExpertAgreesWithFp64) { compare("kernels/sm_80/gemm_bf16_mma.cu", 64); }

// Both kernels add K in steps of 16 in the same order, so on silicon (and here) the bits are equal.
TEST(MmaGemm, EqualsTheWgmmaKernelBitForBit) {
  const bits::Shape s{200, 256, 320};
  auto mma = record_gemm(kSource, s.m, s.n, s.k);
  auto wgmma = record_gemm("kernels/sm_90a/gemm_bf16.cu", s.m, s.n, s.k);
  ASSERT_TRUE(mma.ok()) << mma.error().to_string();
  ASSERT_TRUE(wgmma.ok()) << wgmma.error().to_string();
  for (TensorMode mode : {TensorMode::hw, TensorMode::f32})
    for (int threads : {1, 2}) {
      RunOptions options;
      options.tensor = mode;
      options.threads = threads;
      auto x = run(*mma, s, options), y = run(*wgmma, s, options);
      ASSERT_TRUE(x.ok() && y.ok());
      EXPECT_TRUE(x->c == y->c) << static_cast<int>(mode);
    }
}

}  // namespace
}  // namespace ptxbench::device
