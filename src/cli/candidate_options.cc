#include "cli/candidate_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/files.h"
#include "base/stopwatch.h"
#include "bench/op/operation.h"
#include "bench/trace.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace ptxbench::cli {
namespace {

constexpr double kSmallFlop = 1e9;  // up to here the bit-exact tensor model costs about a second
constexpr uint64_t kMaxTrace = uint64_t{64} << 20;
constexpr double kSmallTimeout = 60, kFullTimeout = 1800;

Error usage(std::string message) { return Error{"usage", std::move(message)}; }

// The workload asked for, or nullptr where the user gave sizes instead.
Result<const bench::Workload*> choose_workload(const CandidateOptions& options,
                                               const bench::Task& task) {
  if (options.workload.empty() && !options.axes.empty()) return nullptr;
  const bool has_smoke = task.find_workload("smoke") != nullptr;
  if (options.workload.empty() && !has_smoke && !task.workloads.empty())
    return &task.workloads.front();
  const std::string name = options.workload.empty() ? "smoke" : options.workload;
  if (const bench::Workload* workload = task.find_workload(name)) return workload;
  std::vector<std::string> known;
  for (const bench::Workload& workload : task.workloads) known.push_back(workload.uuid);
  std::string near;
  for (const std::string& other : bench::nearest_names(name, known, 2))
    near += (near.empty() ? "; nearest: " : ", ") + other;
  return usage(fmt::format("{} has no workload '{}'{}", task.definition.name, name, near));
}

// Sizes given by hand may well be those of a published workload.
const bench::Workload* published_with(const bench::Task& task, const bench::AxisValues& axes) {
  for (const bench::Workload& workload : task.workloads) {
    if (!workload.published) continue;
    auto own = bench::resolve_axes(task.definition, &workload, {});
    if (own.ok() && *own == axes) return &workload;
  }
  return nullptr;
}

// Sizes given by hand have no inputs of their own; numbers are those of the task's first workload.
bench::InputSources inputs_of(const bench::Task& task, const bench::Workload* workload) {
  if (workload != nullptr) return workload->inputs;
  bench::InputSources inputs;
  if (task.workloads.empty()) return inputs;
  for (const auto& [name, source] : task.workloads.front().inputs)
    if (source.kind != bench::InputSource::Kind::safetensors) inputs[name] = source;
  return inputs;
}

Result<void> settle_size(const CandidateOptions& options, bench::EvalRequest& request) {
  PB_ASSIGN_OR_RETURN(const bench::Workload* workload, choose_workload(options, request.task));
  std::vector<std::pair<std::string, int64_t>> overrides;
  if (!options.axes.empty()) {
    PB_ASSIGN_OR_RETURN(overrides, bench::parse_axes(options.axes));
  }
  PB_ASSIGN_OR_RETURN(request.axes,
                      bench::resolve_axes(request.task.definition, workload, overrides));
  request.inputs = inputs_of(request.task, workload);
  const bench::Workload* published = published_with(request.task, request.axes);
  request.published_workload = published != nullptr;
  if (published != nullptr) {
    request.workload = published->uuid;
  } else if (workload != nullptr) {
    request.workload = workload->uuid;
    request.sm_count = workload->sm_count;
  }
  PB_ASSIGN_OR_RETURN(double flop, bench::task_flop(request.task, request.axes));
  const bool small = flop <= kSmallFlop;
  request.tensor = small ? plan::TensorMode::hw : plan::TensorMode::f32;
  request.races = small;
  request.timeout_s = small ? kSmallTimeout : kFullTimeout;
  return {};
}

}  // namespace

void add_candidate_options(CLI::App& command, CandidateOptions& options) {
  command.add_option("--task", options.task, "Name of the task (see `ptxbench tasks list`)");
  command.add_option(
      "--tasks", options.tasks_folder,
      "Folder of task folders, or a FlashInfer-Trace dataset (default: $PTXBENCH_TASKS, "
      "else this repository's)");
  command.add_option(
      "--workload", options.workload,
      "Workload id (default: smoke, else the first; none where --axes gives the size)");
  command.add_option("--axes", options.axes,
                     "Sizes such as M=256,N=512; constant axes can be overridden too");
  command.add_option("--arch", options.arch, "Target architecture")->capture_default_str();
  command
      .add_option("--device", options.device,
                  "emu, emu:PROFILE with h100, h200, or cuda:N for a GPU")
      ->capture_default_str();
  add_output_file(command, "--json", options.json,
                  "Also write the result as JSON to FILE (-: stdout only)");
  command.add_flag("--trust", options.trust,
                   "Run the candidate's host code without a sandbox where none works");
  command.add_flag("--quiet", options.quiet, "No progress on stderr");
}

std::optional<int> gpu_index(const std::string& device) {
  if (device == "cuda") return 0;
  const std::string digits = device.rfind("cuda:", 0) == 0 ? device.substr(5) : "";
  if (digits.empty() || digits.size() > 3 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoi(digits);
}

Result<std::string> parse_device(const std::string& device) {
  if (device == "emu") return std::string("h200");
  if (device == "emu:h100" || device == "emu:h200") return device.substr(4);
  if (gpu_index(device)) return std::string("h200");
  return usage(
      fmt::format("unknown device '{}' (known: emu, emu:h100, emu:h200, cuda, cuda:N)", device));
}

Result<std::optional<bench::Seed>> apply_trace(CandidateOptions& options) {
  if (options.from_trace.empty()) return std::optional<bench::Seed>();
  PB_ASSIGN_OR_RETURN(const std::string text, read_file(options.from_trace, kMaxTrace));
  PB_ASSIGN_OR_RETURN(const bench::TraceDocument trace,
                      bench::read_trace(text, options.from_trace));
  if (!options.task.empty() && options.task != trace.definition)
    return usage(fmt::format("{} is of task {}, not {}", options.from_trace, trace.definition,
                             options.task));
  options.task = trace.definition;
  if (!options.workload.empty() || !options.axes.empty())
    return usage("--from-trace settles the workload: leave out --workload and --axes");
  // By id where the task still has it, so that the workload's SM count comes along.
  PB_ASSIGN_OR_RETURN(const bench::TaskSuite suite, bench::TaskSuite::open(options.tasks_folder));
  PB_ASSIGN_OR_RETURN(const bench::Task task, suite.load(options.task));
  if (task.find_workload(trace.uuid) != nullptr) options.workload = trace.uuid;
  for (const auto& [axis, value] : trace.axes)
    options.axes += fmt::format("{}{}={}", options.axes.empty() ? "" : ",", axis, value);
  if (!trace.arch.empty()) options.arch = trace.arch;
  return trace.seed;
}

Result<bench::EvalRequest> make_request(const CandidateOptions& options) {
  Stopwatch watch;
  bench::EvalRequest request;
  if (options.task.empty()) return usage("--task is required");
  PB_ASSIGN_OR_RETURN(bench::TaskSuite suite, bench::TaskSuite::open(options.tasks_folder));
  PB_ASSIGN_OR_RETURN(request.task, suite.load(options.task));
  PB_RETURN_IF_ERROR(settle_size(options, request));
  const auto& required = request.task.requirements.architectures;
  if (!required.empty() && required.count(options.arch) == 0) {
    std::string known;
    for (const auto& [arch, requirement] : required) known += (known.empty() ? "" : ", ") + arch;
    return usage(fmt::format("{} states no requirements for architecture '{}' (known: {})",
                             options.task, options.arch, known));
  }
  request.arch = options.arch;
  request.trust = options.trust;
  PB_ASSIGN_OR_RETURN(request.device_profile, parse_device(options.device));
  PB_ASSIGN_OR_RETURN(request.extraction, bench::extract_file(options.file));
  const std::string& named = request.extraction.candidate.definition;
  if (!named.empty() && named != options.task)
    return usage(fmt::format("{} is a solution of {}, not of {}", options.file, named.substr(0, 80),
                             options.task));
  request.extract_ms = watch.ms();
  return request;
}

Result<bench::Recording> record_with_progress(const CandidateOptions& options,
                                              bench::EvalRequest& request) {
  Progress progress(options.quiet);
  request.progress = [&](const std::string& what, double fraction) {
    progress.show(what, fraction);
  };
  auto device = device::make_emu_device(request.device_profile);
  auto recording = bench::compile_and_record(request, bench::real_services(*device));
  request.progress = nullptr;
  return recording;
}

}  // namespace ptxbench::cli
