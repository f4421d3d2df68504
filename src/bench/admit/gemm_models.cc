#include "bench/admit/gemm_models.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "bench/oracle.h"
#include "emu/tensor_core.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench::admit {
namespace {

using Round = std::function<float(float)>;

// ---- the emulated tensor core as a matrix product ----

constexpr int kStepK = 16, kTileM = 64, kTileN = 128;

// Operands of one step without swizzle: 8x16-byte blocks, the two halves of K side by side.
constexpr uint32_t kBlock = 128, kGroup = 2 * kBlock, kBaseB = kTileM / 8 * kGroup;
uint64_t descriptor(uint32_t address) {
  return uint64_t{kGroup >> 4} << 32 | uint64_t{kBlock >> 4} << 16 | address >> 4;
}

struct Machine {
  alignas(16) uint8_t shared[kBaseB + kTileN / 8 * kGroup];
  uint32_t d[4][128][32];
};

// Rows first.. of `from` at columns k.. as a step's operand; zeros outside.
void load(const Words& from, int64_t rows, int64_t k_total, int64_t first, int64_t k, int count,
          uint8_t* to) {
  for (int r = 0; r < count; ++r)
    for (int half = 0; half < 2; ++half) {
      uint16_t row[8] = {};
      const int64_t at = k + 8 * half;
      if (first + r < rows && at < k_total)
        std::copy_n(&from[static_cast<size_t>((first + r) * k_total + at)],
                    std::min<int64_t>(8, k_total - at), row);
      std::memcpy(to + r / 8 * kGroup + half * kBlock + r % 8 * 16, row, 16);
    }
}

using Chain = std::function<bool(int64_t k)>;  // whether the step that begins at k belongs to it

// out[m,n] += the product over the chain's steps of 16, in order of K in one accumulator.
// `accumulator` f32, or f16 with operands that are fp16 bits.
void tensor_product(const GemmCase& g, const Words& a, const Words& b, const Chain& chain,
                    ptx::Type accumulator, plan::TensorMode mode, float* out) {
  const auto machine = std::make_unique<Machine>();
  const bool half = accumulator == ptx::Type::f16;
  emu::WgmmaForm form;
  form.n = kTileN;
  form.a = form.b = half ? ptx::Type::f16 : ptx::Type::bf16;
  form.d = accumulator;
  emu::WgmmaOperands operands;
  operands.shared = machine->shared;
  operands.shared_bytes = sizeof(machine->shared);
  operands.a_descriptor = descriptor(0);
  operands.b_descriptor = descriptor(kBaseB);
  for (int w = 0; w < 4; ++w)
    for (int r = 0; r < 128; ++r) operands.d[w][r] = machine->d[w][r];
  for (int64_t row = 0; row < g.m; row += kTileM)
    for (int64_t column = 0; column < g.n; column += kTileN) {
      std::memset(machine->d, 0, sizeof(machine->d));
      for (int64_t k = 0; k < g.k; k += kStepK) {
        if (!chain(k)) continue;
        load(a, g.m, g.k, row, k, kTileM, machine->shared);
        load(b, g.n, g.k, column, k, kTileN, machine->shared + kBaseB);
        emu::wgmma(form, operands, mode);
      }
      for (int w = 0; w < 4; ++w)
        for (int r = 0; r < kTileN / 2; ++r)
          for (int lane = 0; lane < 32; ++lane) {
            const int64_t i = row + 16 * w + lane / 4 + 8 * (r / 2 % 2);
            const int64_t j = column + 8 * (r / 4) + 2 * (lane % 4) + r % 2;
            if (i >= g.m || j >= g.n) continue;
            out[i * g.n + j] += half ? numeric::f16_to_float(static_cast<uint16_t>(
                                           machine->d[w][r / 2][lane] >> (r % 2 * 16)))
                                     : std::bit_cast<float>(machine->d[w][r][lane]);
          }
    }
}

Words rounded(const std::vector<float>& sums) {
  Words c(sums.size());
  numeric::bf16_from_float(sums, c);
  return c;
}

bool every_step(int64_t) { return true; }

Words tensor_gemm(const GemmCase& g, plan::TensorMode mode) {
  std::vector<float> sums(g.right.size());
  tensor_product(g, g.a, g.b, every_step, ptx::Type::f32, mode, sums.data());
  return rounded(sums);
}

// Two chains that share each 64 of K, added in fp32: the order of kernels/sm_80/gemm_bf16_mma.cuh.
Words two_slices(const GemmCase& g) {
  std::vector<float> sums(g.right.size());
  for (int slice : {0, 1})
    tensor_product(
        g, g.a, g.b, [slice](int64_t k) { return k / 32 % 2 == slice; }, ptx::Type::f32,
        plan::TensorMode::hw, sums.data());
  return rounded(sums);
}

Words half_accumulation(const GemmCase& g) {
  auto to_half = [](Words words) {
    for (uint16_t& x : words) x = numeric::f16_from_float(numeric::bf16_to_float(x));
    return words;
  };
  std::vector<float> sums(g.right.size());
  // Mode f32 rounds to fp16 once a step, as the tensor core does; bit for bit costs seconds.
  tensor_product(g, to_half(g.a), to_half(g.b), every_step, ptx::Type::f16, plan::TensorMode::f32,
                 sums.data());
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
