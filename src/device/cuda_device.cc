#include "device/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/demangle.h"
#include "base/stopwatch.h"
#include "device/instrument_plan.h"
#include "device/tensor_work.h"

namespace ptxbench::device {
namespace {

using cuda::Worker;

Finding finding(const char* kind, HazardClass hazard, std::string message) {
  Finding f;
  f.kind = kind;
  f.hazard = hazard;
  f.message = std::move(message);
  return f;
}

const plan::Buffer* argument_buffer(const plan::LaunchPlan& plan, uint32_t argument) {
  for (const plan::Buffer& b : plan.buffers)
    if (b.role == plan::BufferRole::argument && b.argument == argument) return &b;
  return nullptr;
}

std::string argument_name(const plan::LaunchPlan& plan, const std::string& name) {
  constexpr std::string_view kPrefix = "argument ";
  if (name.compare(0, kPrefix.size(), kPrefix) != 0) return name;
  const plan::Buffer* b =
      argument_buffer(plan, static_cast<uint32_t>(std::stoul(name.substr(kPrefix.size()))));
  return b != nullptr && !b->name.empty() ? b->name : name;
}

std::string kernel_of_step(const plan::LaunchPlan& plan, int step) {
  if (step < 0 || static_cast<size_t>(step) >= plan.steps.size()) return "";
  const auto* launch = std::get_if<plan::Launch>(&plan.steps[static_cast<size_t>(step)]);
  return launch != nullptr ? launch->kernel : "";
}

// What the numbers of the driver mean for a kernel, in the emulator's slugs.
const char* kind_of_code(const cuda::Failure& failure) {
  if (failure.stage != "run") return "launch-refused";
  switch (failure.code) {
    case 700:
      return "out-of-bounds";
    case 716:
      return "misaligned-address";
    case 717:
      return "address-space";
    case 710:
      return "assert";
    case 715:
      return "trap";
    case 720:
    case 701:
      return "launch-refused";
    default:
      return "memory-fault";
  }
}

Result<void> upload(Worker& worker, uint32_t set, std::span<const Binding> arguments) {
  for (uint32_t i = 0; i < arguments.size(); ++i)
    PB_RETURN_IF_ERROR(worker.upload(set, i, arguments[i].bytes, arguments[i].read_only));
  return {};
}

// Code for sm_90a runs on 9.0 alone, code for sm_90f on later ones of the family, for sm_90 on all
// later ones.
bool runs_on(const std::string& arch, const cuda::DeviceInfo& info) {
  constexpr std::string_view kPrefix = "sm_";
  if (arch.compare(0, kPrefix.size(), kPrefix) != 0) return true;
  const int wanted = std::atoi(arch.c_str() + kPrefix.size());
  const int own = 10 * info.cc_major + info.cc_minor;
  if (arch.back() == 'a') return own == wanted;
  if (arch.back() == 'f') return own >= wanted && info.cc_major == wanted / 10;
  return own >= wanted;
}

// A plan is bound before anything is started: the error is the caller's.
Result<void> check_bindings(const plan::LaunchPlan& plan, std::span<const Binding> arguments) {
  for (const plan::Buffer& b : plan.buffers)
    if (b.role == plan::BufferRole::argument &&
        (b.argument >= arguments.size() || arguments[b.argument].bytes.size() != b.size))
      return Error{"infrastructure",
                   fmt::format("buffer {} of the plan is not bound to {} bytes", b.name, b.size)};
  return {};
}

}  // namespace

std::vector<Finding> findings_of(const cuda::Checked& checked, const plan::LaunchPlan& plan) {
  std::vector<Finding> out;
  for (const cuda::Damage& d : checked.guards) {
    Finding f = finding("out-of-bounds", HazardClass::fatal,
                        fmt::format("{} bytes outside {} were written, the first at offset {}",
                                    d.bytes, argument_name(plan, d.buffer), d.offset));
    f.symbol = argument_name(plan, d.buffer);
    f.count = d.bytes;
    out.push_back(std::move(f));
  }
  for (const uint32_t argument : checked.changed_inputs) {
    const plan::Buffer* b = argument_buffer(plan, argument);
    Finding f = finding("write-to-input", HazardClass::fatal,
                        fmt::format("the replay writes to {}, an input",
                                    b != nullptr ? b->name : fmt::format("argument {}", argument)));
    out.push_back(std::move(f));
  }
  for (const cuda::StateChange& s : checked.state) {
    Finding f = finding("state-changed", HazardClass::advice,
                        fmt::format("the variable {} is left changed ({} bytes); it is restored "
                                    "before every launch",
                                    demangled_variable(s.name), s.bytes));
    f.symbol = demangled_variable(s.name);
    out.push_back(std::move(f));
  }
  return out;
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(CudaOptions options) {
  std::unique_ptr<CudaDevice> device(new CudaDevice(std::move(options)));
  PB_RETURN_IF_ERROR(device->self_test());
  return device;
}

std::string CudaDevice::name() const {
  return fmt::format("{}:{} {}", info_.emulated ? "cuda-emulated" : "cuda", options_.worker.device,
                     info_.name);
}

Result<void> CudaDevice::self_test() {
  PB_ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, Worker::start(options_.worker));
  info_ = worker->info();
  PB_ASSIGN_OR_RETURN(const cuda::SelfTest test, worker->self_test());
  if (test.failure)
    return Error{"gpu-lost", fmt::format("the GPU fails its self-test: {}", test.failure.what)};
  if (!test.right) return Error{"gpu-lost", "the GPU computes its self-test wrongly"};
  empty_launch_ms_ = test.empty_launch_ms;
  return {};
}

// The candidate's context is gone with its worker; whether the card is well shows a new one.
Result<void> CudaDevice::stopped(const cuda::Failure& failure, const plan::LaunchPlan& plan,
                                 RunResult* result) {
  if (auto well = self_test(); !well.ok())
    return Error{"gpu-lost", fmt::format("{}; afterwards {}", failure.what, well.error().message)};
  if (!cuda::is_fault(failure.code)) return Error{"gpu-fault", failure.what};
  result->status = RunStatus::fault;
  result->message = failure.what;
  Finding f = finding(kind_of_code(failure), HazardClass::fatal, failure.what);
  f.kernel = kernel_of_step(plan, failure.step);
  result->findings.push_back(std::move(f));
  return {};
}

// The worker that has the plan loaded. Few are kept: each holds its plan's scratch memory.
Result<Worker*> CudaDevice::kept_worker(const plan::LaunchPlan& plan) {
  constexpr size_t kMost = 3;
  std::vector<uint8_t> bytes = plan::serialize(plan);
  for (const Kept& kept : kept_)
    if (kept.plan == bytes) return kept.worker.get();
  if (kept_.size() == kMost) kept_.erase(kept_.begin());
  PB_ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, Worker::start(options_.worker));
  PB_ASSIGN_OR_RETURN(const cuda::Loaded loaded, worker->load(plan, options_.from_ptx));
  if (loaded.failure) return Error{"gpu-fault", loaded.failure.what};
  kept_.push_back({std::move(bytes), std::move(worker)});
  return kept_.back().worker.get();
}

Result<RunResult> CudaDevice::replay_kept(const plan::LaunchPlan& plan,
                                          std::span<const Binding> arguments, double seconds) {
  PB_ASSIGN_OR_RETURN(Worker* const worker, kept_worker(plan));
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    const Binding& b = arguments[i];
    PB_RETURN_IF_ERROR(b.initialized ? worker->upload(0, i, b.bytes, b.read_only)
                                     : worker->fill(0, i, b.bytes.size(), 0xffff));
  }
  PB_ASSIGN_OR_RETURN(const cuda::Ran ran,
                      worker->run({0, cuda::Timing::none, false, false}, seconds));
  if (ran.failure) return Error{"gpu-fault", ran.failure.what};
  for (uint32_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].read_only) PB_RETURN_IF_ERROR(worker->download(0, i, arguments[i].bytes));
  PB_RETURN_IF_ERROR(worker->release(0));
  return RunResult();
}

Result<RunResult> CudaDevice::run_once(const plan::LaunchPlan& plan,
                                       std::span<const Binding> arguments, double seconds,
                                       bool from_ptx, int repeats) {
  RunResult result;
  PB_ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, Worker::start(options_.worker));
  PB_ASSIGN_OR_RETURN(const cuda::Loaded loaded,
                      worker->load(plan, from_ptx, options_.count_instructions));
  kernels_ = loaded.kernels;
  images_ = loaded.images;
  if (loaded.failure) {
    worker.reset();
    PB_RETURN_IF_ERROR(stopped(loaded.failure, plan, &result));
    return result;
  }
  std::vector<std::vector<uint8_t>> again(arguments.size());
  for (int set = 0; set < repeats; ++set) {
    const auto id = static_cast<uint32_t>(set);
    PB_RETURN_IF_ERROR(upload(*worker, id, arguments));
    auto ran = worker->run({id, cuda::Timing::none, true, true}, seconds);
    if (!ran.ok() && ran.error().kind == "timeout") {
      worker.reset();
      PB_RETURN_IF_ERROR(self_test());
      result.status = RunStatus::wall_budget;
      result.message = fmt::format("the kernels did not end within {:.3g} s", seconds);
      return result;
    }
    if (!ran.ok()) return ran.error();
    if (ran->failure) {
      worker.reset();
      PB_RETURN_IF_ERROR(stopped(ran->failure, plan, &result));
      return result;
    }
    PB_ASSIGN_OR_RETURN(const cuda::Checked checked, worker->check(id));
    if (set == 0) {
      result.findings = findings_of(checked, plan);
      differing_maps_ = checked.differing_maps;
      map_difference_ = checked.map_difference;
    }
    bool differ = false;
    for (uint32_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].read_only) continue;
      again[i].resize(arguments[i].bytes.size());
      PB_RETURN_IF_ERROR(worker->download(id, i, again[i]));
      if (set > 0) differ |= !std::equal(again[i].begin(), again[i].end(), results_[i].begin());
    }
    if (set == 0) results_ = again;
    PB_RETURN_IF_ERROR(worker->release(id));
    if (differ)
      result.findings.push_back(finding("outputs-differ", HazardClass::advice,
                                        "a second replay of the same inputs gave other bits"));
  }
  return result;
}

// Executed instructions, by a replay of the plan that counts them. Its outputs are not used.
Result<void> CudaDevice::count(const plan::LaunchPlan& plan, std::span<const Binding> arguments,
                               double seconds, RunResult* result) {
  auto instrumented = instrument(plan);
  if (!instrumented.ok() && instrumented.error().kind == "unsupported") return {};
  if (!instrumented.ok()) return instrumented.error();
  if (instrumented->counter_bytes == 0) return {};
  std::vector<uint8_t> counters(instrumented->counter_bytes);
  std::vector<Binding> with_counters(arguments.begin(), arguments.end());
  with_counters.push_back({counters, false, true});
  const std::vector<cuda::KernelInfo> kernels = kernels_;
  const auto images = images_;
  const auto plain = std::move(results_);
  results_.clear();
  auto counted = run_once(instrumented->plan, with_counters, 4 * seconds, true, 1);
  kernels_ = kernels;
  images_ = images;
  if (!counted.ok()) return counted.error();
  if (counted->status != RunStatus::completed) {
    result->findings.push_back(
        finding("not-counted", HazardClass::advice,
                "the instrumented kernels did not complete: " + counted->message));
    results_ = plain;
    return {};
  }
  counters = results_.back();
  results_ = plain;
  return add_counts(plan, *instrumented, counters, result);
}

Result<RunResult> CudaDevice::replay(const plan::LaunchPlan& plan,
                                     std::span<const Binding> arguments,
                                     const RunOptions& options) {
  if (options.ghost != plan::Ghost::none)
    return Error{"unsupported", "ghost replays run on the emulator"};
  PB_RETURN_IF_ERROR(plan::validate(plan));
  PB_RETURN_IF_ERROR(check_bindings(plan, arguments));
  if (!runs_on(plan.arch, info_))
    return Error{"unsupported", fmt::format("the plan is for {}, {} has compute capability {}.{}",
                                            plan.arch, name(), info_.cc_major, info_.cc_minor)};
  Stopwatch watch;
  const double seconds = options.wall_budget_s > 0
                             ? std::min(options.wall_budget_s, options_.launch_s)
                             : options_.launch_s;
  if (options_.keep_workers) {
    auto kept = replay_kept(plan, arguments, seconds);
    if (!kept.ok()) kept_.clear();
    return kept;
  }
  PB_ASSIGN_OR_RETURN(RunResult result, run_once(plan, arguments, seconds, options_.from_ptx,
                                                 std::max(options_.repeats, 1)));
  if (result.status == RunStatus::completed) {
    for (size_t i = 0; i < arguments.size(); ++i)
      if (!arguments[i].read_only)
        std::copy(results_[i].begin(), results_[i].end(), arguments[i].bytes.begin());
    if (options_.count_instructions) PB_RETURN_IF_ERROR(count(plan, arguments, seconds, &result));
  }
  result.wall_ms = watch.ms();
  return result;
}

}  // namespace ptxbench::device
