#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/output.h"
#include "store/import.h"

namespace ptxbench::cli {
namespace {

struct RunsOptions {
  std::string store, json;
  std::vector<std::string> sources;
};

std::string problem_text(const store::Problem& p) {
  return fmt::format("  {} ({}): {} [{}{}{}]\n", p.kind, p.count, p.detail, p.source,
                     p.places.empty() ? "" : ", ", p.places);
}

int import(const RunsOptions& options) {
  auto store = store::Store::open(options.store);
  if (!store.ok()) return fail(store.error());
  store::ImportSummary summary;
  for (const std::string& source : options.sources) {
    auto one = store::import_source(*store, source);
    if (!one.ok()) return fail(one.error());
    summary += *one;
  }
  std::string text = fmt::format(
      "{} turns read: {} new, {} there already, {} in conflict with what is there; {} rows or "
      "files "
      "rejected\n",
      summary.read, summary.fresh, summary.same, summary.conflicts, summary.rejected);
  for (const store::Problem& problem : summary.problems) text += problem_text(problem);
  print(text);
  return kOk;
}

int list(const RunsOptions& options) {
  auto store = store::Store::open_existing(options.store);
  if (!store.ok()) return fail(store.error());
  if (auto checked = store->check(); !checked.ok()) return fail(checked.error());
  auto runs = store->runs();
  if (!runs.ok()) return fail(runs.error());
  nlohmann::json document = nlohmann::json::array();
  std::string text;
  for (const store::RunSummary& run : *runs) {
    text += fmt::format("{}: {} turns in {} trajectories, {} correct, {} documents\n", run.name,
                        run.turns, run.trajectories, run.correct, run.documents);
    document.push_back({{"run", run.name},
                        {"trajectories", run.trajectories},
                        {"turns", run.turns},
                        {"correct", run.correct},
                        {"documents", run.documents}});
  }
  if (runs->empty()) text = "no runs\n";
  if (options.json != "-") print(text);
  if (auto written = write_json(options.json, document); !written.ok())
    return fail(written.error());
  return kOk;
}

}  // namespace

void add_runs(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunsOptions>();
  CLI::App* command = app.add_subcommand("runs", "Run stores");
  command->require_subcommand(1);
  CLI::App* import_command =
      command->add_subcommand("import", "Add turns to a store; what is there already stays");
  CLI::App* list_command = command->add_subcommand("list", "The runs of a store");
  for (CLI::App* sub : {import_command, list_command})
    sub->add_option("store", options->store, "The store's file")->required();
  import_command
      ->add_option("source", options->sources, "Per-turn CSV files, verdicts, folders, stores")
      ->required();
  add_output_file(*list_command, "--json", options->json);
  import_command->callback([options, &exit_code] { exit_code = import(*options); });
  list_command->callback([options, &exit_code] { exit_code = list(*options); });
}

}  // namespace ptxbench::cli
