#include "bench/host_arguments.h"

#include <fmt/format.h>

#include "bench/safetensors.h"
#include "numeric/dtype.h"

namespace ptxbench::bench {
namespace {

Result<cudart::ScalarArgument> scalar_argument(const TensorSpec& spec,
                                               const InputSources& sources) {
  using Kind = cudart::ScalarArgument::Kind;
  const auto source = sources.find(spec.name);
  const auto type = numeric::dtype_from_name(spec.dtype);
  if (!type || source == sources.end() || source->second.kind != InputSource::Kind::scalar)
    return Error{"bad-task",
                 fmt::format("input {} is a number, and the workload gives none", spec.name)};
  cudart::ScalarArgument argument;
  argument.kind = *type == numeric::DType::boolean ? Kind::boolean
                  : numeric::is_floating(*type)    ? Kind::floating
                                                   : Kind::integer;
  argument.value = source->second.value;
  return argument;
}

}  // namespace

Result<HostArguments> host_arguments(const Definition& definition, const AxisValues& axes,
                                     const InputSources& sources) {
  HostArguments result;
  uint32_t position = 0;
  for (bool output : {false, true}) {
    for (const TensorSpec& spec : output ? definition.outputs : definition.inputs) {
      if (spec.scalar) {
        PB_ASSIGN_OR_RETURN(cudart::ScalarArgument scalar, scalar_argument(spec, sources));
        scalar.position = position++;
        result.scalars.push_back(scalar);
        continue;
      }
      ++position;
      cudart::TensorArgument argument;
      argument.name = spec.name;
      argument.dtype = spec.dtype;
      argument.is_output = output;
      PB_ASSIGN_OR_RETURN(argument.shape, resolve_shape(spec, axes));
      const auto source = sources.find(spec.name);
      const auto type = numeric::dtype_from_name(spec.dtype);
      if (source != sources.end() && source->second.kind == InputSource::Kind::safetensors &&
          type && !numeric::is_floating(*type)) {
        PB_ASSIGN_OR_RETURN(SafeTensor blob,
                            read_safetensor(source->second.path, source->second.tensor_key));
        if (blob.bytes.size() == cudart::byte_size(argument))
          argument.host_bytes = std::move(blob.bytes);
      }
      result.tensors.push_back(std::move(argument));
    }
  }
  return result;
}

Result<void> check_plan(const plan::LaunchPlan& plan, const Definition& definition,
                        const AxisValues& axes, const InputSources& sources,
                        const std::string& arch) {
  PB_RETURN_IF_ERROR(plan::validate(plan));
  auto usage = [](std::string message) { return Error{"usage", std::move(message)}; };
  if (plan.definition != definition.name)
    return usage(
        fmt::format("the plan was recorded for task {}, not {}", plan.definition, definition.name));
  for (const auto& [axis, value] : axes)
    if (axis_value(plan.axes, axis) != value)
      return usage(fmt::format("the plan was recorded with {}={}, not {}={}", axis,
                               axis_value(plan.axes, axis), axis, value));
  if (plan.arch != arch)
    return usage(fmt::format("the plan was recorded for {}, not {}", plan.arch, arch));
  PB_ASSIGN_OR_RETURN(HostArguments expected, host_arguments(definition, axes, sources));
  const std::vector<cudart::TensorArgument>& arguments = expected.tensors;
  size_t bound = 0;
  for (const plan::Buffer& buffer : plan.buffers) {
    if (buffer.role != plan::BufferRole::argument) continue;
    ++bound;
    if (buffer.argument >= arguments.size() ||
        buffer.size != cudart::byte_size(arguments[buffer.argument]))
      return usage(fmt::format("the plan's buffer {} is no tensor of the task", buffer.name));
  }
  if (bound != arguments.size())
    return usage(
        fmt::format("the plan binds {} tensors where the task has {}", bound, arguments.size()));
  return {};
}

}  // namespace ptxbench::bench
