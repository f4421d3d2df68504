// FP8 GEMM tasks: the oracle against a second formulation, quantisation, axes that follow from
// others, honest kernels' arithmetic accepted, the usual faults not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "bench/op/fp8_gemm_math.h"
#include "bench/op/fp8_quantize.h"
#include "judge_models.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench {
namespace {

constexpr Seed kSeed = {21, 22};

std::vector<float> to_floats(const Tensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / numeric::dtype_size(tensor.type));
  numeric::load_elements(tensor.type, tensor.bytes.data(), std::span<float>(values));
  return values;
}

// ---- the oracle ----

// Multiplies what the quantised matrices stand for, element by element.
TEST(Fp8GemmOracle, IsTheProductOfTheDequantisedMatrices) {
  for (const int64_t scale_b_rows : {128, 1}) {
    Fp8Gemm gemm;
    gemm.m = 37, gemm.n = 200, gemm.k = 384, gemm.scale_b_rows = scale_b_rows;
    std::vector<uint8_t> a(static_cast<size_t>(gemm.m * gemm.k)),
        b(static_cast<size_t>(gemm.n * gemm.k));
    uint64_t state = 9;
    const auto next = [&] { return (state = state * 6364136223846793005u + 1) >> 33; };
    for (auto* x : {&a, &b})
      for (uint8_t& v : *x)
        if (v = static_cast<uint8_t>(next()); (v & 0x7f) == 0x7f) v = 0;  // NaN
    std::vector<float> scale_a(static_cast<size_t>(gemm.m * 3)),
        scale_b(static_cast<size_t>((gemm.n + scale_b_rows - 1) / scale_b_rows * 3));
    for (auto* x : {&scale_a, &scale_b})
      for (float& v : *x) v = static_cast<float>(next() % 1000 + 1) / 7;
    gemm.a = a, gemm.b = b, gemm.scale_a = scale_a, gemm.scale_b = scale_b;
    int64_t rows = 0;
    ASSERT_TRUE(fp8_gemm_fp64(
                    gemm, kModelThreads,
                    [&](int64_t first, int64_t count, std::span<const double> values,
                        std::span<const double> noise) {
                      ASSERT_EQ(first, rows);
                      ASSERT_EQ(first % 16, 0);
                      rows += count;
                      for (int64_t i = 0; i < count * gemm.n; ++i) {
                        const int64_t r = first + i / gemm.n, c = i % gemm.n;
                        long double sum = 0, size = 0;
                        for (int64_t k = 0; k < gemm.k; ++k) {
                          const long double x =
                              static_cast<long double>(numeric::e4m3_to_float(a[r * gemm.k + k])) *
                              scale_a[r * 3 + k / 128];
                          const long double y =
                              static_cast<long double>(numeric::e4m3_to_float(b[c * gemm.k + k])) *
                              scale_b[c / scale_b_rows * 3 + k / 128];
                          sum += x * y;
                          size += std::abs(x * y);
                        }
                        ASSERT_NEAR(values[i], static_cast<double>(sum),
                                    1e-13 * static_cast<double>(size));
                        ASSERT_GT(noise[i], 0);
                      }
                    })
                    .ok());
    EXPECT_EQ(rows, gemm.m);
  }
}

TEST(Fp8Quantize, LargestOfABlockBecomes448) {
  Tensor values;
  values.shape = {3, 200};
  std::vector<float> x(600);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * (i < 200 ? 1 : 50);
  x[400] = 0;
  for (size_t i = 401; i < 600; ++i) x[i] = 0;  // a row of zeros
  values.bytes.resize(x.size() * 4);
  std::memcpy(values.bytes.data(), x.data(), values.bytes.size());
  for (const int64_t block_rows : {1, 2}) {
    const Quantized q = quantize_e4m3(values, block_rows, 128, kModelThreads);
    ASSERT_EQ(q.scales.size(), static_cast<size_t>((3 + block_rows - 1) / block_rows * 2));
    std::vector<float> largest(q.scales.size(), 0.0f);
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t block = i / 200 / block_rows * 2 + i % 200 / 128;
      const float got = numeric::e4m3_to_float(q.elements[i]);
      largest[block] = std::max(largest[block], std::abs(got));
      // Half a unit in the last place of 4 significant bits, or of the subnormals.
      EXPECT_NEAR(got * q.scales[block], x[i],
                  std::max(std::abs(x[i]) / 16, q.scales[block] * 0x1p-10f) * 1.001f);
    }
    for (size_t i = 0; i + 2 < largest.size(); ++i) EXPECT_EQ(largest[i], 448) << i;
    for (float scale : q.scales) EXPECT_GT(scale, 0);
  }
}

// ---- definitions ----

TEST(Fp8GemmTasks, PublishedSizesAreThere) {
  const auto folder = std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tasks";
  const TaskSuite suite = TaskSuite::open(folder).take();
  std::ifstream csv(folder / "fp8_gemm_published.csv");
  std::string line;
  std::getline(csv, line);
  int rows = 0;
  for (; std::getline(csv, line); ++rows) {
    const size_t first = line.find(','), second = line.find(',', first + 1);
    const std::string name = line.substr(0, first);
    const Task task = suite.load(name).take();
    const Workload* workload = task.find_workload(line.substr(first + 1, second - first - 1));
    ASSERT_NE(workload, nullptr) << line;
    const AxisValues axes = resolve_axes(task.definition, workload, {}).take();
    const double n = std::stod(name.substr(name.rfind("_n") + 2)),
                 k = std::stod(name.substr(name.rfind("_k") + 2));
    EXPECT_EQ(task_flop(task.definition, axes).take(), 2 * 4096 * n * k);
    const bool blocks = name.find("1d2d") != std::string::npos;
    EXPECT_EQ(task_bytes(task.definition, axes).take(), 4096 * k + n * k + 4 * 4096 * k / 128 +
                                                            4 * n / (blocks ? 128 : 1) * k / 128 +
                                                            2 * 4096 * n);
    EXPECT_EQ(task.requirements.compute_type, "e4m3.e4m3.f32");
  }
  EXPECT_EQ(rows, 10);
}

TEST(Fp8GemmTasks, AxesOfScalesFollow) {
  const Task task = load_task("fp8_gemm_nt_1d2d_n4096_k7168");
  const auto resolve = [&](const char* text) {
    return resolve_axes(task.definition, nullptr, parse_axes(text).take());
  };
  const AxisValues axes = resolve("m=5,n=200,k=512").take();
  EXPECT_EQ(axis_value(axes, "num_nblock"), 2);
  EXPECT_EQ(axis_value(axes, "num_kblock"), 4);
  EXPECT_TRUE(resolve("m=5,k=512,num_kblock=4").ok());
  for (const char* text :
       {"m=5,k=512,num_kblock=5", "m=5,num_nblock=3", "m=5,k=500", "m=5,k=100"}) {
    const auto wrong = resolve(text);
    ASSERT_FALSE(wrong.ok()) << text;
    EXPECT_EQ(wrong.error().kind, "usage");
  }
}

TEST(Fp8GemmTasks, OtherShapesAreRefused) {
  Definition definition = load_task("fp8_gemm_nt_1d2d_n4096_k7168").definition;
  ASSERT_TRUE(operation_of(definition).ok());
  const Definition good = definition;
  definition.inputs[3].shape = {"n", "num_kblock"};
  EXPECT_FALSE(operation_of(definition).ok());
  definition = good;
  definition.tags.push_back("recipe:1d1d");
  EXPECT_FALSE(operation_of(definition).ok());
  definition = good;
  definition.constraints.clear();
  EXPECT_FALSE(operation_of(definition).ok());
}

// ---- verdicts on values: a kernel's arithmetic on the host ----

struct Arithmetic {
  const char* name = "";
  enum class Sum { chain, tensor_core, f16 } sum = Sum::chain;
  bool ignore_a = false, ignore_b = false, next_block_a = false, next_block_b = false,
       next_rows_b = false, swapped = false, last_block_dropped = false, as_e5m2 = false,
       power_of_2_scales = false, first_scales_only = false, requantised = false;
};

// A step of the tensor core of sm_90: products and accumulator cut at 2^-13 of the largest, their
// sum to 14 significant bits.
float tensor_core_step(float accumulator, std::span<const float> products) {
  double largest = std::abs(static_cast<double>(accumulator));
  for (float p : products) largest = std::max(largest, std::abs(static_cast<double>(p)));
  if (largest == 0) return 0;
  const double unit = std::ldexp(1.0, std::ilogb(largest) - 13);
  double sum = std::trunc(accumulator / unit);
  for (float p : products) sum += std::trunc(p / unit);
  sum *= unit;
  if (sum == 0) return 0;
  const double last = std::ldexp(1.0, std::ilogb(sum) - 13);
  return static_cast<float>(std::trunc(sum / last) * last);
}

float block_sum(const Arithmetic& arithmetic, std::span<const float> products) {
  float sum = 0;
  for (size_t i = 0; i < products.size(); i += 32) {
    const auto step = products.subspan(i, 32);
    if (arithmetic.sum == Arithmetic::Sum::tensor_core) {
      sum = tensor_core_step(sum, step);
      continue;
    }
    for (float p : step) sum += p;
    if (arithmetic.sum == Arithmetic::Sum::f16)
      sum = numeric::f16_to_float(numeric::f16_from_float(sum));
  }
  return sum;
}

std::vector<Tensor> multiply(const Problem& p, const Arithmetic& f) {
  std::vector<Tensor> out = make_outputs(p.definition, p.axes, 0).take();
  const int64_t m = axis_value(p.axes, "m"), n = axis_value(p.axes, "n"),
                k = axis_value(p.axes, "k"), blocks = k / 128;
  const int64_t rows_b = has_tag(p.definition, "recipe:1d2d") ? 128 : 1;
  std::vector<std::vector<float>> in;
  for (const Tensor& tensor : p.inputs) in.push_back(to_floats(tensor));
  if (f.as_e5m2)
    for (size_t i = 0; i < in[0].size(); ++i)
      in[0][i] = numeric::e5m2_to_float(p.inputs[0].bytes[i]);
  if (f.requantised)
    for (size_t i = 0; i < in[0].size(); ++i)  // as if one more cast to e4m3 lay between
      in[0][i] = numeric::e4m3_to_float(numeric::e4m3_from_float(in[0][i] * 0.7f)) / 0.7f;
  const auto scale = [&](float s) {
    return f.power_of_2_scales ? std::ldexp(1.0f, std::ilogb(s)) : s;
  };
  const auto at = [](const std::vector<float>& x, int64_t i) {
    return x[static_cast<size_t>(i) % x.size()];
  };
  std::vector<float> products(128);
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < n; ++c) {
      float d = 0;
      for (int64_t b = 0; b < blocks - f.last_block_dropped; ++b) {
        for (int64_t i = 0; i < 128; ++i)
          products[i] = in[0][r * k + b * 128 + i] * in[2][c * k + b * 128 + i];
        const int64_t block_a = f.first_scales_only ? 0 : b + f.next_block_a;
        const int64_t block_b = f.first_scales_only ? 0 : b + f.next_block_b;
        const int64_t row_b = c / rows_b + f.next_rows_b;
        float scale_a = at(in[1], r * blocks + block_a),
              scale_b = at(in[3], row_b * blocks + block_b);
        if (f.swapped)
          scale_a = at(in[3], r / rows_b * blocks + b), scale_b = at(in[1], c * blocks + b);
        d = std::fma(
            block_sum(f, products),
            (f.ignore_a ? 3.4f / 448 : scale(scale_a)) * (f.ignore_b ? 3.4f / 448 : scale(scale_b)),
            d);
      }
      numeric::store_element(out[0].type, d, out[0].bytes.data() + (r * n + c) * 2);
    }
  return out;
}

Correctness outcome(const char* task_name, const char* axes_text, Distribution distribution,
                    const Arithmetic& arithmetic) {
  const Task task = load_task(task_name);
  const AxisValues axes =
      resolve_axes(task.definition, nullptr, parse_axes(axes_text).take()).take();
  return judge_model(task, axes, kSeed, distribution,
                     [&](const Problem& p) { return multiply(p, arithmetic); })[0];
}

TEST(Fp8GemmVerdicts, HonestArithmeticPassesOnEveryDistribution) {
  const Arithmetic honest[] = {{.name = "fp32"},
                               {.name = "tensor core", .sum = Arithmetic::Sum::tensor_core}};
  for (const char* task : {"fp8_gemm_nt_1d2d_n4096_k7168", "fp8_gemm_nt_1d1d_n4096_k7168"})
    for (const char* axes : {"m=70,n=130,k=512", "m=20,n=48,k=4096"})
      for (int i = 0; i < kDistributions; ++i)
        for (const Arithmetic& arithmetic : honest) {
          const auto distribution = static_cast<Distribution>(i);
          const Correctness c = outcome(task, axes, distribution, arithmetic);
          EXPECT_TRUE(c.passed) << task << " " << axes << " " << name(distribution) << " "
                                << arithmetic.name << ": " << c.why;
          // The unit must not be far too large, either. Single ones pick elements that bf16 holds.
          EXPECT_TRUE(distribution == Distribution::one_hot || c.noise_ratio > 0.4)
              << axes << " " << name(distribution) << " " << arithmetic.name << " "
              << c.noise_ratio;
        }
}

TEST(Fp8GemmVerdicts, FaultsFail) {
  const Arithmetic faults[] = {
      {.name = "scales of A ignored", .ignore_a = true},
      {.name = "scales of B ignored", .ignore_b = true},
      {.name = "scale of A of the next block", .next_block_a = true},
      {.name = "scale of B of the next block", .next_block_b = true},
      {.name = "scale of B of the next rows", .next_rows_b = true},
      {.name = "scales swapped", .swapped = true},
      {.name = "last block dropped", .last_block_dropped = true},
      {.name = "A read as e5m2", .as_e5m2 = true},
      {.name = "scales rounded to powers of two", .power_of_2_scales = true},
      {.name = "one scale a row", .first_scales_only = true},
      {.name = "A cast once more", .requantised = true},
      {.name = "sums of a block in f16", .sum = Arithmetic::Sum::f16}};
  for (const char* task : {"fp8_gemm_nt_1d2d_n4096_k7168", "fp8_gemm_nt_1d1d_n4096_k7168"})
    for (const Arithmetic& fault : faults)
      for (Distribution distribution :
           {Distribution::mixed, Distribution::normal, Distribution::spiky}) {
        const Correctness c = outcome(task, "m=70,n=260,k=512", distribution, fault);
        EXPECT_FALSE(c.passed) << task << " " << fault.name << " on " << name(distribution) << " "
                               << c.noise_ratio;
      }
}

}  // namespace
}  // namespace ptxbench::bench
