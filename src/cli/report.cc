#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/files.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "report/analysis.h"
#include "report/html.h"
#include "store/import.h"

namespace ptxbench::cli {
namespace {

constexpr size_t kRowsPrinted = 60;

struct ReportOptions {
  std::vector<std::string> sources, compare, tables;
  std::string csv, dates, html, title = "ptxbench report";
  int with_sources = report::HtmlOptions{}.sources_per_group;
};

Result<store::Store> gather(const ReportOptions& options, store::ImportSummary& summary) {
  PB_ASSIGN_OR_RETURN(store::Store store, store::Store::in_memory());
  for (const std::string& source : options.sources) {
    PB_ASSIGN_OR_RETURN(const store::ImportSummary one, store::import_source(store, source));
    summary += one;
  }
  return store;
}

Result<report::AnalysisOptions> analysis_options(const ReportOptions& options) {
  report::AnalysisOptions analysis;
  if (options.compare.size() == 2) analysis.compare = {options.compare[0], options.compare[1]};
  if (options.dates.empty()) return analysis;
  PB_ASSIGN_OR_RETURN(const std::string text, read_file(options.dates));
  PB_ASSIGN_OR_RETURN(const report::ReleaseDates dates,
                      report::parse_release_dates(text, options.dates));
  report::merge(analysis.dates, dates);
  return analysis;
}

Result<void> write_csv(const std::string& folder, const report::Dataset& data,
                       const report::Analysis& analysis) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{"io", fmt::format("{}: {}", folder, error.message())};
  std::vector<report::Table> tables = analysis.tables;
  tables.push_back(report::turns_table(data));
  for (const report::Table& table : tables) {
    const auto path = std::filesystem::path(folder) / (table.name + ".csv");
    PB_RETURN_IF_ERROR(write_file_atomically(path, std::string_view(report::to_csv(table))));
  }
  return {};
}

// What a terminal gets unless tables are named; --csv and --html have the rest.
const std::vector<std::string> kUsualTables = {"models", "results", "repairs", "problems"};

Result<std::string> text_of(const ReportOptions& options, const report::Dataset& data,
                            const report::Analysis& analysis) {
  std::vector<report::Table> tables = analysis.tables;
  tables.insert(tables.begin() + 1, report::results_table(data, analysis.rates));
  std::string text =
      fmt::format("{} turns in {} trajectories of {} runs and tasks\n", grouped(data.turns.size()),
                  grouped(data.trajectories.size()), grouped(data.groups.size()));
  for (const std::string& name : options.tables.empty() ? kUsualTables : options.tables) {
    const auto found = std::find_if(tables.begin(), tables.end(),
                                    [&](const auto& table) { return table.name == name; });
    if (found == tables.end()) {
      std::string names;
      for (const report::Table& table : tables) names += (names.empty() ? "" : ", ") + table.name;
      return Error{"usage", fmt::format("no table '{}'; there are {}", name, names)};
    }
    if (options.tables.empty() && found->rows.empty()) continue;
    text += "\n" + report::to_text(*found, options.tables.empty() ? kRowsPrinted : SIZE_MAX);
  }
  return text;
}

Result<void> run(const ReportOptions& options) {
  store::ImportSummary summary;
  PB_ASSIGN_OR_RETURN(const store::Store store, gather(options, summary));
  PB_ASSIGN_OR_RETURN(const report::Dataset data, report::load(store));
  PB_ASSIGN_OR_RETURN(const report::AnalysisOptions wanted, analysis_options(options));
  PB_ASSIGN_OR_RETURN(const report::Analysis analysis, report::analyse(data, wanted));
  PB_ASSIGN_OR_RETURN(const std::string text, text_of(options, data, analysis));
  if (!options.csv.empty()) PB_RETURN_IF_ERROR(write_csv(options.csv, data, analysis));
  if (!options.html.empty()) {
    report::HtmlOptions html;
    html.title = options.title;
    html.sources_per_group = options.with_sources;
    PB_ASSIGN_OR_RETURN(const std::string page, report::render_html(store, data, analysis, html));
    PB_RETURN_IF_ERROR(write_file_atomically(options.html, std::string_view(page)));
  }
  print(text);
  return {};
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Rates, statistics and plots of runs");
  command->add_option("source", options->sources, "Run stores, per-turn CSV files, verdicts")
      ->required();
  command->add_option("--csv", options->csv, "Write every table as CSV into DIR");
  add_output_file(*command, "--html", options->html, "Write one self-contained page to FILE");
  command->add_option("--title", options->title, "Its title")->capture_default_str();
  command
      ->add_option("--sources", options->with_sources,
                   "Trajectories per run and task whose sources go into the page")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->add_option("--dates", options->dates, "Release dates beside the known ones (CSV)");
  command->add_option("--compare", options->compare, "Two runs or models to compare")->expected(2);
  command->add_option("--table", options->tables, "Print this table (again for more), all of it");
  command->callback([options, &exit_code] {
    auto done = run(*options);
    exit_code = done.ok() ? kOk : fail(done.error());
  });
}

}  // namespace ptxbench::cli
