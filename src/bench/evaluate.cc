#include "bench/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/hash.h"
#include "base/stopwatch.h"
#include "bench/causes/evaluate_speed.h"
#include "bench/evidence.h"
#include "bench/feedback.h"
#include "bench/host_arguments.h"
#include "bench/judge.h"
#include "bench/launch_manifest.h"
#include "bench/op/operation.h"
#include "bench/op/user_reference.h"
#include "bench/reference_run.h"
#include "bench/repair.h"
#include "numeric/dtype.h"
#include "numeric/random.h"

namespace ptxbench::bench {
namespace {

const char* mode_name(plan::TensorMode mode) {
  switch (mode) {
    case plan::TensorMode::hw:
      return "hw";
    case plan::TensorMode::f32:
      return "f32";
    case plan::TensorMode::fast:
      return "fast";
  }
  return "hw";
}

void report(const EvalRequest& request, const char* what, double fraction = -1) {
  if (request.progress) request.progress(what, fraction);
}

int thread_count(const EvalRequest& request) {
  if (request.threads > 0) return request.threads;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

Verdict start_verdict(const EvalRequest& request) {
  Verdict v;
  v.definition = request.task.definition.name;
  v.workload = request.workload;
  v.published_workload = request.published_workload;
  v.axes = request.axes;
  v.arch = request.arch;
  // A plan does not say what its host code was told.
  if (request.extraction.candidate.kind != Candidate::Kind::plan) v.sm_count = request.sm_count;
  v.candidate = request.extraction.candidate.name;
  v.candidate_hash = request.extraction.candidate.hash;
  v.tensor_mode = mode_name(request.tensor);
  v.async_mode = request.async == plan::AsyncMode::late ? "late" : "eager";
  v.schedule = request.schedule;
  v.races = request.races;
  v.source_file = request.extraction.candidate.file_name;
  v.tag = "G";
  v.stages.push_back({"extract", request.extract_ms, false});
  return v;
}

// What a reader must know about the ruler and about how the values came to be.
void add_caveats(const EvalRequest& request, Verdict& verdict) {
  const std::string& task = request.task.definition.name;
  switch (request.task.admission) {
    case AdmissionState::admitted:
      break;
    case AdmissionState::none:
      verdict.notes.push_back(fmt::format(
          "{} has not been admitted: whether its bounds reject cheats and accept honest "
          "kernels is untested (ptxbench tasks admit {} --write)",
          task, task));
      break;
    case AdmissionState::changed:
      verdict.notes.push_back(
          fmt::format("{} was changed after it had been admitted: its bounds are untested", task));
      break;
    case AdmissionState::rejected:
      verdict.notes.push_back(fmt::format(
          "{} was tested and not admitted: its bounds accept a cheat or reject honest work", task));
      break;
  }
  if (!verdict.correctness || request.tensor == plan::TensorMode::hw) return;
  verdict.notes.push_back(
      fmt::format("tensor cores were computed in mode {} ({}), not in the silicon's arithmetic "
                  "(hw): the errors "
                  "are near those of a GPU, not the same",
                  mode_name(request.tensor),
                  request.tensor == plan::TensorMode::f32 ? "fp32 in a fixed order of K"
                                                          : "the CPU's bf16 dot products"));
}

Verdict& finish_verdict(const EvalRequest& request, const Stopwatch& total, Verdict& verdict) {
  add_caveats(request, verdict);
  verdict.feedback = make_feedback(verdict, request.extraction.candidate.source);
  verdict.total_ms = total.ms() + request.extract_ms;
  return verdict;
}

// Certain before uncertain, causes before what follows from them: reading too early makes
// everything behind it late, so an overwritten operand is often its consequence.
int rank(const plan::Finding& finding) {
  const std::string reason = reason_of_finding(finding.kind);
  if (reason == "memory-fault") return 0;
  if (finding.kind == "async-early-read") return 1;
  return reason == "race" ? 2 : 3;
}

void sort_findings(std::vector<plan::Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const plan::Finding& a, const plan::Finding& b) {
                     return std::pair(a.hazard, rank(a)) < std::pair(b.hazard, rank(b));
                   });
}

// Ghost replays cost as much as the replay itself; sizes up to this get them.
constexpr double kGhostFlop = 2e10;

size_t element_bytes(const Tensor& tensor) { return numeric::dtype_size(tensor.type); }

// Everything between the plan and the verdict.
class Trial {
 public:
  Trial(const EvalRequest& request, const Services& services, Verdict& verdict)
      : request_(request),
        services_(services),
        device_(*services.device),
        verdict_(verdict),
        threads_(thread_count(request)),
        kept_(request.kept ? request.kept : std::make_shared<KeptWork>()) {}

  const Seed& seed() const { return seed_; }
  enum class Depth { values, dependence };
  Result<void> run(const plan::LaunchPlan& plan, Depth depth = Depth::dependence) {
    PB_RETURN_IF_ERROR(prepare());
    Stopwatch watch;
    verdict_.device = device_.name();
    PB_ASSIGN_OR_RETURN(plan::RunResult run, replay(plan, outputs_, plan::Ghost::none));
    verdict_.stages.push_back({"replay", watch.ms(), false});
    verdict_.findings = run.findings;
    verdict_.kernels = run.kernels;
    add_input_findings();
    sort_findings(verdict_.findings);
    verdict_.evidence = collect_evidence(request_.task, request_.arch, flop_, run);
    verdict_.tag = published_tag(verdict_.evidence);
    if (run.status == plan::RunStatus::unsupported) return Error{"unsupported", run.message};
    if (run.status != plan::RunStatus::completed) {
      judge_stopped_run(run, verdict_);
      return {};
    }
    PB_RETURN_IF_ERROR(compare());
    note_repairs(plan);
    judge_completed_run(request_.task, verdict_);
    if (depth == Depth::dependence && verdict_.level == Level::strategy && flop_ <= kGhostFlop)
      return check_dependence(plan);
    return {};
  }

 private:
  // Instructions may be executed for show. So each required kind is left out once, and the output
  // must not stay what it was.
  Result<void> check_dependence(const plan::LaunchPlan& plan) {
    report(request_, "ghost replay");
    Stopwatch watch;
    std::optional<plan::Ghost> last;
    double changed = 0;
    for (FamilyEvidence& family : verdict_.evidence.families) {
      if (!family.required) continue;
      const plan::Ghost ghost = family.family.find("tensor.load") != std::string::npos
                                    ? plan::Ghost::tensor_load
                                    : plan::Ghost::matrix;
      if (last != ghost) {
        PB_ASSIGN_OR_RETURN(changed, changed_share(plan, ghost));
      }
      last = ghost;
      family.depends = changed;
    }
    verdict_.stages.push_back({"ghost", watch.ms(), false});
    judge_dependence(verdict_);
    return {};
  }

  // Share of the output's elements that differ when `ghost` is left out; zeros, which it would
  // leave as they are, do not count.
  Result<double> changed_share(const plan::LaunchPlan& plan, plan::Ghost ghost) {
    PB_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                        make_outputs(request_.task.definition, request_.axes, poison_));
    PB_ASSIGN_OR_RETURN(plan::RunResult run, replay(plan, outputs, ghost));
    if (run.status != plan::RunStatus::completed) return 1.0;  // control depends on it
    uint64_t counted = 0, changed = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const size_t element = element_bytes(outputs[i]);
      for (size_t at = 0; at + element <= outputs[i].bytes.size(); at += element) {
        const uint8_t* was = outputs_[i].bytes.data() + at;
        if (std::all_of(was, was + element, [](uint8_t byte) { return byte == 0; })) continue;
        ++counted;
        changed += std::memcmp(was, outputs[i].bytes.data() + at, element) != 0;
      }
    }
    return counted == 0 ? 1.0 : static_cast<double>(changed) / static_cast<double>(counted);
  }

  // The seed is drawn here: the candidate is frozen in a recorded plan by now.
  Result<void> prepare() {
    report(request_, "inputs");
    Stopwatch watch;
    seed_ = request_.seed ? *request_.seed : draw_seed();
    verdict_.seed = to_hex(seed_);
    poison_ = poison_pattern(seed_);
    PB_RETURN_IF_ERROR(choose_operation());
    flop_ = operation_->flop(request_.task.definition, request_.axes);
    PB_ASSIGN_OR_RETURN(outputs_, make_outputs(request_.task.definition, request_.axes, poison_));
    if (kept_->seed != seed_) {
      *kept_ = KeptWork();
      PB_ASSIGN_OR_RETURN(kept_->inputs, operation_->inputs(request_.task.definition, request_.axes,
                                                            seed_, threads_, Distribution::mixed));
      // The folder's own operation has read its blobs already.
      if (!user_) PB_RETURN_IF_ERROR(apply_sources(request_.inputs, kept_->inputs));
      for (const Tensor& input : kept_->inputs)
        kept_->hashes.push_back(hash_hex(std::span<const uint8_t>(input.bytes)));
      kept_->seed = seed_;
    }
    verdict_.stages.push_back({"inputs", watch.ms(), false});
    return {};
  }

  Result<void> choose_operation() {
    if (uses_user_reference(request_.task)) {
      user_ = std::make_unique<UserReference>(
          request_.task, request_.inputs,
          [this](const Problem& problem) { return run_reference(problem, request_, services_); });
      operation_ = user_.get();
      return {};
    }
    PB_ASSIGN_OR_RETURN(operation_, operation_of(request_.task.definition));
    return {};
  }

  Result<plan::RunResult> replay(const plan::LaunchPlan& plan, std::vector<Tensor>& outputs,
                                 plan::Ghost ghost) {
    if (ghost == plan::Ghost::none) report(request_, "replay", 0);
    std::vector<device::Binding> bindings;
    for (Tensor& input : kept_->inputs)
      if (!input.spec.scalar) bindings.push_back({input.bytes, true, true});
    for (Tensor& output : outputs) bindings.push_back({output.bytes, false, false});
    plan::RunOptions options;
    options.ghost = ghost;
    options.tensor = request_.tensor;
    options.async = request_.async;
    options.threads = threads_;
    options.wall_budget_s = request_.timeout_s;
    options.schedule = request_.schedule;
    if (ghost == plan::Ghost::none) {
      options.progress = request_.progress;
      options.races = request_.races;
    }
    return device_.replay(plan, bindings, options);
  }

  // The device guards inputs; this is the second lock.
  void add_input_findings() {
    for (size_t i = 0; i < kept_->inputs.size(); ++i) {
      if (hash_hex(std::span<const uint8_t>(kept_->inputs[i].bytes)) == kept_->hashes[i]) continue;
      plan::Finding finding;
      finding.kind = "read-only-input-changed";
      finding.message = fmt::format("input {} was changed", kept_->inputs[i].spec.name);
      verdict_.findings.push_back(std::move(finding));
    }
  }

  Result<void> compare() {
    report(request_, "reference", 0);
    const Definition& definition = request_.task.definition;
    std::vector<Comparator> comparators;
    double elements = 0, compared = 0, compare_ms = 0;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const auto& tolerances = request_.task.calibration.tolerances;
      const auto tolerance = tolerances.find(outputs_[i].spec.name);
      comparators.emplace_back(outputs_[i].type, outputs_[i].bytes,
                               operation_->view(definition, request_.axes, i),
                               poison_bits(outputs_[i].type, poison_),
                               tolerance == tolerances.end() ? Tolerance{} : tolerance->second);
      elements += static_cast<double>(outputs_[i].bytes.size() / element_bytes(outputs_[i]));
    }
    Stopwatch watch;
    const Problem problem{definition, request_.axes, kept_->inputs};
    PB_RETURN_IF_ERROR(right_blocks(problem, [&](const ReferenceBlock& block) {
      Stopwatch compare_watch;
      comparators[block.output].add_block(block.first_row, block.count, block.values, threads_,
                                          block.noise);
      compare_ms += compare_watch.ms();
      compared += static_cast<double>(block.values.size());
      report(request_, "reference", compared / elements);
    }));
    const double reference_ms = watch.ms() - compare_ms;
    std::vector<std::vector<uint64_t>> bad_tiles;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      Correctness correctness = comparators[i].finish();
      correctness.output = outputs_[i].spec.name;
      correctness.shape = outputs_[i].shape;
      const Calibration& calibration = request_.task.calibration;
      decide(calibration, axis_value(request_.axes, calibration.reduction_axis), correctness);
      bad_tiles.push_back(comparators[i].locate(correctness));
      verdict_.outputs.push_back(std::move(correctness));
    }
    verdict_.stages.push_back({"reference", reference_ms, false});
    verdict_.stages.push_back({"compare", watch.ms() - reference_ms, false});
    explain(problem, bad_tiles);
    verdict_.correctness = deciding_output(verdict_.outputs);
    return {};
  }

  Result<void> right_blocks(const Problem& problem, const ReferenceSink& sink) {
    for (const KeptWork::Block& b : kept_->blocks)
      sink({b.output, b.first_row, b.count, b.values, b.noise});
    if (!kept_->blocks.empty()) return {};
    std::vector<KeptWork::Block> blocks;
    PB_RETURN_IF_ERROR(operation_->reference(problem, threads_, [&](const ReferenceBlock& b) {
      sink(b);
      if (request_.kept)
        blocks.push_back({b.output,
                          b.first_row,
                          b.count,
                          {b.values.begin(), b.values.end()},
                          {b.noise.begin(), b.noise.end()}});
    }));
    kept_->blocks = std::move(blocks);
    return {};
  }

  // What was not written needs no explanation beyond that.
  void explain(const Problem& problem, const std::vector<std::vector<uint64_t>>& bad_tiles) {
    Stopwatch watch;
    bool tried = false;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      Correctness& c = verdict_.outputs[i];
      if (c.passed || c.poisoned > 0) continue;
      c.explanation = operation_->explain(problem, outputs_, i, bad_tiles[i]);
      tried = true;
    }
    if (tried) verdict_.stages.push_back({"explain", watch.ms(), false});
  }

  // What the assembler mends costs speed: a cause to name at level 5, never a level of its own.
  void note_repairs(const plan::LaunchPlan& plan) {
    for (const plan::Finding& finding : verdict_.findings)
      if (finding.hazard == plan::HazardClass::repaired)
        verdict_.notes.push_back(
            fmt::format("the assembler repairs {}:{} ({}), which serialises or delays it{}",
                        finding.file, finding.line, finding.kind, proof_of_repair(plan, finding)));
    for (const toolchain::Diagnostic& d : verdict_.diagnostics)
      if (d.severity == toolchain::Diagnostic::Severity::advisory)
        verdict_.notes.push_back(fmt::format("ptxas {}: {}", d.code, d.text));
  }

  // What assembling the kernel with the missing instruction shows; "" where that cannot be tried.
  std::string proof_of_repair(const plan::LaunchPlan& plan, const plan::Finding& finding) const {
    const auto assemble = [this](toolchain::CompileRequest request) {
      request.cache_dir = request_.cache_dir;
      request.trust = request_.trust;
      return services_.compile(request);
    };
    for (const plan::Module& module : plan.modules) {
      if (module.ptx.find(".entry " + finding.kernel) == std::string::npos) continue;
      const Result<Repair> tried = reassemble(module.ptx, finding, request_.arch, assemble);
      if (!tried.ok() || *tried == Repair::not_tried) return "";
      return *tried == Repair::same
                 ? "; with the instruction in place it makes the same machine code"
                 : "; with the instruction in place the machine code is another";
    }
    return "";
  }

  const EvalRequest& request_;
  const Services& services_;
  device::Device& device_;
  Verdict& verdict_;
  int threads_;
  const Operation* operation_ = nullptr;
  std::unique_ptr<Operation> user_;  // where it is the folder's own
  Seed seed_;
  uint16_t poison_ = 0;
  double flop_ = 0;
  std::shared_ptr<KeptWork> kept_;
  std::vector<Tensor> outputs_;
};

// A candidate without host code: its manifest says what to launch.
Result<cudart::RecordOutcome> plan_of_manifest(const EvalRequest& request,
                                               toolchain::CompiledCandidate compiled,
                                               std::vector<Stage>& stages) {
  Stopwatch watch;
  ManifestRequest manifest;
  manifest.manifest = request.extraction.candidate.manifest;
  manifest.ptx = std::move(compiled.ptx);
  manifest.cubin = std::move(compiled.cubin);
  manifest.arch = request.arch;
  manifest.device_profile = request.device_profile;
  manifest.definition = request.task.definition.name;
  manifest.axes = request.axes;
  manifest.sm_count = request.sm_count;
  PB_ASSIGN_OR_RETURN(HostArguments arguments,
                      host_arguments(request.task.definition, request.axes, request.inputs));
  manifest.arguments = std::move(arguments.tensors);
  auto outcome = plan_from_manifest(manifest);
  stages.push_back({"manifest", watch.ms(), false});
  return outcome;
}

// One size that is not asked for: each variable axis up to a tile of 128 away, seldom a multiple of
// more than it must be. Drawn from the verdict's seed, so that a run can be repeated.
AxisValues held_out_axes(const EvalRequest& request, const Seed& seed) {
  constexpr uint64_t kStream = uint64_t{1} << 63;  // no input's
  const numeric::Random random(seed, kStream);
  uint64_t draws = 0;
  AxisValues axes = request.axes;
  const std::vector<std::string> derived = derive_axes(request.task.definition, axes);
  for (const Axis& axis : request.task.definition.axes) {
    if (axis.constant || std::find(derived.begin(), derived.end(), axis.name) != derived.end())
      continue;
    for (auto& [name, value] : axes) {
      if (name != axis.name) continue;
      const int64_t unit = axis_multiple(request.task.definition, name);
      const int64_t asked = value / unit;
      // Not so far that a few sequences become hundreds.
      const int64_t reach = std::min((128 + unit - 1) / unit, std::max<int64_t>(asked, 16));
      const int64_t low = std::max<int64_t>(1, asked - reach);
      while (value == asked * unit)
        value = unit * (low + static_cast<int64_t>(random.below(
                                  draws++, static_cast<uint64_t>(asked + reach - low + 1))));
    }
  }
  derive_axes(request.task.definition, axes);
  return axes;
}

}  // namespace

Result<Recording> compile_and_record(const EvalRequest& request, const Services& services) {
  Stopwatch total;
  Recording recording;
  Verdict verdict = start_verdict(request);
  const Candidate& candidate = request.extraction.candidate;
  auto fail = [&]() -> Recording {
    verdict.stages.insert(verdict.stages.end(), recording.stages.begin(), recording.stages.end());
    verdict.diagnostics = recording.diagnostics;
    recording.verdict = finish_verdict(request, total, verdict);
    return std::move(recording);
  };
  if (!request.extraction.ok) {
    judge_extraction(request.extraction.reason, request.extraction.message, verdict);
    return fail();
  }
  report(request, "compile");
  toolchain::CompileRequest compile;
  compile.source = candidate.source;
  compile.file_name = candidate.file_name;
  compile.include_dirs = candidate.include_dirs;
  compile.extra_files = candidate.extra_files;
  compile.is_ptx = candidate.kind == Candidate::Kind::ptx;
  compile.arch = request.arch;
  compile.cache_dir = request.cache_dir;
  compile.trust = request.trust;
  PB_ASSIGN_OR_RETURN(toolchain::CompiledCandidate compiled, services.compile(compile));
  for (const toolchain::StageTime& stage : compiled.stages)
    recording.stages.push_back({stage.name, stage.ms, stage.cached});
  recording.diagnostics = compiled.diagnostics;
  recording.resources = compiled.kernels;
  if (!compiled.ok) {
    judge_compile(compiled, verdict);
    return fail();
  }
  if (candidate.kind == Candidate::Kind::ptx) {
    PB_ASSIGN_OR_RETURN(cudart::RecordOutcome outcome,
                        plan_of_manifest(request, std::move(compiled), recording.stages));
    if (!outcome.ok) {
      judge_record(outcome, verdict);
      return fail();
    }
    recording.plan = std::move(outcome.plan);
    return recording;
  }
  report(request, "record");
  cudart::RecordRequest record;
  record.host_library = compiled.host_library;
  record.ptx = std::move(compiled.ptx);
  record.cubin = std::move(compiled.cubin);
  record.entry_point = candidate.entry_point;
  record.arch = request.arch;
  record.device_profile = request.device_profile;
  record.sm_count = request.sm_count;
  record.definition = request.task.definition.name;
  record.axes = request.axes;
  record.trust = request.trust;
  PB_ASSIGN_OR_RETURN(HostArguments arguments,
                      host_arguments(request.task.definition, request.axes, request.inputs));
  record.arguments = std::move(arguments.tensors);
  record.scalars = std::move(arguments.scalars);
  Stopwatch watch;
  PB_ASSIGN_OR_RETURN(cudart::RecordOutcome outcome, services.record(record));
  recording.stages.push_back({"record", watch.ms(), false});
  if (outcome.ok) {
    recording.plan = std::move(outcome.plan);
    return recording;
  }
  if (outcome.reason == "unsupported-runtime-call") return Error{"unsupported", outcome.message};
  judge_record(outcome, verdict);
  return fail();
}

static Result<void> try_held_out(const EvalRequest& request, const Services& services,
                                 const Seed& seed, Verdict& verdict) {
  report(request, "held-out size");
  Stopwatch watch;
  EvalRequest other = request;
  other.axes = held_out_axes(request, seed);
  other.workload = "";
  other.held_out = false;
  other.progress = nullptr;
  Verdict second = start_verdict(other);
  PB_ASSIGN_OR_RETURN(Recording recording, compile_and_record(other, services));
  if (recording.verdict) {
    second = std::move(*recording.verdict);
  } else {
    Trial trial(other, services, second);
    PB_RETURN_IF_ERROR(trial.run(recording.plan, Trial::Depth::values));
  }
  verdict.held_out = HeldOut{other.axes, second.level, second.reason};
  if (second.level < Level::strategy) judge_held_out(second, verdict);
  verdict.stages.push_back({"held-out", watch.ms(), false});
  return {};
}

Result<Verdict> evaluate(const EvalRequest& request, const Services& services) {
  Stopwatch total;
  Verdict verdict = start_verdict(request);
  PB_ASSIGN_OR_RETURN(double flop, task_flop(request.task, request.axes));
  const Candidate& candidate = request.extraction.candidate;
  plan::LaunchPlan plan;
  AssembledKernels kernels;
  if (request.extraction.ok && candidate.kind == Candidate::Kind::plan) {
    if (auto checked = check_plan(candidate.plan, request.task.definition, request.axes,
                                  request.inputs, request.arch);
        !checked.ok())
      return Error{checked.error().kind,
                   fmt::format("{}: {}", candidate.name, checked.error().message)};
    plan = candidate.plan;
  } else {
    PB_ASSIGN_OR_RETURN(Recording recording, compile_and_record(request, services));
    if (recording.verdict) return std::move(*recording.verdict);
    verdict.stages.insert(verdict.stages.end(), recording.stages.begin(), recording.stages.end());
    verdict.diagnostics = std::move(recording.diagnostics);
    kernels = assembled_kernels(recording.resources, verdict.diagnostics);
    plan = std::move(recording.plan);
  }
  Trial trial(request, services, verdict);
  const auto depth = request.dependence ? Trial::Depth::dependence : Trial::Depth::values;
  if (auto ran = trial.run(plan, depth); !ran.ok()) {
    if (candidate.kind != Candidate::Kind::plan) return ran.error();
    return Error{ran.error().kind, fmt::format("{}: {}", candidate.name, ran.error().message)};
  }
  // A plan has the size that it was recorded with; a published workload is what it is.
  // Blobs have their sizes, too.
  const bool from_blobs = std::any_of(
      request.inputs.begin(), request.inputs.end(),
      [](const auto& input) { return input.second.kind == InputSource::Kind::safetensors; });
  if (request.held_out && verdict.level == Level::strategy && !request.published_workload &&
      !from_blobs && candidate.kind != Candidate::Kind::plan && flop <= kGhostFlop) {
    PB_RETURN_IF_ERROR(try_held_out(request, services, trial.seed(), verdict));
  }
  if (request.estimate && verdict.level == Level::strategy) {
    report(request, "estimate");
    Stopwatch watch;
    add_speed_report(request, services, plan, kernels, verdict);
    verdict.stages.push_back({"estimate", watch.ms(), false});
  }
  return finish_verdict(request, total, verdict);
}

}  // namespace ptxbench::bench
