#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/demangle.h"
#include "bench/causes/causes.h"
#include "bench/causes/speed_json.h"
#include "bench/evaluate.h"
#include "cli/candidate_options.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/verdict_text.h"

namespace ptxbench::cli {
namespace {

struct EstimateOptions : CandidateOptions {
  std::string machine = "h200";
};

Result<bench::Recording> get_plan(const EstimateOptions& options, bench::EvalRequest& request) {
  if (request.extraction.ok && request.extraction.candidate.kind == bench::Candidate::Kind::plan) {
    bench::Recording recording;
    recording.plan = request.extraction.candidate.plan;
    return recording;
  }
  return record_with_progress(options, request);
}

int estimate(const EstimateOptions& options) {
  auto request = make_request(options);
  if (!request.ok()) return fail(request.error());
  auto recording = get_plan(options, *request);
  if (!recording.ok()) return fail(recording.error());
  if (recording->verdict) {
    const bench::Candidate& candidate = request->extraction.candidate;
    print(verdict_text(*recording->verdict, candidate.source, candidate.first_line, Style()));
    return kFellShort;
  }
  auto report = bench::explain_speed(
      recording->plan, bench::assembled_kernels(recording->resources, recording->diagnostics),
      options.machine);
  if (!report.ok()) return fail(report.error());
  if (options.json != "-") print(speed_text(*report));
  if (auto written = write_json(options.json, bench::to_json(*report)); !written.ok())
    return fail(written.error());
  return kOk;
}

}  // namespace

void add_estimate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<EstimateOptions>();
  CLI::App* command = app.add_subcommand(
      "estimate", "Estimate, without a GPU, how long a candidate takes and what slows it down");
  command
      ->add_option("file", options->file,
                   "Candidate: .cu, a model's answer in Markdown, .ptx with its launch manifest, "
                   "or a recorded plan")
      ->required();
  command->add_option("--machine", options->machine, "h100, h200 or b200")
      ->check(CLI::IsMember({"h100", "h200", "b200"}))
      ->capture_default_str();
  add_candidate_options(*command, *options);
  command->callback([options, &exit_code] { exit_code = estimate(*options); });
}

}  // namespace ptxbench::cli
