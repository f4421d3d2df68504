// D = (A * SF_A) (B * SF_B)^T of e4m3 with fp32 scales for each 128 of K. The tag "recipe:1d2d"
// gives B a scale for each block of 128x128, "recipe:1d1d" one for each row and 128 of K.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "bench/admit/fp8_gemm_models.h"
#include "bench/op/fp8_gemm_math.h"
#include "bench/op/fp8_quantize.h"
#include "bench/op/operation.h"

namespace ptxbench::bench {
namespace {

int64_t scale_b_rows(const Definition& definition) {
  return has_tag(definition, "recipe:1d2d") ? Fp8Gemm::kBlock : 1;
}

std::span<const float> floats(const Tensor& tensor) {
  return {reinterpret_cast<const float*>(tensor.bytes.data()), tensor.bytes.size() / 4};
}

Fp8Gemm gemm_of(const Problem& p) {
  Fp8Gemm gemm;
  gemm.m = axis_value(p.axes, "m");
  gemm.n = axis_value(p.axes, "n");
  gemm.k = axis_value(p.axes, "k");
  gemm.a = p.inputs[0].bytes;
  gemm.scale_a = floats(p.inputs[1]);
  gemm.b = p.inputs[2].bytes;
  gemm.scale_b = floats(p.inputs[3]);
  gemm.scale_b_rows = scale_b_rows(p.definition);
  return gemm;
}

class Fp8GemmOperation : public Operation {
 public:
  const char* op_type() const override { return "fp8_gemm"; }

  Result<void> check(const Definition& definition) const override {
    PB_RETURN_IF_ERROR(expect_tensors(
        definition, {"A:float8_e4m3fn:2", "SF_A:float32:2", "B:float8_e4m3fn:2", "SF_B:float32:2"},
        {"D:bfloat16:2"}));
    if (has_tag(definition, "recipe:1d2d") == has_tag(definition, "recipe:1d1d"))
      return Error{"bad-task",
                   fmt::format("{}: an fp8_gemm needs one of the tags recipe:1d2d and recipe:1d1d",
                               definition.name)};
    const char* rows_b = scale_b_rows(definition) == 1 ? "n" : "num_nblock";
    const std::vector<std::vector<std::string>> shapes = {
        {"m", "k"}, {"m", "num_kblock"}, {"n", "k"}, {rows_b, "num_kblock"}};
    for (size_t i = 0; i < shapes.size(); ++i)
      if (definition.inputs[i].shape != shapes[i])
        return Error{"bad-task",
                     fmt::format("{}: {} has the shape [{},{}]", definition.name,
                                 definition.inputs[i].name, shapes[i][0], shapes[i][1])};
    // Axes of scales follow from k and n, or --axes could make them differ.
    for (const char* constraint : {"k % 128 == 0", "num_kblock == k // 128"})
      if (std::find(definition.constraints.begin(), definition.constraints.end(), constraint) ==
          definition.constraints.end())
        return Error{"bad-task", fmt::format("{}: an fp8_gemm needs the constraint \"{}\"",
                                             definition.name, constraint)};
    return {};
  }

  double flop(const Definition&, const AxisValues& axes) const override {
    double flop = 2;
    for (const char* axis : {"m", "n", "k"}) flop *= static_cast<double>(axis_value(axes, axis));
    return flop;
  }

  // Matrices of the distribution, quantised.
  Result<std::vector<Tensor>> inputs(const Definition& definition, const AxisValues& axes,
                                     const Seed& seed, int threads,
                                     Distribution distribution) const override {
    std::vector<Tensor> tensors(4);
    for (size_t i = 0; i < tensors.size(); i += 2) {
      TensorSpec spec = definition.inputs[i];
      spec.dtype = "float32";
      PB_ASSIGN_OR_RETURN(Tensor matrix, make_input(spec, axes, i, seed, threads, distribution));
      const int64_t rows = i == 0 ? 1 : scale_b_rows(definition);
      Quantized quantized = quantize_e4m3(matrix, rows, Fp8Gemm::kBlock, threads);
      Tensor &elements = tensors[i], &scales = tensors[i + 1];
      elements.spec = definition.inputs[i];
      elements.type = numeric::DType::float8_e4m3fn;
      elements.shape = matrix.shape;
      elements.bytes = std::move(quantized.elements);
      scales.spec = definition.inputs[i + 1];
      scales.type = numeric::DType::float32;
      PB_ASSIGN_OR_RETURN(scales.shape, resolve_shape(scales.spec, axes));
      scales.bytes.resize(quantized.scales.size() * 4);
      std::memcpy(scales.bytes.data(), quantized.scales.data(), scales.bytes.size());
    }
    return tensors;
  }

  // Rows of A with their scales, and of D.
  Rotation rotation(const Definition&, const AxisValues& axes) const override {
    return {axis_value(axes, "m"), {true, true, false, false, true}};
  }

  Result<void> reference(const Problem& p, int threads, const ReferenceSink& sink) const override {
    return fp8_gemm_fp64(gemm_of(p), threads,
                         [&](int64_t first, int64_t count, std::span<const double> values,
                             std::span<const double> noise) {
                           sink({0, first, count, values, noise});
                         });
  }

  admit::Battery battery(const Definition& definition) const override {
    return admit::fp8_gemm_battery(definition);
  }
};

}  // namespace

const Operation& fp8_gemm_operation() {
  static const Fp8GemmOperation kOperation;
  return kOperation;
}

}  // namespace ptxbench::bench
