#include "cli/tasks_admit.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>

#include "base/files.h"
#include "bench/admit/admit.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace ptxbench::cli {
namespace {

using bench::admit::Admission;
using bench::admit::EntryResult;

constexpr size_t kMaxFailures = 8;

struct AdmitOptions {
  std::vector<std::string> names;
  std::string folder, json, seed;
  bool all = false, write = false, sample = false, quiet = false;
  int threads = 0;
};

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

std::string where(const EntryResult& e) {
  return fmt::format("{} on {} inputs", e.nearest_workload, e.nearest_distribution);
}

std::string admission_text(const Admission& a, const Style& style) {
  std::string text = fmt::format("{}: {}\n", a.task,
                                 a.admitted ? style.good("admitted") : style.bad("not admitted"));
  text += fmt::format("  tried at {} sizes on {} distributions of inputs, seed {}\n",
                      a.forms.size(), a.distributions.size(), a.seed);
  for (const EntryResult& e : a.honest)
    text +=
        fmt::format("  honest  {:<22}{:>4} of {:>4} accepted; nearest to the bound {:.2f} ({})\n",
                    e.name, e.accepted, e.runs, e.nearest, where(e));
  const auto weakest =
      std::min_element(a.battery.begin(), a.battery.end(),
                       [](const auto& x, const auto& y) { return x.nearest < y.nearest; });
  int64_t runs = 0, accepted = 0, as_right = 0;
  for (const EntryResult& e : a.battery) {
    runs += e.runs;
    accepted += e.accepted;
    as_right += e.as_right;
  }
  text +=
      fmt::format("  cheats  {} kinds, {} of {} runs accepted", a.battery.size(), accepted, runs);
  if (as_right > 0) text += fmt::format(" ({} wrote the right result itself)", as_right);
  if (weakest != a.battery.end())
    text += fmt::format("; nearest to the bound {:.2f}: {} ({})", weakest->nearest, weakest->name,
                        where(*weakest));
  text += fmt::format(
      "\n  inputs  {} slices; the least moves the result by {:.1f} tolerances ({} {} at {}), {} "
      "are "
      "required\n",
      a.sensitivity.slices, a.sensitivity.least, a.sensitivity.input, a.sensitivity.slice,
      a.sensitivity.workload, bench::admit::kRequiredMove);
  for (size_t i = 0; i < std::min(a.failures.size(), kMaxFailures); ++i)
    text += "  " + style.bad("failed") + "  " + a.failures[i] + "\n";
  if (a.failures.size() > kMaxFailures)
    text += fmt::format("  and {} more\n", a.failures.size() - kMaxFailures);
  return text;
}

Result<std::vector<std::string>> chosen(const AdmitOptions& options,
                                        const bench::TaskSuite& suite) {
  if (options.all == !options.names.empty())
    return Error{"usage", "tasks admit needs names of tasks or --all"};
  if (options.sample && options.write)
    return Error{"usage", "--write needs the whole battery; --sample leaves most of it out"};
  return options.all ? suite.names() : options.names;
}

Result<bool> admit_all(const AdmitOptions& options, nlohmann::ordered_json& document) {
  PB_ASSIGN_OR_RETURN(bench::TaskSuite suite, bench::TaskSuite::open(options.folder));
  PB_ASSIGN_OR_RETURN(std::vector<std::string> names, chosen(options, suite));
  bench::Seed seed = bench::draw_seed();
  if (!options.seed.empty()) {
    PB_ASSIGN_OR_RETURN(seed, bench::parse_seed(options.seed));
  }
  std::vector<bench::Task> tasks;  // all loaded before the first is tried
  for (const std::string& name : names) {
    PB_ASSIGN_OR_RETURN(bench::Task task, suite.load(name));
    tasks.push_back(std::move(task));
  }
  Progress progress(options.quiet);
  bool all_admitted = true;
  for (bench::Task& task : tasks) {
    bench::admit::AdmitRequest request;
    request.task = task;
    request.seed = seed;
    request.date = today();
    request.threads = options.threads;
    request.sample = options.sample;
    request.progress = [&](double fraction) { progress.show(task.definition.name, fraction); };
    PB_ASSIGN_OR_RETURN(Admission admission, bench::admit::admit(request));
    progress.clear();
    all_admitted &= admission.admitted;
    if (options.json != "-") print(admission_text(admission, Style()));
    document.push_back(to_json(admission));
    if (options.write)
      PB_RETURN_IF_ERROR(write_file_atomically(task.folder / "admission.json",
                                               std::string_view(document.back().dump(2) + "\n")));
  }
  return all_admitted;
}

int admit(const AdmitOptions& options) {
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  auto admitted = admit_all(options, document);
  if (!admitted.ok()) return fail(admitted.error());
  if (auto written = write_document(options.json, document.dump(2) + "\n"); !written.ok())
    return fail(written.error());
  return *admitted ? kOk : kFellShort;
}

}  // namespace

void add_tasks_admit(CLI::App& tasks, int& exit_code) {
  auto options = std::make_shared<AdmitOptions>();
  CLI::App* command = tasks.add_subcommand(
      "admit", "Try a task's ruler: honest kernels must pass, cheats fail, all inputs matter");
  command->add_option("names", options->names, "Names of tasks");
  command->add_flag("--all", options->all, "All tasks");
  command->add_flag("--write", options->write, "Store the result as admission.json of each task");
  command->add_flag("--sample", options->sample, "Two sizes and three distributions only");
  command->add_option("--seed", options->seed, "Seed of the inputs in hex (default: drawn)");
  command->add_option("--threads", options->threads, "Host threads (0: all cores)")
      ->check(CLI::Range(0, 1024));
  command->add_option("--tasks", options->folder, "Folder of task folders");
  add_output_file(*command, "--json", options->json);
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
  command->callback([options, &exit_code] { exit_code = admit(*options); });
}

}  // namespace ptxbench::cli
