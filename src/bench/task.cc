#include "bench/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "bench/expression.h"

namespace ptxbench::bench {
namespace {

constexpr int64_t kMaxAxis = int64_t{1} << 24;
constexpr double kMaxTensorElements = 8e9;

Error usage(const std::string& message) { return Error{"usage", message}; }

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row[b.size()];
}

std::string axis_list(const Definition& definition) {
  std::string text;
  for (const Axis& axis : definition.axes) text += (text.empty() ? "" : ", ") + axis.name;
  return text;
}

Result<void> set_axis(AxisValues& values, const Definition& definition, const std::string& name,
                      int64_t value) {
  for (auto& [axis, current] : values) {
    if (axis != name) continue;
    if (value < 1 || value > kMaxAxis)
      return usage(fmt::format("axis {}={} is out of range 1..{}", name, value, kMaxAxis));
    current = value;
    return {};
  }
  return usage(fmt::format("{} has no axis '{}' (its axes: {})", definition.name, name,
                           axis_list(definition)));
}

// "name == expression" to its parts; the name is "" if it is no such constraint.
std::pair<std::string, std::string> split_equation(const std::string& constraint) {
  const size_t equals = constraint.find(" == ");
  if (equals == std::string::npos) return {};
  std::string expression = constraint.substr(equals + 4);
  for (size_t at; (at = expression.find("//")) != std::string::npos;) expression.erase(at, 1);
  return {constraint.substr(0, equals), expression};
}

// The same, but a value that was asked for must be the one that follows.
Result<void> derive(const Definition& definition, const Workload* workload,
                    const std::vector<std::pair<std::string, int64_t>>& overrides,
                    AxisValues& values) {
  for (const std::string& name : derive_axes(definition, values)) {
    const int64_t value = axis_value(values, name);
    std::vector<std::pair<std::string, int64_t>> asked = overrides;
    if (workload != nullptr && overrides.empty()) asked = workload->axes;
    for (const auto& [axis, wanted] : asked)
      if (axis == name && wanted != value)
        return usage(fmt::format("{}={}: {} follows from the other axes and is {}", axis, wanted,
                                 axis, value));
    if (value > kMaxAxis)
      return usage(fmt::format("axis {}={} is out of range 1..{}", name, value, kMaxAxis));
  }
  return {};
}

}  // namespace

std::vector<std::string> derive_axes(const Definition& definition, AxisValues& axes) {
  std::vector<std::string> derived;
  for (const std::string& constraint : definition.constraints) {
    const auto [name, expression] = split_equation(constraint);
    const auto axis = std::find_if(
        axes.begin(), axes.end(), [&, &wanted = name](const auto& a) { return a.first == wanted; });
    if (axis == axes.end()) continue;
    Names names;
    for (const auto& [other, value] : axes)
      if (value != 0 && other != name) names[other] = value;
    const auto value = evaluate_expression(expression, names);
    if (!value.ok() || *value < 1) continue;
    axis->second = *value;
    derived.push_back(name);
  }
  return derived;
}

const Workload* Task::find_workload(const std::string& uuid) const {
  for (const Workload& workload : workloads)
    if (workload.uuid == uuid) return &workload;
  return nullptr;
}

Result<AxisValues> resolve_axes(const Definition& definition, const Workload* workload,
                                const std::vector<std::pair<std::string, int64_t>>& overrides) {
  AxisValues values;
  for (const Axis& axis : definition.axes)
    values.emplace_back(axis.name, axis.constant ? axis.value : 0);
  if (workload != nullptr)
    for (const auto& [name, value] : workload->axes)
      PB_RETURN_IF_ERROR(set_axis(values, definition, name, value));
  for (const auto& [name, value] : overrides)
    PB_RETURN_IF_ERROR(set_axis(values, definition, name, value));
  PB_RETURN_IF_ERROR(derive(definition, workload, overrides, values));
  for (const auto& [name, value] : values)
    if (value == 0) return usage(fmt::format("axis {} needs a value: --axes {}=...", name, name));
  for (const auto& [name, value] : values)
    if (const int64_t multiple = axis_multiple(definition, name); value % multiple != 0)
      return usage(fmt::format("{}={}: {} is defined for multiples of {}", name, value,
                               definition.name, multiple));
  for (const auto* tensors : {&definition.inputs, &definition.outputs}) {
    for (const TensorSpec& tensor : *tensors) {
      PB_ASSIGN_OR_RETURN(std::vector<int64_t> shape, resolve_shape(tensor, values));
      double elements = 1;
      for (int64_t size : shape) elements *= static_cast<double>(size);
      if (elements > kMaxTensorElements)
        return usage(fmt::format("tensor {} would have {:.3g} elements; the limit is {:.0g}",
                                 tensor.name, elements, kMaxTensorElements));
    }
  }
  return values;
}

int64_t axis_value(const AxisValues& axes, const std::string& name) {
  for (const auto& [axis, value] : axes)
    if (axis == name) return value;
  return 0;
}

Result<std::vector<int64_t>> resolve_shape(const TensorSpec& tensor, const AxisValues& axes) {
  std::vector<int64_t> shape;
  for (const std::string& dim : tensor.shape) {
    int64_t size = axis_value(axes, dim);
    if (size == 0) std::from_chars(dim.data(), dim.data() + dim.size(), size);
    if (size <= 0)
      return Error{"bad-task",
                   fmt::format("tensor {}: dimension '{}' is no axis", tensor.name, dim)};
    shape.push_back(size);
  }
  return shape;
}

int64_t axis_multiple(const Definition& definition, const std::string& axis) {
  int64_t multiple = 1;
  for (const std::string& constraint : definition.constraints) {
    const size_t percent = constraint.find(" % "), equals = constraint.find(" == 0");
    if (percent == std::string::npos || equals != constraint.size() - 5 ||
        constraint.substr(0, percent) != axis)
      continue;
    int64_t value = 0;
    const char* last = constraint.data() + equals;
    const auto [end, error] = std::from_chars(constraint.data() + percent + 3, last, value);
    if (error == std::errc{} && end == last && value > 0) multiple = std::lcm(multiple, value);
  }
  return multiple;
}

Result<std::vector<std::pair<std::string, int64_t>>> parse_axes(const std::string& text) {
  std::vector<std::pair<std::string, int64_t>> axes;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = item.find('=');
    int64_t value = 0;
    const char* last = item.data() + item.size();
    if (equals == 0 || equals == std::string::npos)
      return usage(fmt::format("'{}' is not of the form AXIS=VALUE", item));
    auto [end_of_number, error] = std::from_chars(item.data() + equals + 1, last, value);
    if (error == std::errc::result_out_of_range)
      return usage(fmt::format("axis value in '{}' is out of range", item));
    if (error != std::errc{} || end_of_number != last)
      return usage(fmt::format("'{}' has no integer value", item));
    for (const auto& [axis, earlier] : axes)
      if (axis == item.substr(0, equals))
        return usage(fmt::format("axis {} is given twice: {} and {}", axis, earlier, value));
    axes.emplace_back(item.substr(0, equals), value);
  }
  if (axes.empty()) return usage("--axes is empty; expected AXIS=VALUE,...");
  return axes;
}

std::vector<std::string> nearest_names(const std::string& name,
                                       const std::vector<std::string>& names, size_t limit) {
  std::vector<std::pair<size_t, std::string>> ranked;
  const std::string bounded = name.substr(0, 200);
  for (const std::string& other : names) ranked.emplace_back(edit_distance(bounded, other), other);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (ranked.size() > limit) ranked.resize(limit);
  std::vector<std::string> result;
  for (auto& [distance, other] : ranked) result.push_back(std::move(other));
  return result;
}

}  // namespace ptxbench::bench
