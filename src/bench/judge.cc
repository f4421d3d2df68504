#include "bench/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bench/evidence.h"
#include "bench/feedback.h"

namespace ptxbench::bench {
namespace {

struct Outcome {
  Level level;
  const char* reason;
  const char* label;
  const char* status;
};

void set(Verdict& verdict, const Outcome& outcome, std::string message) {
  verdict.level = outcome.level;
  verdict.reason = outcome.reason;
  verdict.label = outcome.label;
  verdict.status = outcome.status;
  verdict.message = std::move(message);
}

bool contains(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}

const plan::Finding* first_of(const Verdict& verdict, plan::HazardClass hazard) {
  for (const plan::Finding& finding : verdict.findings)
    if (finding.hazard == hazard) return &finding;
  return nullptr;
}

// Label and status by the published rules only: what the values are, whatever else was found.
void label_by_values(Verdict& verdict) {
  const bool right = verdict.correctness && verdict.correctness->rule_a_passed;
  verdict.label = right ? "Correct" : "Numerical error";
  verdict.status = right ? "PASSED" : "INCORRECT_NUMERICAL";
}

// Where the candidate's author looks first: inside a header of the toolkit, that is the line of the
// candidate that was inlined around it.
std::string describe(const plan::Finding& finding, const Verdict& verdict) {
  if (finding.file.empty()) return finding.message;
  std::pair<std::string, int> at = {finding.file, finding.line};
  if (!is_source_file(finding.file, verdict)) {
    for (const auto& outer : finding.inlined_at) {
      if (!is_source_file(outer.first, verdict)) continue;
      at = outer;
      break;
    }
  }
  const std::string place =
      fmt::format("{}:{}", std::filesystem::path(at.first).filename().string(), at.second);
  // An assertion says itself where it stands.
  const size_t last_word = finding.message.find_last_of(" /") + 1;
  if (finding.message.compare(last_word, std::string::npos, place) == 0) return finding.message;
  return finding.message + " at " + place;
}

// Public, fast kernels break these rules too, so a latent finding alone leaves the published label
// as it is and the reason says that it is latent.
void judge_latent(const plan::Finding& finding, Verdict& verdict) {
  verdict.level = Level::execution;
  verdict.reason = "latent-" + reason_of_finding(finding.kind);
  verdict.message =
      fmt::format("may break on another chip or compiler: {}", describe(finding, verdict));
  if (verdict.correctness && !verdict.correctness->passed)
    verdict.message += "; here the values are wrong too: " + verdict.correctness->why;
}

}  // namespace

std::string reason_of_finding(const std::string& kind) {
  if (kind == "deadlock" || kind == "carried-state" || kind == "launch-refused") return kind;
  for (const char* word :
       {"out-of-bounds", "misaligned", "freed", "read-only", "write-to-input", "uninitialized",
        "uninitialised", "memory", "null", "guard", "unmapped", "address"})
    if (contains(kind, word)) return "memory-fault";
  for (const char* word : {"race", "async-", "in-flight", "early-read"})
    if (contains(kind, word)) return "race";
  for (const char* word : {"assert", "trap"})
    if (contains(kind, word)) return "trap";
  return "protocol-breach";
}

void judge_extraction(const std::string& reason, const std::string& message, Verdict& verdict) {
  set(verdict, {Level::extraction, reason.c_str(), "Extraction error", "COMPILE_ERROR"}, message);
}

void judge_compile(const toolchain::CompiledCandidate& compiled, Verdict& verdict) {
  std::string message = "the candidate does not compile";
  for (const toolchain::Diagnostic& d : compiled.diagnostics) {
    if (d.severity != toolchain::Diagnostic::Severity::error) continue;
    message = d.line > 0 ? fmt::format("{}:{}: {}", d.file, d.line, d.text) : d.text;
    break;
  }
  const std::string reason =
      compiled.failure_reason.empty() ? "does-not-compile" : compiled.failure_reason;
  set(verdict, {Level::syntax, reason.c_str(), "Compilation error", "COMPILE_ERROR"}, message);
}

void judge_record(const cudart::RecordOutcome& outcome, Verdict& verdict) {
  struct Row {
    const char* recorded;
    Outcome outcome;
  };
  static const Row kRows[] = {
      {"entry-point-missing",
       {Level::syntax, "entry-point-missing", "Runtime error", "RUNTIME_ERROR"}},
      {"wrong-arguments", {Level::syntax, "wrong-arguments", "Runtime error", "RUNTIME_ERROR"}},
      {"host-nondeterministic",
       {Level::syntax, "host-nondeterministic", "Other error", "RUNTIME_ERROR"}},
      {"bad-launch-manifest",
       {Level::syntax, "bad-launch-manifest", "Compilation error", "COMPILE_ERROR"}},
      {"result-readback", {Level::syntax, "banned-call", "Other error", "RUNTIME_ERROR"}},
      {"host-timeout", {Level::execution, "timeout", "Kernel Execution Timeout", "TIMEOUT"}},
      {"host-crash", {Level::execution, "host-crash", "Runtime error", "RUNTIME_ERROR"}},
      {"host-exception", {Level::execution, "host-exception", "Runtime error", "RUNTIME_ERROR"}},
      {"launch-refused", {Level::execution, "launch-refused", "Runtime error", "RUNTIME_ERROR"}},
      {"no-launch", {Level::execution, "no-output", "Numerical error", "INCORRECT_NUMERICAL"}},
  };
  for (const Row& row : kRows)
    if (outcome.reason == row.recorded) return set(verdict, row.outcome, outcome.message);
  set(verdict, {Level::syntax, outcome.reason.c_str(), "Other error", "RUNTIME_ERROR"},
      outcome.message);
}

void judge_stopped_run(const plan::RunResult& run, Verdict& verdict) {
  const plan::Finding* fatal = first_of(verdict, plan::HazardClass::fatal);
  const std::string cause = fatal != nullptr ? describe(*fatal, verdict) : run.message;
  switch (run.status) {
    case plan::RunStatus::deadlock:
      return set(verdict, {Level::execution, "deadlock", "Kernel Execution Timeout", "TIMEOUT"},
                 run.message.empty() ? cause : run.message);
    case plan::RunStatus::step_budget:
    case plan::RunStatus::wall_budget:
      return set(verdict, {Level::execution, "timeout", "Kernel Execution Timeout", "TIMEOUT"},
                 run.message.empty() ? "the kernel did not end within its budget" : run.message);
    default:
      break;
  }
  const std::string reason = fatal != nullptr ? reason_of_finding(fatal->kind) : "memory-fault";
  set(verdict, {Level::execution, reason.c_str(), "Runtime error", "RUNTIME_ERROR"}, cause);
}

void judge_completed_run(const Task& task, Verdict& verdict) {
  const Correctness& c = *verdict.correctness;
  label_by_values(verdict);
  if (const plan::Finding* fatal = first_of(verdict, plan::HazardClass::fatal)) {
    verdict.level = Level::execution;
    verdict.reason = reason_of_finding(fatal->kind);
    verdict.message = describe(*fatal, verdict);
    if (verdict.reason == "memory-fault") {
      verdict.label = "Runtime error";
      verdict.status = "RUNTIME_ERROR";
    }
    return;
  }
  if (c.poisoned > 0) {
    verdict.level = Level::execution;
    verdict.reason = "no-output";
    verdict.message = c.why;
    return;
  }
  if (const plan::Finding* latent = first_of(verdict, plan::HazardClass::latent))
    return judge_latent(*latent, verdict);
  if (c.passed != c.rule_a_passed)
    verdict.notes.push_back(
        c.passed
            ? fmt::format("the published 1e-2 rule rejects these values ({} elements); the error "
                          "against fp64 is that of an honest kernel",
                          c.rule_a_failures)
            : "the published 1e-2 rule accepts these values; the error against fp64 does not");
  if (!c.passed) {
    verdict.level = Level::numerics;
    verdict.reason = "numerics";
    verdict.message =
        c.why + (c.explanation.kind.empty() ? "" : "; it looks like " + c.explanation.text);
    return;
  }
  const EvidenceDecision evidence = decide_evidence(task, verdict.arch, verdict.evidence);
  if (!evidence.ok) {
    verdict.level = Level::instructions;
    verdict.reason = evidence.reason;
    verdict.message = evidence.message;
    return;
  }
  verdict.level = Level::strategy;
  verdict.reason = "not-timed";
  verdict.message = "correct on the required instructions; the emulator measures no time";
}

void judge_dependence(Verdict& verdict) {
  // An honest output depends on it everywhere; a few elements may come out equal by rounding.
  constexpr double kLeastShare = 0.98;
  for (const FamilyEvidence& family : verdict.evidence.families) {
    if (!family.depends || *family.depends >= kLeastShare) continue;
    verdict.level = Level::instructions;
    verdict.reason = "instructions-unused";
    verdict.message = fmt::format(
        "{} is executed, but {:.1f} % of the output stays the same when it does nothing",
        family.family, 100 * (1 - *family.depends));
    return;
  }
}

// Held-out sizes: what a candidate does only where it is looked at.
void judge_held_out(const Verdict& held_out, Verdict& verdict) {
  verdict.level = held_out.level;
  verdict.reason = held_out.reason;
  std::string axes;
  for (const auto& [axis, value] : held_out.axes)
    if (axis_value(verdict.axes, axis) != value)
      axes += fmt::format("{}{}={}", axes.empty() ? "" : " ", axis, value);
  verdict.message =
      fmt::format("right at the size asked for, not at {}: {}", axes, held_out.message);
  for (const plan::Finding& finding : held_out.findings)
    if (finding.hazard == plan::HazardClass::fatal || finding.hazard == plan::HazardClass::latent)
      verdict.findings.push_back(finding);
}

}  // namespace ptxbench::bench
