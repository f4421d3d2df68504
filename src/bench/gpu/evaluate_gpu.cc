#include "bench/gpu/evaluate_gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/stopwatch.h"
#include "bench/feedback.h"
#include "bench/gpu/measure.h"
#include "bench/gpu/reference.h"
#include "bench/judge.h"
#include "bench/op/operation.h"
#include "numeric/random.h"

namespace ptxbench::bench {
namespace {

constexpr double kEmulatedFlop = 2e10;  // what the emulator can afford beside a GPU

// Hands back outputs that came about elsewhere.
class FixedOutputs : public device::Device {
 public:
  FixedOutputs(std::string name, const TimingDevice::Outputs& outputs)
      : name_(std::move(name)), outputs_(outputs) {}
  std::string name() const override { return name_; }
  Result<plan::RunResult> replay(const plan::LaunchPlan&,
                                 std::span<const device::Binding> arguments,
                                 const plan::RunOptions&) override {
    for (const auto& [i, bytes] : outputs_)
      std::copy(bytes.begin(), bytes.end(), arguments[i].bytes.begin());
    return plan::RunResult();
  }

 private:
  std::string name_;
  const TimingDevice::Outputs& outputs_;
};

class GpuTrial {
 public:
  GpuTrial(const EvalRequest& request, const GpuRequest& gpu)
      : request_(request), gpu_(gpu), device_options_(gpu.device) {}

  Result<Verdict> run() {
    Stopwatch total;
    PB_ASSIGN_OR_RETURN(cuda_, device::CudaDevice::open(gpu_.device));
    device::CudaOptions reference = gpu_.device;
    reference.count_instructions = false;
    reference.repeats = 1;
    reference.from_ptx = true;
    reference.launch_s = 120;
    PB_ASSIGN_OR_RETURN(oracle_, device::CudaDevice::open(reference));
    const ReferenceOnDevice on_device(*oracle_);
    PB_ASSIGN_OR_RETURN(std::optional<Verdict> early, get_plan());
    if (early) return std::move(*early);
    PB_RETURN_IF_ERROR(emulate());
    PB_ASSIGN_OR_RETURN(Verdict verdict, judge_values());
    merge(verdict);
    if (verdict.level == Level::strategy) {
      // What is known by now is kept when the card or the library fails.
      if (auto timed = time(verdict); !timed.ok()) {
        verdict.message =
            "correct on the required instructions; not timed: " + timed.error().message;
        verdict.notes.push_back("timing failed, which is no fault of the candidate: " +
                                timed.error().to_string());
      }
    }
    verdict.feedback = make_feedback(verdict, request_.extraction.candidate.source);
    verdict.total_ms = total.ms() + request_.extract_ms;
    return verdict;
  }

 private:
  // The plan, or the verdict of a candidate that does not get that far.
  Result<std::optional<Verdict>> get_plan() {
    const Candidate& candidate = request_.extraction.candidate;
    if (request_.extraction.ok && candidate.kind == Candidate::Kind::plan) {
      plan_ = candidate.plan;
      device_options_.from_ptx = true;
      return std::optional<Verdict>();
    }
    auto emulator = device::make_emu_device(request_.device_profile);
    PB_ASSIGN_OR_RETURN(Recording recording,
                        compile_and_record(request_, real_services(*emulator)));
    if (recording.verdict) return std::move(recording.verdict);
    plan_ = std::move(recording.plan);
    stages_ = std::move(recording.stages);
    diagnostics_ = std::move(recording.diagnostics);
    device_options_.from_ptx = false;  // machine code that this program made from that PTX
    return std::optional<Verdict>();
  }

  // The same candidate as a plan: nothing is compiled again.
  EvalRequest plan_request() const {
    EvalRequest request = request_;
    request.extraction.ok = true;
    request.extraction.candidate.kind = Candidate::Kind::plan;
    request.extraction.candidate.plan = plan_;
    request.tensor = plan::TensorMode::hw;  // the silicon's own
    request.held_out = false;
    request.dependence = false;
    request.timeout_s = device_options_.launch_s;
    return request;
  }

  Result<void> emulate() {
    if (!gpu_.emulate) return {};
    const bool is_plan = request_.extraction.candidate.kind == Candidate::Kind::plan;
    PB_ASSIGN_OR_RETURN(const double flop, task_flop(request_.task.definition, request_.axes));
    EvalRequest request = request_;
    if (flop > kEmulatedFlop) {
      const Workload* smoke = request_.task.find_workload("smoke");
      if (is_plan || smoke == nullptr) return {};
      PB_ASSIGN_OR_RETURN(request.axes, resolve_axes(request_.task.definition, smoke, {}));
      request.workload = smoke->uuid;
      request.published_workload = false;
      request.sm_count = smoke->sm_count;
      request.tensor = plan::TensorMode::hw;
    }
    auto emulator = device::make_emu_device(request.device_profile);
    auto verdict = evaluate(request, real_services(*emulator));
    if (!verdict.ok() && verdict.error().kind == "unsupported") {
      not_emulated_ = verdict.error().message;
      return {};
    }
    if (!verdict.ok()) return verdict.error();
    emulated_ = verdict.take();
    return {};
  }

  Result<Verdict> judge_values() {
    device::CudaOptions options = device_options_;
    PB_ASSIGN_OR_RETURN(cuda_, device::CudaDevice::open(options));
    const EvalRequest request = plan_request();
    PB_ASSIGN_OR_RETURN(Verdict verdict,
                        evaluate(request, {toolchain::compile, cudart::record, cuda_.get()}));
    verdict.stages.insert(verdict.stages.begin() + 1, stages_.begin(), stages_.end());
    verdict.diagnostics = diagnostics_;
    if (cuda_->differing_maps() > 0)
      verdict.notes.push_back(
          fmt::format("{} tensor maps are encoded otherwise by this driver ({})",
                      cuda_->differing_maps(), cuda_->map_difference()));
    return verdict;
  }

  // What the emulator saw counts too: silicon hides hazards. The label stays the GPU's.
  void merge(Verdict& verdict) const {
    if (!emulated_) {
      verdict.notes.push_back(
          !gpu_.emulate ? "not run on the emulator"
          : not_emulated_.empty()
              ? "not run on the emulator: the plan is too large for it, so hazards that silicon "
                "hides were not looked for"
              : "not run on the emulator: " + not_emulated_);
      return;
    }
    verdict.stages.push_back({"emulator", emulated_->total_ms, false});
    std::string line =
        fmt::format("on the emulator: level {}, {}, {}", static_cast<int>(emulated_->level),
                    emulated_->reason, emulated_->label);
    if (emulated_->axes != verdict.axes) line += ", at the smoke size";
    verdict.notes.push_back(line);
    if (comparable(verdict)) compare_counts(verdict);
    for (const plan::Finding& f : emulated_->findings) verdict.findings.push_back(f);
    // A card only shows that it hangs, the emulator why.
    const bool explains = verdict.reason == "timeout" && emulated_->reason == "deadlock";
    if (emulated_->level < verdict.level || explains) {
      verdict.level = emulated_->level;
      verdict.reason = emulated_->reason;
      verdict.message = "on the emulator: " + emulated_->message;
    }
  }

  // Ledger and counters saw the same work: the replay ended, and no launch was left out of the
  // ledger because nobody used its results.
  bool comparable(const Verdict& verdict) const {
    if (emulated_->axes != verdict.axes || !emulated_->correctness || !verdict.correctness)
      return false;
    return std::none_of(emulated_->findings.begin(), emulated_->findings.end(),
                        [](const plan::Finding& f) {
                          return f.kind == "result-unused" || f.kind == "out-of-bounds" ||
                                 f.kind == "write-to-input";
                        });
  }

  // Both counted the same plan: what the card executed must be what the emulator did. Warps of
  // instructions that are not .sync.aligned depend on how lanes came together, threads never do.
  void compare_counts(Verdict& verdict) const {
    std::string differ;
    size_t equal = 0;
    for (const FamilyEvidence& f : verdict.evidence.families) {
      if (f.warps == 0) continue;
      for (const FamilyEvidence& e : emulated_->evidence.families) {
        if (e.family != f.family) continue;
        if (e.threads == f.threads && e.static_count == f.static_count)
          ++equal;
        else
          differ += fmt::format(" {}: {} threads at {} sites on the card, {} at {} emulated;",
                                f.family, f.threads, f.static_count, e.threads, e.static_count);
      }
    }
    if (differ.empty() && equal > 0)
      verdict.notes.push_back(
          fmt::format("executed instructions of {} families equal the emulator's", equal));
    if (!differ.empty()) verdict.notes.push_back("executed instructions differ:" + differ);
  }

  Result<void> time(Verdict& verdict) {
    if (cuda_->info().emulated && !gpu_.timing.emulated) {
      verdict.message = "correct on the required instructions; an emulated driver measures no time";
      return {};
    }
    Stopwatch watch;
    PB_ASSIGN_OR_RETURN(auto candidate,
                        make_contestant(device_options_, plan_, gpu_.timing.launch_s));
    std::unique_ptr<Contestant> baseline;
    if (const auto library = frontier_library(request_.task, request_.axes);
        library && !cuda_->info().emulated) {
      auto made = make_contestant(device_options_, *library, gpu_.timing.launch_s);
      if (!made.ok()) return made.error();
      baseline = made.take();
    }
    TimingDevice timing(cuda_->name(), *candidate, baseline.get(), gpu_.timing,
                        cuda_->info().bus_id);
    Performance p;
    for (int group = 0; group < gpu_.timing.groups; ++group) {
      PB_ASSIGN_OR_RETURN(const bool right, time_group(timing, group, p, verdict));
      if (!right) return {};
    }
    summarise(timing, baseline.get(), p);
    p.empty_launch_ms = cuda_->empty_launch_ms();
    p.floor_ms = roofline_ms(cuda_->info(), verdict.evidence.task_flop,
                             request_.task.requirements.compute_type,
                             compulsory_bytes(request_.task, request_.axes));
    p.speed_of_light = p.candidate_ms > 0 ? p.floor_ms / p.candidate_ms : 0;
    p.implausible = p.candidate_ms < 0.95 * p.floor_ms;
    p.causes = causes(verdict, plan_, cuda_->info(), cuda_->kernels(), p.throttle_reasons);
    judge_performance(p, verdict);
    verdict.performance = std::move(p);
    verdict.stages.push_back({"timing", watch.ms(), false});
    return {};
  }

  // New inputs, timed; all outputs of the candidate compared. False: some were wrong, and the
  // verdict says so.
  Result<bool> time_group(TimingDevice& timing, int group, Performance& p, Verdict& verdict) {
    if (request_.progress)
      request_.progress("timing", static_cast<double>(group) / gpu_.timing.groups);
    EvalRequest request = plan_request();
    request.progress = nullptr;
    request.seed = draw_seed();
    const auto wrong = [&](const Verdict& timed) {
      verdict.level = timed.level;
      verdict.reason = timed.reason;
      verdict.label = timed.label;
      verdict.status = timed.status;
      verdict.correctness = timed.correctness;
      verdict.outputs = timed.outputs;
      verdict.seed = timed.seed;
      verdict.message = "right when it was checked, not when it was timed: " + timed.message;
    };
    const auto values = [&](device::Device& device) {
      return evaluate(request, {toolchain::compile, cudart::record, &device});
    };
    PB_ASSIGN_OR_RETURN(const Verdict timed, values(timing));
    const auto is_right = [](const Verdict& v) {
      return v.correctness && v.correctness->passed && v.level != Level::execution;
    };
    if (!is_right(timed)) return wrong(timed), false;
    ++p.verified;
    const std::vector<TimingDevice::Outputs> others = timing.others;
    for (const TimingDevice::Outputs& outputs : others) {
      FixedOutputs fixed(timing.name(), outputs);
      PB_ASSIGN_OR_RETURN(const Verdict again, values(fixed));
      if (!is_right(again)) return wrong(again), false;
      ++p.verified;
    }
    // The library is trusted, the use made of it is not: its first result is compared as well.
    if (group == 0 && !timing.second_outputs.empty()) {
      FixedOutputs fixed(timing.name(), timing.second_outputs);
      PB_ASSIGN_OR_RETURN(const Verdict library, values(fixed));
      if (!is_right(library))
        return Error{"infrastructure", "the baseline's result is wrong: " + library.message};
    }
    return true;
  }

  const EvalRequest& request_;
  const GpuRequest& gpu_;
  device::CudaOptions device_options_;
  std::unique_ptr<device::CudaDevice> cuda_, oracle_;
  plan::LaunchPlan plan_;
  std::vector<Stage> stages_;
  std::vector<toolchain::Diagnostic> diagnostics_;
  std::optional<Verdict> emulated_;
  std::string not_emulated_;
};

}  // namespace

Result<Verdict> evaluate_on_gpu(const EvalRequest& request, const GpuRequest& gpu) {
  return GpuTrial(request, gpu).run();
}

}  // namespace ptxbench::bench
