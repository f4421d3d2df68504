#include "bench/op/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "bench/admit/battery.h"
#include "bench/expression.h"
#include "numeric/dtype.h"

namespace ptxbench::bench {
namespace {

const std::vector<const Operation*>& all_operations() {
  static const std::vector<const Operation*> kAll = {&gemm_operation(),
                                                     &attention_operation(),
                                                     &attention_backward_operation(),
                                                     &fp8_gemm_operation(),
                                                     &fp8_attention_operation(),
                                                     &gqa_paged_operation(),
                                                     &gqa_ragged_operation(),
                                                     &mla_paged_operation(),
                                                     &mla_ragged_operation(),
                                                     &gated_delta_rule_operation()};
  return kAll;
}

Result<void> expect(const Definition& definition, const std::vector<TensorSpec>& tensors,
                    const std::vector<std::string>& expected, const char* what) {
  std::string found;
  bool same = tensors.size() == expected.size();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& t = tensors[i];
    const std::string text = fmt::format("{}:{}:{}", t.name, t.dtype, t.shape.size());
    found += (i == 0 ? "" : ", ") + text;
    same = same && text == expected[i];
  }
  if (same) return {};
  std::string wanted;
  for (const std::string& text : expected) wanted += (wanted.empty() ? "" : ", ") + text;
  return Error{"bad-task", fmt::format("{}: op_type {} has {} {} (name:dtype:rank), found {}",
                                       definition.name, definition.op_type, what, wanted, found)};
}

}  // namespace

const Tensor* Problem::input(const std::string& name) const {
  for (const Tensor& tensor : inputs)
    if (tensor.spec.name == name) return &tensor;
  return nullptr;
}

Result<std::vector<Tensor>> Operation::inputs(const Definition& definition, const AxisValues& axes,
                                              const Seed& seed, int threads,
                                              Distribution distribution) const {
  return make_inputs(definition, axes, seed, threads, distribution);
}

OutputView Operation::view(const Definition& definition, const AxisValues& axes,
                           size_t index) const {
  const auto shape = resolve_shape(definition.outputs[index], axes);
  OutputView view;
  if (!shape.ok()) return view;
  view.columns = shape->empty() ? 1 : shape->back();
  for (size_t d = 0; d + 1 < shape->size(); ++d)
    (d + 2 == shape->size() ? view.rows : view.matrices) *= (*shape)[d];
  return view;
}

Rotation Operation::rotation(const Definition&, const AxisValues&) const { return {}; }

Explanation Operation::explain(const Problem&, std::span<const Tensor>, size_t,
                               std::span<const uint64_t>) const {
  return {};
}

admit::Battery Operation::battery(const Definition&) const { return {}; }

Result<const Operation*> operation_of(const Definition& definition) {
  std::string known;
  for (const Operation* operation : all_operations()) {
    known += (known.empty() ? "" : ", ") + std::string(operation->op_type());
    if (definition.op_type != operation->op_type()) continue;
    PB_RETURN_IF_ERROR(operation->check(definition));
    return operation;
  }
  return Error{"unsupported", fmt::format("{}: op_type '{}' cannot be evaluated (known: {})",
                                          definition.name, definition.op_type, known)};
}

Result<double> task_flop(const Definition& definition, const AxisValues& axes) {
  PB_ASSIGN_OR_RETURN(const Operation* operation, operation_of(definition));
  return operation->flop(definition, axes);
}

Result<double> declared_flop(const Task& task, const AxisValues& axes) {
  if (task.requirements.flop.empty()) return 0.0;
  const Names names(axes.begin(), axes.end());
  const auto value = evaluate_expression(task.requirements.flop, names);
  if (!value.ok() || *value < 0)
    return Error{"bad-task",
                 fmt::format("{}: flop \"{}\": {}", task.definition.name, task.requirements.flop,
                             value.ok() ? "is negative" : value.error().message)};
  return static_cast<double>(*value);
}

Result<double> task_flop(const Task& task, const AxisValues& axes) {
  auto operation = operation_of(task.definition);
  if (operation.ok()) return (*operation)->flop(task.definition, axes);
  if (!task.reference_cu.empty()) return declared_flop(task, axes);
  if (operation.error().kind != "unsupported") return operation.error();
  return Error{"unsupported", operation.error().message +
                                  "; a reference.cu beside the task would say what is right"};
}

Result<double> task_bytes(const Definition& definition, const AxisValues& axes) {
  double bytes = 0;
  for (const auto* tensors : {&definition.inputs, &definition.outputs})
    for (const TensorSpec& tensor : *tensors) {
      PB_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, resolve_shape(tensor, axes));
      const auto type = numeric::dtype_from_name(tensor.dtype);
      double size = type ? static_cast<double>(numeric::dtype_size(*type)) : 0;
      for (int64_t dim : shape) size *= static_cast<double>(dim);
      bytes += size;
    }
  return bytes;
}

Result<std::vector<Tensor>> right_outputs(const Operation& operation, const Problem& problem,
                                          int threads) {
  PB_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                      make_outputs(problem.definition, problem.axes, 0));
  PB_RETURN_IF_ERROR(operation.reference(problem, threads, [&](const ReferenceBlock& block) {
    Tensor& tensor = outputs[block.output];
    const numeric::DType type = tensor.type;
    const int64_t columns = operation.view(problem.definition, problem.axes, block.output).columns;
    uint8_t* to = tensor.bytes.data() +
                  static_cast<size_t>(block.first_row * columns) * numeric::dtype_size(type);
    constexpr size_t kPiece = 65536;
    const size_t count = block.values.size();
    parallel_for(static_cast<int64_t>((count + kPiece - 1) / kPiece), threads, [&](int64_t piece) {
      const size_t begin = static_cast<size_t>(piece) * kPiece;
      for (size_t i = begin; i < std::min(count, begin + kPiece); ++i)
        numeric::store_element(type, block.values[i], to + i * numeric::dtype_size(type));
    });
  }));
  return outputs;
}

void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& f) {
  std::atomic<int64_t> next = 0;
  auto work = [&] {
    for (int64_t i; (i = next++) < count;) f(i);
  };
  std::vector<std::thread> helpers;
  for (int64_t t = 1; t < std::min<int64_t>(threads, count); ++t) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
}

double rounding_variance(int significant_bits) {
  // A unit in the last place u gives u*u/12; relative to mantissas 1 <= m < 2 with density 1/m that
  // is times the mean of 1/m^2, 3 / (8 ln 2).
  const double unit = std::ldexp(1.0, 1 - significant_bits);
  return unit * unit / 12 * 3 / (8 * std::log(2.0));
}

std::vector<double> to_doubles(const Tensor& tensor) {
  std::vector<double> values(tensor.bytes.size() / numeric::dtype_size(tensor.type));
  numeric::load_elements(tensor.type, tensor.bytes.data(), std::span<double>(values));
  return values;
}

Result<void> expect_tensors(const Definition& definition, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs) {
  PB_RETURN_IF_ERROR(expect(definition, definition.inputs, inputs, "inputs"));
  return expect(definition, definition.outputs, outputs, "outputs");
}

bool has_tag(const Definition& definition, const std::string& tag) {
  return std::find(definition.tags.begin(), definition.tags.end(), tag) != definition.tags.end();
}

}  // namespace ptxbench::bench
