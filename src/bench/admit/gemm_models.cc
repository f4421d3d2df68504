#include "bench/admit/gemm_models.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "bench/oracle.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench::admit {
namespace {

using Round = std::function<float(float)>;

Words rounded(const std::vector<float>& sums) {
  Words c(sums.size());
  numeric::bf16_from_float(sums, c);
  return c;
}

TensorProduct product_of(const GemmCase& g) {
  TensorProduct product;
  product.m = g.m;
  product.n = g.n;
  product.k = g.k;
  product.a = g.a;
  product.b = g.b;
  return product;
}

Words tensor_gemm(const GemmCase& g, plan::TensorMode mode) {
  std::vector<float> sums(g.right.size());
  TensorProduct product = product_of(g);
  product.mode = mode;
  accumulate(product, sums.data());
  return rounded(sums);
}

// Two chains that share each 64 of K, added in fp32: the order of kernels/sm_80/gemm_bf16_mma.cuh.
Words two_slices(const GemmCase& g) {
  std::vector<float> sums(g.right.size()), second(g.right.size());
  TensorProduct product = product_of(g);
  product.takes = [](int64_t k) { return k / 32 % 2 == 0; };
  accumulate(product, sums.data());
  product.takes = [](int64_t k) { return k / 32 % 2 == 1; };
  accumulate(product, second.data());
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += second[i];
  return rounded(sums);
}

Words half_accumulation(const GemmCase& g) {
  auto to_half = [](Words words) {
    for (uint16_t& x : words) x = numeric::f16_from_float(numeric::bf16_to_float(x));
    return words;
  };
  const Words a = to_half(g.a), b = to_half(g.b);
  std::vector<float> sums(g.right.size());
  TensorProduct product = product_of(g);
  product.a = a;
  product.b = b;
  product.accumulator = ptx::Type::f16;
  // Mode f32 rounds to fp16 once a step, as the tensor core does; bit for bit costs seconds.
  product.mode = plan::TensorMode::f32;
  accumulate(product, sums.data());
  return rounded(sums);
}

// ---- cheats ----

Words round_all(const std::vector<double>& values) {
  Words c(values.size());
  for (size_t i = 0; i < c.size(); ++i) c[i] = numeric::bf16_from_double(values[i]);
  return c;
}

// The product of altered inputs over part of K in fp64, correctly rounded.
Words product(const GemmCase& g, const Words& a, const Words& b) {
  std::vector<double> c;
  c.reserve(g.right.size());
  // The reference was computed by the same library a moment ago, so it is there.
  const Result<void> done =
      gemm_fp64(a, b, g.m, g.n, g.k, 1, [&](int64_t, int64_t, std::span<const double> block) {
        c.insert(c.end(), block.begin(), block.end());
      });
  c.resize(done.ok() ? g.right.size() : 0);
  return round_all(c);
}

Words altered(Words words, const Round& round) {
  for (uint16_t& x : words) x = numeric::bf16_from_float(round(numeric::bf16_to_float(x)));
  return words;
}

// Columns begin.. of every row of `a` zero.
Words without_k(const GemmCase& g, int64_t begin, int64_t end) {
  Words a = g.a;
  for (int64_t i = 0; i < g.m; ++i)
    std::fill(a.begin() + i * g.k + std::max<int64_t>(begin, 0), a.begin() + i * g.k + end,
              uint16_t{0});
  return product(g, a, g.b);
}

float through_e4m3(float x) { return numeric::e4m3_to_float(numeric::e4m3_from_float(x)); }
float through_e5m2(float x) { return numeric::e5m2_to_float(numeric::e5m2_from_float(x)); }

// e4m3 with the largest value of the tensor at the largest of the format.
Words through_scaled_e4m3(const Words& words) {
  float largest = 0;
  for (uint16_t x : words) largest = std::max(largest, std::abs(numeric::bf16_to_float(x)));
  const float scale = largest > 0 ? 448 / largest : 1;
  return altered(words, [&](float x) { return through_e4m3(x * scale) / scale; });
}

Words through_half(const GemmCase& g) {
  Words c(g.right.size());
  for (size_t i = 0; i < c.size(); ++i)
    c[i] = numeric::bf16_from_float(numeric::f16_to_float(numeric::f16_from_double(g.right[i])));
  return c;
}

Words toward_zero(const GemmCase& g) {
  Words c(g.right.size());
  for (size_t i = 0; i < c.size(); ++i)
    c[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(g.right[i])) >> 16);
  return c;
}

std::vector<GemmModel> cheats() {
  auto tail = [](int64_t length) {
    return [length](const GemmCase& g) { return without_k(g, g.k - std::min(g.k, length), g.k); };
  };
  return {
      {"k-tail-8", "the last 8 of K left out", tail(8)},
      {"k-tail-16", "the last 16 of K left out", tail(16)},
      {"k-tail-64", "the last 64 of K left out", tail(64)},
      {"k-tail-quarter", "", [](auto& g) { return without_k(g, g.k - g.k / 4, g.k); }},
      {"k-half", "the second half of K left out",
       [](auto& g) { return without_k(g, g.k / 2, g.k); }},
      {"k-first-16", "the first 16 of K left out",
       [](auto& g) { return without_k(g, 0, std::min<int64_t>(g.k, 16)); }},
      {"e4m3-inputs", "A and B rounded to e4m3",
       [](auto& g) { return product(g, altered(g.a, through_e4m3), altered(g.b, through_e4m3)); }},
      {"e4m3-scaled-inputs", "the same, scaled to the range of the format",
       [](auto& g) { return product(g, through_scaled_e4m3(g.a), through_scaled_e4m3(g.b)); }},
      {"e4m3-b", "B alone rounded to e4m3",
       [](auto& g) { return product(g, g.a, altered(g.b, through_e4m3)); }},
      {"e5m2-inputs", "A and B rounded to e5m2",
       [](auto& g) { return product(g, altered(g.a, through_e5m2), altered(g.b, through_e5m2)); }},
      {"fp16-accumulation", "fp16 accumulators of an emulated tensor core", half_accumulation},
      {"rounded-through-fp16", "the result rounded to fp16, then to bf16", through_half},
      {"rounded-toward-zero", "the result truncated to bf16", toward_zero},
  };
}

Implementation implementation(const GemmModel& model) {
  return {model.name, model.what,
          [compute = model.compute](const Case& c) -> Result<std::vector<Tensor>> {
            const Words words = compute(gemm_case(c));
            std::vector<Tensor> outputs = c.outputs;
            std::memcpy(outputs[0].bytes.data(), words.data(), outputs[0].bytes.size());
            return outputs;
          }};
}

constexpr int64_t kRows = 64, kColumns = 64;  // of a reduced size

std::optional<AxisValues> reduced(const Definition&, const AxisValues& axes) {
  AxisValues result = axes;
  for (auto& [axis, value] : result) {
    if (axis == "M" && value >= 2 * kRows) value = kRows + value % kRows;
    if (axis == "N") value = std::min(value, kColumns);
  }
  return result;
}

}  // namespace

GemmCase gemm_case(const Case& c) {
  auto words = [](const Tensor& tensor) {
    Words w(tensor.bytes.size() / 2);
    std::memcpy(w.data(), tensor.bytes.data(), tensor.bytes.size());
    return w;
  };
  return {axis_value(c.axes, "M"),
          axis_value(c.axes, "N"),
          axis_value(c.axes, "K"),
          c.poison,
          words(c.inputs[0]),
          words(c.inputs[1]),
          c.right[0]};
}

const std::vector<GemmModel>& honest_gemms() {
  static const std::vector<GemmModel> kAll = {
      {"wgmma-one-chain",
       "emulated H200 tensor core, one accumulator over K: the order of the sm_90a kernel",
       [](auto& g) { return tensor_gemm(g, plan::TensorMode::hw); }},
      {"mma-two-slices",
       "emulated H200 tensor core, two accumulators that share each K step of 64: the order of "
       "the mma.sync kernel",
       two_slices},
      {"fp32-chain", "fp32 fused multiply-adds in K order (emulator's mode f32)",
       [](auto& g) { return tensor_gemm(g, plan::TensorMode::f32); }},
  };
  return kAll;
}

Battery gemm_battery() {
  Battery battery;
  for (const GemmModel& model : honest_gemms()) battery.honest.push_back(implementation(model));
  for (const GemmModel& model : cheats()) battery.cheats.push_back(implementation(model));
  battery.not_applicable = {
      {"tf32-inputs", "bf16 inputs are exact in TF32"},
      {"mean-of-v", "attention only"},
      {"last-keys-dropped", "attention only"},
      {"e4m3-p", "attention only"},
  };
  battery.reduce = reduced;
  battery.reduced_how = "K in full, M cut to 64..127 rows, N to 64 columns";
  battery.shows_cheats = [](Distribution distribution) {
    return distribution != Distribution::integers && distribution != Distribution::one_hot;
  };
  battery.sensitivity = [](const Case& one, const Case& other, const Calibration& calibration) {
    const double tolerance = calibration.tile_rel_frobenius_factor *
                             honest_error(calibration, axis_value(one.axes, "K")).rel_frobenius;
    return gemm_sensitivity(gemm_case(one), gemm_case(other), tolerance);
  };
  return battery;
}

}  // namespace ptxbench::bench::admit
