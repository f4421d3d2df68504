#pragma once
// Small GEMMs in plain loops, honest and dishonest, for the comparator's tests.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "bench/compare.h"
#include "bench/inputs.h"
#include "bench/oracle.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench {

struct Gemm {
  int64_t m, n, k;
  std::vector<uint16_t> a, b;
};

inline Definition gemm_definition() {
  Definition d;
  d.name = "gemm_test";
  d.op_type = "gemm";
  d.axes = {{"M", false, 0, ""}, {"N", true, 96, ""}, {"K", true, 512, ""}};
  d.inputs = {{"A", {"M", "K"}, "bfloat16"}, {"B", {"N", "K"}, "bfloat16"}};
  d.outputs = {{"C", {"M", "N"}, "bfloat16"}};
  return d;
}

inline Calibration gemm_calibration() {
  Calibration c;
  c.kind = "single-reduction";
  c.reduction_axis = "K";
  c.misround = 0.02;
  c.tile_misround = 0.08;
  c.honest = {{2048, 0.00177, 0.00121, 0.0156}, {14336, 0.00202, 0.00429, 0.0273}};
  return c;
}

inline std::vector<uint16_t> words_of(const Tensor& tensor) {
  std::vector<uint16_t> words(tensor.bytes.size() / 2);
  std::memcpy(words.data(), tensor.bytes.data(), tensor.bytes.size());
  return words;
}

inline Gemm make_gemm(int64_t m, int64_t n, int64_t k, uint64_t seed, float scale = 1) {
  auto inputs =
      make_inputs(gemm_definition(), {{"M", m}, {"N", n}, {"K", k}}, Seed{seed, ~seed}, 1).take();
  Gemm gemm{m, n, k, words_of(inputs[0]), words_of(inputs[1])};
  for (auto* matrix : {&gemm.a, &gemm.b})
    for (uint16_t& x : *matrix) x = numeric::bf16_from_float(scale * numeric::bf16_to_float(x));
  return gemm;
}

// C by a loop over K of `multiply_add`, rounded once to bf16. `rounding` alters each input first.
using Round = std::function<float(float)>;
inline std::vector<uint16_t> multiply(const Gemm& g, int64_t k_end, const Round& input,
                                      const Round& accumulator) {
  std::vector<float> a(g.a.size()), b(g.b.size());
  for (size_t i = 0; i < a.size(); ++i) a[i] = numeric::bf16_to_float(g.a[i]);
  for (size_t i = 0; i < b.size(); ++i) b[i] = numeric::bf16_to_float(g.b[i]);
  if (input) {
    for (float& x : a) x = input(x);
    for (float& x : b) x = input(x);
  }
  std::vector<uint16_t> c(static_cast<size_t>(g.m * g.n));
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      float sum = 0;
      for (int64_t x = 0; x < k_end; ++x) {
        sum += a[static_cast<size_t>(i * g.k + x)] * b[static_cast<size_t>(j * g.k + x)];
        if (accumulator) sum = accumulator(sum);
      }
      c[static_cast<size_t>(i * g.n + j)] = numeric::bf16_from_float(sum);
    }
  return c;
}
inline std::vector<uint16_t> honest(const Gemm& g) { return multiply(g, g.k, nullptr, nullptr); }

constexpr uint16_t kPoison = 0x7f91;

inline Correctness judge(const Gemm& g, const std::vector<uint16_t>& c, int threads = 1,
                         std::vector<uint64_t>* bad_tiles = nullptr) {
  Comparator comparator(c, g.m, g.n, kPoison);
  const Result<void> reference =
      gemm_fp64(g.a, g.b, g.m, g.n, g.k, threads,
                [&](int64_t first, int64_t count, std::span<const double> block) {
                  comparator.add_block(first, count, block, threads);
                });
  EXPECT_TRUE(reference.ok());
  Correctness result = comparator.finish();
  decide(gemm_calibration(), g.k, result);
  const std::vector<uint64_t> bad = comparator.locate(result);
  if (bad_tiles != nullptr) *bad_tiles = bad;
  return result;
}

}  // namespace ptxbench::bench
