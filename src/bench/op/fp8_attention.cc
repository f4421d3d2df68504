// Multi-head attention in FP8: Q, K, V e4m3 [B,H,L,D] with one fp32 descale each -> O e4m3, cast as
// it is, and LSE fp32 [B,H,L]. The tag "mask:causal" makes it causal; the scale is 1/sqrt(D).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "bench/admit/fp8_attention_models.h"
#include "bench/gpu/attention_reference.h"
#include "bench/gpu/reference.h"
#include "bench/op/attention_inputs.h"
#include "bench/op/attention_math.h"
#include "bench/op/fp8_quantize.h"
#include "bench/op/in_order.h"
#include "bench/op/operation.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench {
namespace {

// Distance of the smallest e4m3 numbers. P is at most 1 before it is rounded; kernels that scale
// it up to use the whole range do better, but need not.
constexpr double kE4m3Unit = 0x1p-9;
// The tensor core of sm_90 cuts sums of FP8 products at 2^-13 of the largest term, after every 32;
// where all have one sign the cuts add up.
double score_error(int64_t d) { return 0x1p-13 * std::max(1.0, static_cast<double>(d) / 64); }

class Fp8Attention : public Operation {
 public:
  const char* op_type() const override { return "fp8_mha"; }

  Result<void> check(const Definition& definition) const override {
    for (const char* name : {"B", "H", "L", "D"})
      if (std::none_of(definition.axes.begin(), definition.axes.end(),
                       [&](const Axis& axis) { return axis.name == name; }))
        return Error{"bad-task",
                     fmt::format("{}: fp8_mha needs the axes B, H, L and D", definition.name)};
    return expect_tensors(definition,
                          {"Q:float8_e4m3fn:4", "K:float8_e4m3fn:4", "V:float8_e4m3fn:4",
                           "descale_q:float32:4", "descale_k:float32:4", "descale_v:float32:4"},
                          {"O:float8_e4m3fn:4", "LSE:float32:3"});
  }

  double flop(const Definition& definition, const AxisValues& axes) const override {
    const double s = static_cast<double>(axis_value(axes, "L"));
    const double scores = causal(definition) ? s * (s + 1) / 2 : s * s;
    return 4 * static_cast<double>(heads(axes) * axis_value(axes, "D")) * scores;
  }

  OutputView view(const Definition& definition, const AxisValues& axes,
                  size_t index) const override {
    if (index == 1) return {heads(axes), axis_value(axes, "L"), 1};  // a column for each head
    return Operation::view(definition, axes, index);
  }

  // Values of the distribution, quantised with one scale a tensor.
  Result<std::vector<Tensor>> inputs(const Definition& definition, const AxisValues& axes,
                                     const Seed& seed, int threads,
                                     Distribution distribution) const override {
    Definition values = definition;
    values.inputs.resize(3);
    for (TensorSpec& spec : values.inputs) spec.dtype = "float32";
    // Small columns would be zeros in e4m3.
    PB_ASSIGN_OR_RETURN(std::vector<Tensor> made,
                        attention_inputs(values, axes, seed, threads, distribution, false));
    for (size_t i = 0; i < 3; ++i) {
      const int64_t columns = made[i].shape.back();
      const int64_t rows = static_cast<int64_t>(made[i].bytes.size()) / 4 / columns;
      Quantized quantized = quantize_e4m3(made[i], rows, columns, threads);
      made[i].spec = definition.inputs[i];
      made[i].type = numeric::DType::float8_e4m3fn;
      made[i].bytes = std::move(quantized.elements);
      Tensor descale;
      descale.spec = definition.inputs[3 + i];
      descale.type = numeric::DType::float32;
      PB_ASSIGN_OR_RETURN(descale.shape, resolve_shape(descale.spec, axes));
      descale.bytes.resize(4);
      std::memcpy(descale.bytes.data(), quantized.scales.data(), 4);
      made.push_back(std::move(descale));
    }
    return made;
  }

  Rotation rotation(const Definition&, const AxisValues& axes) const override {
    return {heads(axes), {true, true, true, false, false, false, true, true}};
  }

  Result<void> reference(const Problem& p, int threads, const ReferenceSink& sink) const override {
    const int64_t s = axis_value(p.axes, "L"), d = axis_value(p.axes, "D");
    const auto matrix = [&](size_t input, int64_t head) {
      float descale;
      std::memcpy(&descale, p.inputs[3 + input].bytes.data(), 4);
      std::vector<double> values(static_cast<size_t>(s * d));
      numeric::load_elements(p.inputs[input].type, p.inputs[input].bytes.data() + head * s * d,
                             std::span<double>(values));
      for (double& x : values) x *= static_cast<double>(descale);
      return values;
    };
    AttentionHead common;
    common.queries = common.keys = s;
    common.d = common.d_v = d;
    common.scale = 1 / std::sqrt(static_cast<double>(d));
    common.causal = causal(p.definition);
    common.operand_bits = common.output_bits = 4;
    common.operand_unit = common.output_unit = kE4m3Unit;
    common.score_error = score_error(d);
    if (device::Device* device = ReferenceOnDevice::current()) {
      return reference_on(*device, p, common, threads, sink, [&](int64_t head) {
        return std::pair(matrix(0, head), matrix(1, head));
      });
    }
    return in_order<AttentionResult>(
        heads(p.axes), threads,
        [&](int64_t index, int each) {
          AttentionHead head = common;
          const std::vector<double> q = matrix(0, index), k = matrix(1, index),
                                    v = matrix(2, index);
          head.q = q;
          head.k = k;
          head.v = v;
          return attend(head, each);
        },
        [&](int64_t index, const AttentionResult& r) {
          sink({0, index * s, s, r.o, r.o_noise});
          sink({1, index * s, s, r.lse, r.lse_noise});
        });
  }

  admit::Battery battery(const Definition& definition) const override {
    return admit::fp8_attention_battery(definition);
  }

 private:
  // Elements of e4m3 are exact in bf16; the descales go into the factors.
  template <class Matrices>
  static Result<void> reference_on(device::Device& device, const Problem& p,
                                   const AttentionHead& head, int threads,
                                   const ReferenceSink& sink, const Matrices& qk) {
    std::vector<std::vector<uint16_t>> bf16;
    double descale[3];
    for (size_t i = 0; i < 3; ++i) {
      float factor;
      std::memcpy(&factor, p.inputs[3 + i].bytes.data(), 4);
      descale[i] = static_cast<double>(factor);
      bf16.push_back(e4m3_as_bf16(p.inputs[i].bytes));
    }
    AttentionOnDevice problem;
    problem.heads = heads(p.axes), problem.s = head.queries, problem.d = head.d;
    problem.head = head;
    problem.head.scale *= descale[0] * descale[1];
    problem.value_factor = descale[2];
    return attend_on(device, problem, bf16[0], bf16[1], bf16[2], [&](const AttentionHeads& part) {
      const std::vector<double> noise = noise_of_heads(part, head, threads, qk);
      const int64_t row = part.first * head.queries, rows = part.count * head.queries;
      sink({0, row, rows, part.o, part.o_noise});
      sink({1, row, rows, part.lse, noise});
    });
  }
  static std::vector<uint16_t> e4m3_as_bf16(std::span<const uint8_t> bytes) {
    std::array<uint16_t, 256> table;
    for (size_t i = 0; i < table.size(); ++i)
      table[i] = static_cast<uint16_t>(
          std::bit_cast<uint32_t>(numeric::e4m3_to_float(static_cast<uint8_t>(i))) >> 16);
    std::vector<uint16_t> words(bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i) words[i] = table[bytes[i]];
    return words;
  }
  static bool causal(const Definition& definition) { return has_tag(definition, "mask:causal"); }
  static int64_t heads(const AxisValues& axes) {
    return axis_value(axes, "B") * axis_value(axes, "H");
  }
};

}  // namespace

const Operation& fp8_attention_operation() {
  static const Fp8Attention kOperation;
  return kOperation;
}

}  // namespace ptxbench::bench
