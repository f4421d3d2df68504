#include "bench/admit/fp8_gemm_models.h"

#include <algorithm>
#include <cmath>

#include "bench/admit/fp8_tensor_core.h"
#include "bench/blas.h"
#include "bench/op/fp8_gemm_math.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench::admit {
namespace {

constexpr int64_t kBlock = Fp8Gemm::kBlock;

// The inputs as numbers, to be altered by cheats.
struct Factors {
  int64_t m = 0, n = 0, k = 0, rows_b = 1;
  std::vector<float> a, scale_a, b, scale_b;
  int64_t blocks() const { return k / kBlock; }
  float scale(int64_t row, int64_t column, int64_t block) const {
    return of_a(row, block) * of_b(column, block);
  }
  float of_a(int64_t row, int64_t block) const {
    return scale_a[static_cast<size_t>(row * blocks() + block)];
  }
  float of_b(int64_t column, int64_t block) const {
    return scale_b[static_cast<size_t>(column / rows_b * blocks() + block)];
  }
};

std::vector<float> floats(const Tensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / numeric::dtype_size(tensor.type));
  numeric::load_elements(tensor.type, tensor.bytes.data(), std::span<float>(values));
  return values;
}

Factors factors_of(const Case& c) {
  return {axis_value(c.axes, "m"), axis_value(c.axes, "n"),
          axis_value(c.axes, "k"), has_tag(c.definition, "recipe:1d2d") ? kBlock : 1,
          floats(c.inputs[0]),     floats(c.inputs[1]),
          floats(c.inputs[2]),     floats(c.inputs[3])};
}

using Outputs = Result<std::vector<Tensor>>;

// ---- honest: blocks summed in a kernel's arithmetic, scaled and added in fp32 ----

using BlockSum = std::function<float(const float* a, const float* b)>;
using Promotion = std::function<float(float sum, float part, float scale_a, float scale_b)>;

Outputs in_blocks(const Case& c, const BlockSum& block_sum, const Promotion& promote) {
  const Factors f = factors_of(c);
  std::vector<double> d(static_cast<size_t>(f.m * f.n));
  for (int64_t row = 0; row < f.m; ++row)
    for (int64_t column = 0; column < f.n; ++column) {
      float sum = 0;
      for (int64_t block = 0; block < f.blocks(); ++block)
        sum = promote(sum,
                      block_sum(&f.a[static_cast<size_t>(row * f.k + block * kBlock)],
                                &f.b[static_cast<size_t>(column * f.k + block * kBlock)]),
                      f.of_a(row, block), f.of_b(column, block));
      d[static_cast<size_t>(row * f.n + column)] = static_cast<double>(sum);
    }
  return std::vector<Tensor>{rounded_output(c, 0, d)};
}

float by_tensor_core(const float* a, const float* b) { return fp8_sum(0, a, b, kBlock); }

float by_fp32(const float* a, const float* b) {
  float sums[8] = {};  // side by side, as registers of a step are
  for (int64_t k = 0; k < kBlock; ++k) sums[k % 8] += a[k] * b[k];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

float by_half(const float* a, const float* b) {
  float sum = 0;
  for (int64_t k = 0; k < kBlock; k += kFp8Step) {
    for (int64_t i = k; i < k + kFp8Step; ++i) sum += a[i] * b[i];
    sum = numeric::f16_to_float(numeric::f16_from_float(sum));
  }
  return sum;
}

float scale_product(float sum, float part, float a, float b) { return std::fma(part, a * b, sum); }
float one_scale_after_the_other(float sum, float part, float a, float b) {
  return sum + part * a * b;
}

// ---- cheats: right but for what was done to the inputs ----

Outputs product(const Case& c, const Factors& f) {
  std::vector<double> a(f.a.size()), b(f.b.size()), d(static_cast<size_t>(f.m * f.n));
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<double>(f.a[i]) *
           f.of_a(static_cast<int64_t>(i) / f.k, static_cast<int64_t>(i) % f.k / kBlock);
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = static_cast<double>(f.b[i]) *
           f.of_b(static_cast<int64_t>(i) / f.k, static_cast<int64_t>(i) % f.k / kBlock);
  PB_RETURN_IF_ERROR(dgemm_nt(f.m, f.n, f.k, a.data(), b.data(), d.data(), 1));
  return std::vector<Tensor>{rounded_output(c, 0, d)};
}

using Alter = std::function<void(Factors&)>;

Implementation altered(const char* name, const char* what, const Alter& alter) {
  return {name, what, [alter](const Case& c) -> Outputs {
            Factors f = factors_of(c);
            alter(f);
            return product(c, f);
          }};
}

// Scales of the next block of K for those of this one.
void rotate_blocks(std::vector<float>& scales, int64_t blocks) {
  for (auto row = scales.begin(); row != scales.end(); row += blocks)
    std::rotate(row, row + 1, row + blocks);
}

void fill_with_mean(std::vector<float>& scales) {
  double sum = 0;
  for (float x : scales) sum += static_cast<double>(x);
  std::fill(scales.begin(), scales.end(),
            static_cast<float>(sum / static_cast<double>(scales.size())));
}

void first_of_the_row(std::vector<float>& scales, int64_t blocks) {
  for (size_t i = 0; i < scales.size(); ++i)
    scales[i] = scales[i / static_cast<size_t>(blocks) * static_cast<size_t>(blocks)];
}

void to_powers_of_2(std::vector<float>& scales) {
  for (float& x : scales) x = std::exp2(std::nearbyint(std::log2(x)));
}

void clear_columns(Factors& f, int64_t begin, int64_t end) {
  for (int64_t row = 0; row < f.m; ++row)
    std::fill(f.a.begin() + row * f.k + begin, f.a.begin() + row * f.k + end, 0.0f);
}

void through_e5m2(std::vector<float>& values) {
  for (float& x : values) x = numeric::e5m2_to_float(numeric::e5m2_from_float(x));
}

// Quantised again with one scale for the whole tensor.
void requantise(std::vector<float>& values, std::vector<float>& scales, int64_t k, int64_t rows) {
  const int64_t blocks = k / kBlock;
  const auto scale_of = [&](size_t i) -> float& {
    const int64_t row = static_cast<int64_t>(i) / k, block = static_cast<int64_t>(i) % k / kBlock;
    return scales[static_cast<size_t>(row / rows * blocks + block)];
  };
  float largest = 0;
  for (size_t i = 0; i < values.size(); ++i)
    largest = std::max(largest, std::abs(values[i] * scale_of(i)));
  const float scale = largest / 448;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = numeric::e4m3_to_float(numeric::e4m3_from_float(values[i] * scale_of(i) / scale));
  std::fill(scales.begin(), scales.end(), scale);
}

std::vector<Implementation> cheats() {
  return {
      altered("scale-a-mean", "one scale for all of A",
              [](Factors& f) { fill_with_mean(f.scale_a); }),
      altered("scale-b-mean", "one scale for all of B",
              [](Factors& f) { fill_with_mean(f.scale_b); }),
      altered("scale-a-next-block", "scales of A one block of K off",
              [](Factors& f) { rotate_blocks(f.scale_a, f.blocks()); }),
      altered("scale-b-next-block", "scales of B one block of K off",
              [](Factors& f) { rotate_blocks(f.scale_b, f.blocks()); }),
      altered("scale-a-first-block", "each row's first scale for the whole row of A",
              [](Factors& f) { first_of_the_row(f.scale_a, f.blocks()); }),
      altered("scale-b-first-block", "the same for B",
              [](Factors& f) { first_of_the_row(f.scale_b, f.blocks()); }),
      altered("power-of-2-scales", "scales rounded to powers of two",
              [](Factors& f) { to_powers_of_2(f.scale_a), to_powers_of_2(f.scale_b); }),
      altered("e5m2-inputs", "elements rounded to e5m2",
              [](Factors& f) { through_e5m2(f.a), through_e5m2(f.b); }),
      altered("requantised", "A and B quantised again with one scale each",
              [](Factors& f) {
                requantise(f.a, f.scale_a, f.k, 1);
                requantise(f.b, f.scale_b, f.k, f.rows_b);
              }),
      altered("k-tail-16", "the last 16 of K left out",
              [](Factors& f) { clear_columns(f, f.k - 16, f.k); }),
      altered("k-tail-128", "the last block of K left out",
              [](Factors& f) { clear_columns(f, f.k - kBlock, f.k); }),
      altered("k-half", "the second half of K left out",
              [](Factors& f) { clear_columns(f, f.k / 2, f.k); }),
      altered("k-first-16", "the first 16 of K left out",
              [](Factors& f) { clear_columns(f, 0, 16); }),
      {"fp16-accumulation", "sums of a block in fp16",
       [](const Case& c) { return in_blocks(c, by_half, scale_product); }},
  };
}

std::optional<AxisValues> reduced(const Definition& definition, const AxisValues& axes) {
  AxisValues result = axes;
  for (auto& [axis, value] : result) {
    if (axis == "m" && value >= 128) value = 64 + value % 64;
    if (axis == "n") value = std::min<int64_t>(value, 192);
  }
  derive_axes(definition, result);
  return result;
}

}  // namespace

Battery fp8_gemm_battery(const Definition&) {
  Battery battery;
  battery.honest = {
      {"wgmma-blocks", "tensor core of sm_90 within a block, product of the scales, sum in fp32",
       [](const Case& c) { return in_blocks(c, by_tensor_core, scale_product); }},
      {"wgmma-blocks-scales-apart", "the same, one scale after the other",
       [](const Case& c) { return in_blocks(c, by_tensor_core, one_scale_after_the_other); }},
      {"fp32-blocks", "fp32 sums of a block, as FP8 mma.sync nearly is",
       [](const Case& c) { return in_blocks(c, by_fp32, scale_product); }},
  };
  battery.cheats = cheats();
  battery.not_applicable = {
      {"e4m3-inputs", "they are e4m3"},
      {"tf32-inputs", "e4m3 is exact in TF32"},
      {"no-promotion", "scales differ from block to block"},
      {"bf16-sum", "over few blocks its error is that of the one rounding to bf16"},
      {"mean-of-v", "attention only"},
      {"last-keys-dropped", "attention only"},
      {"e4m3-p", "attention only"},
  };
  battery.reduce = reduced;
  battery.reduced_how = "K in full, M cut to 64..127 rows, N to 192 columns";
  // Of a long sum of one sign 16 of K are less than the result's rounding.
  battery.shows_cheats = [](Distribution distribution) {
    return distribution != Distribution::one_hot && distribution != Distribution::one_sign;
  };
  return battery;
}

}  // namespace ptxbench::bench::admit
