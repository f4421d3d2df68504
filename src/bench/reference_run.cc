#include "bench/reference_run.h"

#include <fmt/format.h>

#include <cstring>

#include "base/files.h"
#include "bench/host_arguments.h"
#include "bench/op/user_reference.h"

namespace ptxbench::bench {
namespace {

// A NaN that no arithmetic makes.
constexpr uint64_t kPoison = 0x7ff4badc0ffee001;

Definition in_float64(Definition definition) {
  for (TensorSpec& output : definition.outputs) output.dtype = reference_dtype(output.dtype);
  return definition;
}

Result<std::vector<Tensor>> poisoned_outputs(const Definition& definition, const AxisValues& axes) {
  std::vector<Tensor> outputs;
  for (const TensorSpec& spec : definition.outputs) {
    Tensor tensor;
    tensor.spec = spec;
    const auto type = numeric::dtype_from_name(spec.dtype);
    if (!type)
      return Error{"unsupported", fmt::format("output {}: dtype {}", spec.name, spec.dtype)};
    tensor.type = *type;
    PB_ASSIGN_OR_RETURN(tensor.shape, resolve_shape(spec, axes));
    const size_t element = numeric::dtype_size(*type);
    size_t bytes = element;
    for (int64_t extent : tensor.shape) bytes *= static_cast<size_t>(extent);
    tensor.bytes.resize(bytes);
    for (size_t at = 0; at < bytes; at += element)
      std::memcpy(tensor.bytes.data() + at, &kPoison, element);
    outputs.push_back(std::move(tensor));
  }
  return outputs;
}

Result<void> all_written(const std::string& file, const Tensor& output) {
  if (output.type != numeric::DType::float64) return {};  // every pattern is a value
  size_t unwritten = 0;
  for (size_t at = 0; at < output.bytes.size(); at += sizeof kPoison)
    unwritten += std::memcmp(output.bytes.data() + at, &kPoison, sizeof kPoison) == 0;
  if (unwritten == 0) return {};
  return Error{"bad-task",
               fmt::format("{}: {} of {} elements of {} were never written", file, unwritten,
                           output.bytes.size() / sizeof kPoison, output.spec.name)};
}

}  // namespace

bool uses_user_reference(const Task& task) {
  return !task.reference_cu.empty() && !operation_of(task.definition).ok();
}

Result<std::vector<Tensor>> run_reference(const Problem& problem, const EvalRequest& request,
                                          const Services& services) {
  const Task& task = request.task;
  const std::string file = task.reference_cu.string();
  const auto bad = [&](const std::string& what) {
    return Error{"bad-task", fmt::format("{}: {}", file, what)};
  };
  toolchain::CompileRequest compile;
  PB_ASSIGN_OR_RETURN(compile.source, read_file(task.reference_cu, kMaxCandidateBytes));
  compile.file_name = "reference.cu";
  compile.arch = request.arch;
  compile.cache_dir = request.cache_dir;
  compile.trust = request.trust;
  PB_ASSIGN_OR_RETURN(toolchain::CompiledCandidate compiled, services.compile(compile));
  if (!compiled.ok) {
    for (const toolchain::Diagnostic& d : compiled.diagnostics)
      if (d.severity == toolchain::Diagnostic::Severity::error)
        return bad(fmt::format("does not compile: line {}: {}", d.line, d.text));
    return bad("does not compile");
  }
  const Definition definition = in_float64(problem.definition);
  cudart::RecordRequest record;
  record.host_library = compiled.host_library;
  record.ptx = std::move(compiled.ptx);
  record.cubin = std::move(compiled.cubin);
  record.arch = request.arch;
  record.device_profile = request.device_profile;
  record.definition = definition.name;
  record.axes = problem.axes;
  record.trust = request.trust;
  PB_ASSIGN_OR_RETURN(HostArguments arguments,
                      host_arguments(definition, problem.axes, request.inputs));
  record.arguments = std::move(arguments.tensors);
  record.scalars = std::move(arguments.scalars);
  PB_ASSIGN_OR_RETURN(cudart::RecordOutcome recorded, services.record(record));
  if (!recorded.ok) return bad(fmt::format("{}: {}", recorded.reason, recorded.message));

  std::vector<Tensor> inputs(problem.inputs.begin(), problem.inputs.end());
  PB_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, poisoned_outputs(definition, problem.axes));
  std::vector<device::Binding> bindings;
  for (Tensor& input : inputs)
    if (!input.spec.scalar) bindings.push_back({input.bytes, true, true});
  for (Tensor& output : outputs) bindings.push_back({output.bytes, false, false});
  plan::RunOptions options;
  options.threads = request.threads > 0 ? request.threads : 0;
  options.wall_budget_s = request.timeout_s;
  PB_ASSIGN_OR_RETURN(const plan::RunResult run,
                      services.device->replay(recorded.plan, bindings, options));
  if (run.status == plan::RunStatus::unsupported) return Error{"unsupported", run.message};
  if (run.status != plan::RunStatus::completed) return bad(run.message);
  for (const plan::Finding& finding : run.findings)
    if (finding.hazard == plan::HazardClass::fatal)
      return bad(fmt::format("line {}: {}", finding.line, finding.message));
  for (const Tensor& output : outputs) PB_RETURN_IF_ERROR(all_written(file, output));
  return outputs;
}

}  // namespace ptxbench::bench
