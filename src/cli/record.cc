#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/files.h"
#include "bench/evaluate.h"
#include "bench/inspect.h"
#include "cli/candidate_options.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/verdict_text.h"

namespace ptxbench::cli {
namespace {

struct RecordOptions : CandidateOptions {
  std::string output;
};

Result<bench::Recording> record_candidate(const RecordOptions& options,
                                          bench::EvalRequest& request) {
  if (request.extraction.ok && request.extraction.candidate.kind == bench::Candidate::Kind::plan)
    return Error{"usage", options.file + " is a plan already"};
  return record_with_progress(options, request);
}

int record(const RecordOptions& options) {
  auto request = make_request(options);
  if (!request.ok()) return fail(request.error());
  auto recording = record_candidate(options, *request);
  if (!recording.ok()) return fail(recording.error());
  if (recording->verdict) {
    const bench::Candidate& candidate = request->extraction.candidate;
    print(verdict_text(*recording->verdict, candidate.source, candidate.first_line, Style()));
    if (auto written = write_json(options.json, to_json(*recording->verdict)); !written.ok())
      return fail(written.error());
    return kFellShort;
  }
  const std::vector<uint8_t> bytes = plan::serialize(recording->plan);
  if (auto written = write_file_atomically(options.output, std::span<const uint8_t>(bytes));
      !written.ok())
    return fail(written.error());
  nlohmann::json document = {
      {"plan", options.output}, {"bytes", bytes.size()}, {"steps", nlohmann::json::array()}};
  std::string text =
      fmt::format("{}: {} bytes, {} modules, {} buffers, {} tensor maps\n", options.output,
                  bytes.size(), recording->plan.modules.size(), recording->plan.buffers.size(),
                  recording->plan.tensor_maps.size());
  if (auto inspection = bench::inspect_plan(recording->plan); inspection.ok())
    for (const std::string& step : inspection->launches) {
      text += "  " + step + "\n";
      document["steps"].push_back(step);
    }
  for (const bench::Stage& stage : recording->stages)
    text +=
        fmt::format("  {} {:.0f} ms{}\n", stage.name, stage.ms, stage.cached ? " (cached)" : "");
  if (options.json != "-") print(text);
  if (auto written = write_json(options.json, document); !written.ok())
    return fail(written.error());
  return kOk;
}

}  // namespace

void add_record(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RecordOptions>();
  CLI::App* command = app.add_subcommand(
      "record", "Compile a candidate and write down what its host code asks of the device");
  command->add_option("file", options->file, "Candidate: .cu, or a model's answer in Markdown")
      ->required();
  add_output_file(*command, "-o,--output", options->output, "The plan to write, x.plan")
      ->required();
  add_candidate_options(*command, *options);
  command->callback([options, &exit_code] { exit_code = record(*options); });
}

}  // namespace ptxbench::cli
