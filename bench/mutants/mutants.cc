// Replays launch plans with one fault of synchronisation planted into their PTX, and says which are
// found: by a finding, because the launch stops, or by wrong values. A survivor is one of three:
// without effect at this size (never executed, or never with the value that matters), harmless for
// a reason that the file of reasons gives, or a gap.
//
//   ptxbench_mutants PLAN... [--reasons FILE] [--sample N --seed S] [--threads T] [--markdown FILE]
//
// Exit code 0: every fault expected to be fatal or latent was found or explained; 1: some were not.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "base/json.h"
#include "bench/op/operation.h"
#include "bench/task.h"
#include "device/device.h"
#include "ptx/parser.h"
#include "sites.h"

namespace ptxbench::mutants {
namespace {

struct Options {
  std::vector<std::string> plans;
  std::string reasons, markdown, tasks = "tasks", schedule = "inorder", only;
  size_t sample = 0;
  uint64_t seed = 1;
  int threads = 2;
};

// no_effect: not executed at this size, or both comparisons agree whenever it is.
enum class Outcome { finding, stopped, repaired, values, refused, no_effect, explained, survived };
const char* const kOutcomes[] = {"finding", "stopped",   "repaired",  "values",
                                 "not PTX", "no effect", "explained", "survived"};

struct Tried {
  Mutant mutant;
  Outcome outcome = Outcome::survived;
  std::string by;  // kind of the finding, how the launch stopped, or the reason
};

struct Reason {
  std::string kind, file, source, reason;  // parts of the mutant's kind, file and source line
};

// A plan with its inputs and what it writes when nothing is wrong with it.
class Subject {
 public:
  Result<void> load(const std::string& file, const Options& options) {
    name_ = std::filesystem::path(file).stem().string();
    PB_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, read_bytes(file));
    PB_ASSIGN_OR_RETURN(plan_, plan::deserialize(bytes));
    PB_ASSIGN_OR_RETURN(const bench::TaskSuite tasks, bench::TaskSuite::open(options.tasks));
    PB_ASSIGN_OR_RETURN(task_, tasks.load(plan_.definition));
    axes_ = plan_.axes;
    PB_ASSIGN_OR_RETURN(const bench::Operation* op, bench::operation_of(task_.definition));
    PB_ASSIGN_OR_RETURN(seed_, bench::parse_seed("0123456789abcdef0123456789abcdef"));
    PB_ASSIGN_OR_RETURN(inputs_, op->inputs(task_.definition, axes_, seed_, options.threads,
                                            bench::Distribution::mixed));
    for (plan::Module& m : plan_.modules) {
      PB_ASSIGN_OR_RETURN(ptx::Module parsed, ptx::parse(m.ptx));
      m.ptx = ptx::print(parsed), m.hash.clear();
    }
    PB_ASSIGN_OR_RETURN(plan::RunResult run, replay(plan_, options, 0, &right_));
    if (run.status != plan::RunStatus::completed || !run.findings.empty())
      return Error{"usage", name_ + " is not silent without a fault: " +
                                (run.findings.empty() ? run.message : run.findings[0].message)};
    for (const plan::KernelStats& k : run.kernels) budget_ += 20 * k.warp_instructions + 100'000;
    return {};
  }

  Result<plan::RunResult> replay(const plan::LaunchPlan& plan, const Options& options,
                                 uint64_t budget, std::vector<bench::Tensor>* outputs) const {
    PB_ASSIGN_OR_RETURN(*outputs,
                        bench::make_outputs(task_.definition, axes_, bench::poison_pattern(seed_)));
    std::vector<bench::Tensor> inputs = inputs_;
    std::vector<device::Binding> bindings;
    for (bench::Tensor& t : inputs) bindings.push_back({t.bytes, true, true});
    for (bench::Tensor& t : *outputs) bindings.push_back({t.bytes, false, false});
    plan::RunOptions run;
    run.tensor = plan::TensorMode::f32;
    run.races = true;
    run.threads = 1;
    run.step_budget = budget;
    run.schedule = options.schedule;
    return device::make_emu_device("h200")->replay(plan, bindings, run);
  }

  std::vector<std::pair<size_t, Mutant>> mutants() const {
    std::vector<std::pair<size_t, Mutant>> out;
    for (size_t i = 0; i < plan_.modules.size(); i++) {
      const ptx::Module module = ptx::parse(plan_.modules[i].ptx).take();
      for (Mutant& m : enumerate(module)) out.emplace_back(i, std::move(m));
    }
    return out;
  }

  Tried attempt(size_t module, const Mutant& mutant, const Options& options,
                const std::vector<Reason>& reasons) const {
    Tried t{mutant, Outcome::survived, ""};
    std::vector<bench::Tensor> outputs;
    auto run = replay(changed(module, mutant.line, mutant.text), options, budget_, &outputs);
    if (!run.ok() || run->status == plan::RunStatus::unsupported) {
      t.outcome = Outcome::refused;
      t.by = run.ok() ? run->message : run.error().message;
      return t;
    }
    const plan::Finding* first = nullptr;
    for (const plan::Finding& f : run->findings)
      if (f.hazard != plan::HazardClass::advice && (!first || f.hazard < first->hazard)) first = &f;
    if (first && first->hazard != plan::HazardClass::repaired) {
      t.outcome = Outcome::finding, t.by = first->kind;
    } else if (run->status != plan::RunStatus::completed) {
      t.outcome = Outcome::stopped, t.by = run->message;
    } else if (differs(outputs)) {
      t.outcome = Outcome::values;
    } else if (first) {
      t.outcome = Outcome::repaired, t.by = first->kind;
    } else if (!matters(module, mutant, options)) {
      t.outcome = Outcome::no_effect;
    } else {
      explain(reasons, &t);
    }
    return t;
  }

  const std::string& name() const { return name_; }

 private:
  plan::LaunchPlan changed(size_t module, uint32_t line, const std::string& text) const {
    plan::LaunchPlan out = plan_;
    out.modules[module].ptx = apply(plan_.modules[module].ptx, line, text);
    return out;
  }

  bool differs(const std::vector<bench::Tensor>& outputs) const {
    for (size_t i = 0; i < outputs.size(); i++)
      if (outputs[i].bytes != right_[i].bytes) return true;
    return false;
  }

  bool matters(size_t module, const Mutant& m, const Options& options) const {
    std::vector<bench::Tensor> outputs;
    auto run = replay(changed(module, m.line, m.probe), options, budget_, &outputs);
    return !run.ok() || run->status != plan::RunStatus::completed;
  }

  static void explain(const std::vector<Reason>& reasons, Tried* t) {
    std::string source, file = t->mutant.file;  // perhaps of another copy of the tree
    if (size_t at = file.find("kernels/"); at != std::string::npos) file.erase(0, at);
    if (auto text = read_file(file); text.ok()) {
      std::istringstream lines(*text);
      for (int l = 0; l < t->mutant.source_line; l++) std::getline(lines, source);
    }
    const size_t begin = source.find_first_not_of(' ');
    t->by = begin == std::string::npos ? "" : source.substr(begin);
    for (const Reason& r : reasons) {
      if (t->mutant.kind.find(r.kind) == std::string::npos ||
          t->mutant.file.find(r.file) == std::string::npos ||
          source.find(r.source) == std::string::npos)
        continue;
      t->outcome = Outcome::explained, t->by = r.reason;
      return;
    }
  }

  std::string name_;
  plan::LaunchPlan plan_;
  bench::Task task_;
  bench::AxisValues axes_;
  bench::Seed seed_;
  std::vector<bench::Tensor> inputs_, right_;
  uint64_t budget_ = 0;
};

std::vector<Tried> attempt_all(const Subject& subject, const Options& options,
                               const std::vector<Reason>& reasons) {
  std::vector<std::pair<size_t, Mutant>> all = subject.mutants();
  std::erase_if(
      all, [&](const auto& m) { return m.second.kind.find(options.only) == std::string::npos; });
  if (options.sample && options.sample < all.size()) {
    std::mt19937_64 random(options.seed);
    std::shuffle(all.begin(), all.end(), random);
    all.resize(options.sample);
  }
  std::vector<Tried> out(all.size());
  std::atomic<size_t> next{0};
  std::vector<std::thread> pool;
  for (int i = 0; i < options.threads; i++)
    pool.emplace_back([&] {
      for (size_t k; (k = next++) < all.size();)
        out[k] = subject.attempt(all[k].first, all[k].second, options, reasons);
    });
  for (std::thread& t : pool) t.join();
  return out;
}

bool is_gap(const Tried& t) {
  return t.outcome == Outcome::survived && t.mutant.expected != "repaired";
}

using Counts = std::map<Outcome, size_t>;

// What is common to the sites that were mutated alike.
std::string row(const std::string& head, const Counts& counts) {
  std::string text = "| " + head;
  size_t all = 0;
  for (const auto& [outcome, n] : counts) all += n;
  text += fmt::format(" | {}", all);
  for (int k = 0; k < 8; k++) {
    const auto it = counts.find(static_cast<Outcome>(k));
    text += it == counts.end() ? " |" : fmt::format(" | {}", it->second);
  }
  return text + " |\n";
}

std::string table(const std::map<std::string, Counts>& rows, const char* head) {
  std::string text = fmt::format("| {} | mutants", head), line = "|---|---";
  for (const char* name : kOutcomes) text += std::string(" | ") + name, line += "|---";
  text += " |\n" + line + "|\n";
  for (const auto& [name, counts] : rows) text += row(name, counts);
  return text;
}

const char* const kIntroduction = R"(# Planted faults of synchronisation

Written by `scripts/mutants.sh` (program: `bench/mutants/mutants.cc`); a sample runs in `ctest`. Each fence, wait, commit,
expected byte count, arrival, barrier, participant count and guard of a recorded kernel is left out or changed by one, and
the smoke workload replayed on the emulator with races looked for. *finding*: a fatal or latent one; *stopped*: deadlock,
fault or a launch without end; *repaired*: what the assembler mends, executed as mended; *values*: outputs differ;
*no effect*: never executed at this size, or, of a comparison, never with the value on which the two forms differ;
*explained*: harmless for the reason below (`bench/mutants/reasons.json`); *survived*: a gap, or, of the class *repaired*,
what the assembler does not even see.

)";

class Summary {
 public:
  void add(const std::string& subject, const std::vector<Tried>& tried) {
    for (const Tried& t : tried) {
      by_subject_[subject][t.outcome]++;
      by_kind_[t.mutant.kind + " (" + t.mutant.expected + ")"][t.outcome]++;
      gaps_ += is_gap(t);
      if (t.outcome == Outcome::explained || t.outcome == Outcome::survived) {
        const std::string place =
            fmt::format("{}:{}", std::filesystem::path(t.mutant.file).filename().string(),
                        t.mutant.source_line);
        survivors_[fmt::format("{}, `{}`: {}", place, t.mutant.kind,
                               t.outcome == Outcome::explained ? t.by
                               : is_gap(t)                     ? "**not found** (`" + t.by + "`)"
                                                               : "mended, or without effect")]
            .push_back(subject);
      }
    }
  }
  std::string text() const {
    std::string out =
        table(by_subject_, "kernel") + "\n" + table(by_kind_, "what was done (class)");
    out += "\n## Survivors\n\n";
    for (const auto& [what, subjects] : survivors_)
      out +=
          fmt::format("- {} ({}{})\n", what, subjects.front(),
                      subjects.size() > 1 ? fmt::format(" and {} more", subjects.size() - 1) : "");
    return out;
  }
  size_t gaps() const { return gaps_; }

 private:
  std::map<std::string, Counts> by_subject_, by_kind_;
  std::map<std::string, std::vector<std::string>> survivors_;
  size_t gaps_ = 0;
};

Result<std::vector<Reason>> read_reasons(const std::string& file) {
  std::vector<Reason> out;
  if (file.empty()) return out;
  PB_ASSIGN_OR_RETURN(const std::string text, read_file(file));
  PB_ASSIGN_OR_RETURN(const Json document, parse_json(text));
  for (const Json& r : document)
    out.push_back(
        {r.value("kind", ""), r.value("file", ""), r.value("source", ""), r.value("reason", "")});
  return out;
}

Result<int> run(const Options& options) {
  PB_ASSIGN_OR_RETURN(const std::vector<Reason> reasons, read_reasons(options.reasons));
  Summary summary;
  for (const std::string& file : options.plans) {
    Subject subject;
    PB_RETURN_IF_ERROR(subject.load(file, options));
    const std::vector<Tried> tried = attempt_all(subject, options, reasons);
    if (tried.empty()) return Error{"usage", subject.name() + " has nothing to mutate"};
    summary.add(subject.name(), tried);
    fmt::print(stderr, "{}: {} mutants\n", subject.name(), tried.size());
    for (const Tried& t : tried)
      if (is_gap(t) || t.outcome == Outcome::refused)
        fmt::print(stderr, "  {} {}:{} {} -> {} ({})\n", t.mutant.kind, t.mutant.file,
                   t.mutant.source_line, t.mutant.ptx, t.mutant.text, t.by);
  }
  if (options.markdown.empty()) {
    fmt::print("{}", summary.text());
  } else {
    PB_RETURN_IF_ERROR(write_file_atomically(options.markdown, summary.text()));
  }
  fmt::print(stderr, "{} faults that should be found were neither found nor explained\n",
             summary.gaps());
  return summary.gaps() ? 1 : 0;
}

}  // namespace
}  // namespace ptxbench::mutants

int main(int argc, char** argv) {
  ptxbench::mutants::Options options;
  CLI::App app("Plants faults of synchronisation into recorded kernels; which are found?");
  app.add_option("plans", options.plans, "Recorded launch plans (ptxbench record)")->required();
  app.add_option("--reasons", options.reasons, "Why survivors are harmless, JSON");
  app.add_option("--tasks", options.tasks, "Folder of task folders")->capture_default_str();
  app.add_option("--markdown", options.markdown, "Write the tables to this file");
  app.add_option("--schedule", options.schedule, "inorder or random:SEED");
  app.add_option("--only", options.only, "Only mutants whose kind contains this");
  app.add_option("--sample", options.sample, "So many mutants of each plan (0: all)");
  app.add_option("--seed", options.seed, "Of the sample");
  app.add_option("--threads", options.threads, "Mutants tried at once")->check(CLI::Range(1, 256));
  CLI11_PARSE(app, argc, argv);
  auto done = ptxbench::mutants::run(options);
  if (done.ok()) return *done;
  fmt::print(stderr, "ptxbench_mutants: {}\n", done.error().to_string());
  return 2;
}
