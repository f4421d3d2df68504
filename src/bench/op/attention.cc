// Multi-head attention, Q, K, V [B,H,S,D] -> O [B,H,S,D], LSE [B,H,S], and its gradient. The tag
// "mask:causal" makes it causal; the scale is 1/sqrt(D).
#include <fmt/format.h>

#include <cmath>

#include "bench/admit/attention_models.h"
#include "bench/gpu/attention_reference.h"
#include "bench/gpu/reference.h"
#include "bench/op/attention_inputs.h"
#include "bench/op/attention_math.h"
#include "bench/op/in_order.h"
#include "bench/op/operation.h"
#include "bench/pattern/attention.h"

namespace ptxbench::bench {
namespace {

struct Sizes {
  int64_t heads = 0, s = 0, d = 0;  // heads of all batches
  bool causal = false;
  size_t matrix() const { return static_cast<size_t>(s * d); }
};

Sizes sizes_of(const Definition& definition, const AxisValues& axes) {
  return {axis_value(axes, "B") * axis_value(axes, "H"), axis_value(axes, "S"),
          axis_value(axes, "D"), has_tag(definition, "mask:causal")};
}

// Score elements that count: all, or those on and below the diagonal.
double scores(const Sizes& z) {
  const double s = static_cast<double>(z.s), heads = static_cast<double>(z.heads);
  return heads * (z.causal ? s * (s + 1) / 2 : s * s);
}

Result<void> check_axes(const Definition& definition) {
  for (const char* name : {"B", "H", "S", "D"})
    if (std::none_of(definition.axes.begin(), definition.axes.end(),
                     [&](const Axis& axis) { return axis.name == name; }))
      return Error{"bad-task", fmt::format("{}: {} needs the axes B, H, S and D", definition.name,
                                           definition.op_type)};
  return {};
}

// `output`: of the operation, by its place there.
Explanation explain_output(const Problem& p, std::span<const Tensor> outputs, size_t index,
                           AttentionOutput output, std::span<const uint64_t> bad_tiles) {
  const Sizes z = sizes_of(p.definition, p.axes);
  AttentionView view;
  view.inputs = p.inputs;
  view.written = &outputs[index];
  view.output = output;
  view.batches = axis_value(p.axes, "B");
  view.heads = axis_value(p.axes, "H");
  view.s = z.s;
  view.d = z.d;
  view.scale = 1 / std::sqrt(static_cast<double>(z.d));
  view.causal = z.causal;
  return explain_attention(view, bad_tiles);
}

AttentionHead head_of(const Sizes& z) {
  AttentionHead head;
  head.queries = head.keys = z.s;
  head.d = head.d_v = z.d;
  head.scale = 1 / std::sqrt(static_cast<double>(z.d));
  head.causal = z.causal;
  return head;
}

std::vector<double> matrix_of(const Tensor& tensor, size_t index, size_t size) {
  std::vector<double> values(size);
  numeric::load_elements(tensor.type,
                         tensor.bytes.data() + index * size * numeric::dtype_size(tensor.type),
                         std::span<double>(values));
  return values;
}

// Heads of all batches do not know of each other.
Rotation turn_heads(const Definition& definition, const AxisValues& axes) {
  return {sizes_of(definition, axes).heads,
          std::vector<bool>(definition.inputs.size() + definition.outputs.size(), true)};
}

// LSE is compared head by head, as columns.
OutputView column_per_head(const Sizes& z) { return {z.heads, z.s, 1}; }

AttentionOnDevice on_device(const Sizes& z) {
  AttentionOnDevice p;
  p.heads = z.heads, p.s = z.s, p.d = z.d;
  p.head = head_of(z);
  return p;
}

template <class T>
std::span<const T> words(const Tensor& tensor) {
  return {reinterpret_cast<const T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
}

Result<void> reference_on(device::Device& device, const Problem& p, const Sizes& z, int threads,
                          const ReferenceSink& sink) {
  return attend_on(device, on_device(z), words<uint16_t>(p.inputs[0]), words<uint16_t>(p.inputs[1]),
                   words<uint16_t>(p.inputs[2]), [&](const AttentionHeads& heads) {
                     const std::vector<double> noise =
                         noise_of_heads(heads, head_of(z), threads, [&](int64_t i) {
                           const size_t at = static_cast<size_t>(i);
                           return std::pair(matrix_of(p.inputs[0], at, z.matrix()),
                                            matrix_of(p.inputs[1], at, z.matrix()));
                         });
                     const int64_t row = heads.first * z.s, rows = heads.count * z.s;
                     sink({0, row, rows, heads.o, heads.o_noise});
                     sink({1, row, rows, heads.lse, noise});
                   });
}

Result<void> gradient_on(device::Device& device, const Problem& p, const Sizes& z,
                         const ReferenceSink& sink) {
  const auto bf16 = [&](size_t i) { return words<uint16_t>(p.inputs[i]); };
  const GradientInputs inputs{bf16(0), bf16(1), bf16(2),
                              bf16(3), bf16(4), words<float>(p.inputs[5])};
  return attend_backward_on(device, on_device(z), inputs, [&](const AttentionHeads& heads) {
    const int64_t row = heads.first * z.s, rows = heads.count * z.s;
    sink({0, row, rows, heads.dq, heads.dq_noise});
    sink({1, row, rows, heads.dk, heads.dk_noise});
    sink({2, row, rows, heads.dv, heads.dv_noise});
  });
}

class Attention : public Operation {
 public:
  const char* op_type() const override { return "mha"; }

  Result<void> check(const Definition& definition) const override {
    PB_RETURN_IF_ERROR(check_axes(definition));
    return expect_tensors(definition, {"Q:bfloat16:4", "K:bfloat16:4", "V:bfloat16:4"},
                          {"O:bfloat16:4", "LSE:float32:3"});
  }
  double flop(const Definition& definition, const AxisValues& axes) const override {
    const Sizes z = sizes_of(definition, axes);
    return 4 * scores(z) * static_cast<double>(z.d);
  }
  Rotation rotation(const Definition& definition, const AxisValues& axes) const override {
    return turn_heads(definition, axes);
  }
  OutputView view(const Definition& definition, const AxisValues& axes,
                  size_t index) const override {
    return index == 1 ? column_per_head(sizes_of(definition, axes))
                      : Operation::view(definition, axes, index);
  }
  Result<std::vector<Tensor>> inputs(const Definition& definition, const AxisValues& axes,
                                     const Seed& seed, int threads,
                                     Distribution distribution) const override {
    return attention_inputs(definition, axes, seed, threads, distribution);
  }

  Result<void> reference(const Problem& p, int threads, const ReferenceSink& sink) const override {
    const Sizes z = sizes_of(p.definition, p.axes);
    if (device::Device* device = ReferenceOnDevice::current())
      return reference_on(*device, p, z, threads, sink);
    return in_order<AttentionResult>(
        z.heads, threads,
        [&](int64_t index, int each) {
          AttentionHead head = head_of(z);
          const size_t at = static_cast<size_t>(index);
          const std::vector<double> q = matrix_of(p.inputs[0], at, z.matrix()),
                                    k = matrix_of(p.inputs[1], at, z.matrix()),
                                    v = matrix_of(p.inputs[2], at, z.matrix());
          head.q = q;
          head.k = k;
          head.v = v;
          return attend(head, each);
        },
        [&](int64_t index, const AttentionResult& r) {
          sink({0, index * z.s, z.s, r.o, r.o_noise});
          sink({1, index * z.s, z.s, r.lse, r.lse_noise});
        });
  }

  Explanation explain(const Problem& p, std::span<const Tensor> outputs, size_t index,
                      std::span<const uint64_t> bad_tiles) const override {
    constexpr AttentionOutput kOutputs[] = {AttentionOutput::o, AttentionOutput::lse};
    return explain_output(p, outputs, index, kOutputs[index], bad_tiles);
  }

  admit::Battery battery(const Definition& definition) const override {
    return admit::attention_battery(definition);
  }
};

class AttentionBackward : public Operation {
 public:
  const char* op_type() const override { return "mha_bwd"; }

  Result<void> check(const Definition& definition) const override {
    PB_RETURN_IF_ERROR(check_axes(definition));
    return expect_tensors(definition,
                          {"Q:bfloat16:4", "K:bfloat16:4", "V:bfloat16:4", "O:bfloat16:4",
                           "dO:bfloat16:4", "L:float32:3"},
                          {"dQ:bfloat16:4", "dK:bfloat16:4", "dV:bfloat16:4"});
  }
  double flop(const Definition& definition, const AxisValues& axes) const override {
    const Sizes z = sizes_of(definition, axes);
    return 10 * scores(z) * static_cast<double>(z.d);
  }

  Rotation rotation(const Definition& definition, const AxisValues& axes) const override {
    return turn_heads(definition, axes);
  }

  // O and L are what a right forward pass gives.
  Result<std::vector<Tensor>> inputs(const Definition& definition, const AxisValues& axes,
                                     const Seed& seed, int threads,
                                     Distribution distribution) const override {
    PB_ASSIGN_OR_RETURN(std::vector<Tensor> made,
                        attention_inputs(definition, axes, seed, threads, distribution));
    Definition forward = definition;
    forward.op_type = "mha";
    forward.inputs = {definition.inputs[0], definition.inputs[1], definition.inputs[2]};
    forward.outputs = {definition.inputs[3], definition.inputs[5]};
    const Problem problem{forward, axes, std::span<const Tensor>(made).first(3)};
    PB_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                        right_outputs(attention_operation(), problem, threads));
    made[3].bytes = std::move(results[0].bytes);
    made[5].bytes = std::move(results[1].bytes);
    return made;
  }

  Result<void> reference(const Problem& p, int threads, const ReferenceSink& sink) const override {
    const Sizes z = sizes_of(p.definition, p.axes);
    if (device::Device* device = ReferenceOnDevice::current())
      return gradient_on(*device, p, z, sink);
    return in_order<AttentionGradient>(
        z.heads, threads,
        [&](int64_t index, int each) {
          AttentionHead head = head_of(z);
          std::vector<std::vector<double>> m;
          for (size_t i = 0; i < 5; ++i)
            m.push_back(matrix_of(p.inputs[i], static_cast<size_t>(index), z.matrix()));
          const std::vector<double> lse =
              matrix_of(p.inputs[5], static_cast<size_t>(index), static_cast<size_t>(z.s));
          head.q = m[0];
          head.k = m[1];
          head.v = m[2];
          return attend_backward(head, m[3], m[4], lse, each);
        },
        [&](int64_t index, const AttentionGradient& g) {
          sink({0, index * z.s, z.s, g.dq, g.dq_noise});
          sink({1, index * z.s, z.s, g.dk, g.dk_noise});
          sink({2, index * z.s, z.s, g.dv, g.dv_noise});
        });
  }

  Explanation explain(const Problem& p, std::span<const Tensor> outputs, size_t index,
                      std::span<const uint64_t> bad_tiles) const override {
    constexpr AttentionOutput kOutputs[] = {AttentionOutput::dq, AttentionOutput::dk,
                                            AttentionOutput::dv};
    return explain_output(p, outputs, index, kOutputs[index], bad_tiles);
  }

  admit::Battery battery(const Definition& definition) const override {
    return admit::attention_backward_battery(definition);
  }
};

}  // namespace

const Operation& attention_operation() {
  static const Attention kAttention;
  return kAttention;
}

const Operation& attention_backward_operation() {
  static const AttentionBackward kBackward;
  return kBackward;
}

}  // namespace ptxbench::bench
