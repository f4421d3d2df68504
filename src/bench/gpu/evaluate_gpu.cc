#include "bench/gpu/evaluate_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/stopwatch.h"
#include "bench/causes/evaluate_speed.h"
#include "bench/feedback.h"
#include "bench/gpu/machine_code.h"
#include "bench/gpu/measure.h"
#include "bench/gpu/reference.h"
#include "bench/judge.h"
#include "bench/op/operation.h"
#include "numeric/random.h"

namespace ptxbench::bench {
namespace {

constexpr double kEmulatedFlop = 2e10;  // what the emulator can afford beside a GPU

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
    reference.keep_workers = true;
    PB_ASSIGN_OR_RETURN(oracle_, device::CudaDevice::open(reference));
    const ReferenceOnDevice on_device(*oracle_);
    PB_ASSIGN_OR_RETURN(std::optional<Verdict> early, get_plan());
    if (early) return std::move(*early);
    PB_RETURN_IF_ERROR(emulate());
    seed_ = request_.seed ? *request_.seed : draw_seed();
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
    if (verdict.level >= Level::strategy) {
      auto emulator = device::make_emu_device(request_.device_profile);
      add_speed_report(plan_request(), real_services(*emulator), plan_, kernels_, verdict);
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
    kernels_ = assembled_kernels(recording.resources, diagnostics_);
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
    request.estimate = false;  // once is enough: run()
    request.timeout_s = device_options_.launch_s;
    request.progress = nullptr;
    // One set of inputs, drawn now that the candidate is frozen, and one reference for all that
    // follows.
    request.seed = seed_;
    request.kept = kept_;
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
    request.estimate = false;
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
    if (cuda_->options().from_ptx != device_options_.from_ptx) {
      PB_ASSIGN_OR_RETURN(cuda_, device::CudaDevice::open(device_options_));
    }
    const EvalRequest request = plan_request();
    PB_ASSIGN_OR_RETURN(Verdict verdict,
                        evaluate(request, {toolchain::compile, cudart::record, cuda_.get()}));
    verdict.stages.insert(verdict.stages.begin() + 1, stages_.begin(), stages_.end());
    verdict.diagnostics = diagnostics_;
    look_at_machine_code(verdict);
    if (cuda_->differing_maps() > 0)
      verdict.notes.push_back(
          fmt::format("{} tensor maps are encoded otherwise by this driver ({})",
                      cuda_->differing_maps(), cuda_->map_difference()));
    return verdict;
  }

  // Counts come from rewritten PTX: what was assembled from the PTX as it is must hold the
  // instructions, too.
  void look_at_machine_code(Verdict& verdict) const {
    std::set<std::string> kernels;
    for (const plan::Step& step : plan_.steps)
      if (const auto* launch = std::get_if<plan::Launch>(&step)) kernels.insert(launch->kernel);
    const auto& images = cuda_->images();
    if (kernels.empty() || images.empty()) return;
    if (std::any_of(images.begin(), images.end(),
                    [](const auto& image) { return image.empty(); })) {
      if (!cuda_->info().emulated)
        verdict.notes.push_back("the machine code was not looked at: the driver does not give it");
      return;
    }
    auto sites = machine_sites(images, kernels);
    if (!sites.ok())
      verdict.notes.push_back("the machine code was not looked at: " + sites.error().message);
    else
      judge_machine_code(*sites, verdict);
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
    const std::unique_ptr<Contestant> baseline = open_baseline(verdict);
    PB_ASSIGN_OR_RETURN(const TimingOptions options, timing_options(verdict));
    TimingDevice timing(cuda_->name(), *candidate, baseline.get(), options, cuda_->info().bus_id);
    if (request_.progress) request_.progress("timing", 0);
    PB_ASSIGN_OR_RETURN(const bool right, judge_timed(timing, verdict));
    if (!right) return {};
    Performance p;
    p.verified = timing.equal + timing.others.size();
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

  // The library, once its result has been compared with fp64; null with a note where there is none
  // or it does not do this.
  std::unique_ptr<Contestant> open_baseline(Verdict& verdict) {
    const auto library = frontier_library(request_.task, request_.axes);
    if (!library || cuda_->info().emulated) return nullptr;
    auto made = make_contestant(device_options_, *library, gpu_.timing.launch_s);
    std::string why;
    if (!made.ok()) {
      why = made.error().message;
    } else {
      ContestantDevice device(cuda_->name(), **made);
      auto checked = evaluate(plan_request(), {toolchain::compile, cudart::record, &device});
      if (checked.ok() && checked->correctness && checked->correctness->passed) return made.take();
      why = (*made)->description() + " is not what the task asks for: " +
            (checked.ok() ? checked->message : checked.error().message);
    }
    verdict.notes.push_back("no baseline: " + why);
    return nullptr;
  }

  // With what the operation says of contents that can be moved.
  Result<TimingOptions> timing_options(Verdict& verdict) const {
    TimingOptions options = gpu_.timing;
    const Definition& definition = request_.task.definition;
    const auto operation = operation_of(definition);
    const Rotation rotation =
        operation.ok() ? (*operation)->rotation(definition, request_.axes) : Rotation();
    if (rotation.units < 2) {
      verdict.notes.push_back("all timed launches had the same contents, at new addresses");
      return options;
    }
    options.pieces = static_cast<uint64_t>(rotation.units);
    size_t argument = 0;
    for (const auto* tensors : {&definition.inputs, &definition.outputs})
      for (const TensorSpec& spec : *tensors) {
        if (spec.scalar) continue;  // no buffer of the plan's
        PB_ASSIGN_OR_RETURN(const uint64_t bytes, tensor_bytes(spec));
        options.piece_bytes.push_back(rotation.moves[argument++] ? bytes / options.pieces : 0);
      }
    return options;
  }

  Result<uint64_t> tensor_bytes(const TensorSpec& spec) const {
    PB_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, resolve_shape(spec, request_.axes));
    const auto type = numeric::dtype_from_name(spec.dtype);
    uint64_t bytes = type ? numeric::dtype_size(*type) : 0;
    for (const int64_t size : shape) bytes *= static_cast<uint64_t>(size);
    return bytes;
  }

  // Times everything and compares all outputs of the candidate. False: some were wrong, and the
  // verdict says so.
  Result<bool> judge_timed(TimingDevice& timing, Verdict& verdict) {
    const EvalRequest request = plan_request();
    const auto is_right = [&](device::Device& device) -> Result<bool> {
      PB_ASSIGN_OR_RETURN(const Verdict timed,
                          evaluate(request, {toolchain::compile, cudart::record, &device}));
      if (timed.correctness && timed.correctness->passed && timed.level != Level::execution)
        return true;
      verdict.level = timed.level;
      verdict.reason = timed.reason;
      verdict.label = timed.label;
      verdict.status = timed.status;
      verdict.correctness = timed.correctness;
      verdict.outputs = timed.outputs;
      verdict.message = "right when it was checked, not when it was timed: " + timed.message;
      return false;
    };
    PB_ASSIGN_OR_RETURN(bool right, is_right(timing));
    for (size_t i = 0; right && i < timing.others.size(); ++i) {
      FixedOutputs fixed(timing.name(), timing.others[i]);
      PB_ASSIGN_OR_RETURN(right, is_right(fixed));
    }
    return right;
  }

  const EvalRequest& request_;
  const GpuRequest& gpu_;
  device::CudaOptions device_options_;
  std::unique_ptr<device::CudaDevice> cuda_, oracle_;
  plan::LaunchPlan plan_;
  std::vector<Stage> stages_;
  std::vector<toolchain::Diagnostic> diagnostics_;
  Seed seed_;
  std::shared_ptr<KeptWork> kept_ = std::make_shared<KeptWork>();
  AssembledKernels kernels_;
  std::optional<Verdict> emulated_;
  std::string not_emulated_;
};

}  // namespace

Result<Verdict> evaluate_on_gpu(const EvalRequest& request, const GpuRequest& gpu) {
  return GpuTrial(request, gpu).run();
}

}  // namespace ptxbench::bench
