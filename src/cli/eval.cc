#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "base/files.h"
#include "bench/evaluate.h"
#include "bench/gpu/evaluate_gpu.h"
#include "bench/trace.h"
#include "cli/candidate_options.h"
#include "cli/commands.h"
#include "cli/eval_options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/verdict_text.h"

namespace ptxbench::cli {
namespace {

constexpr double kLongestTimeout = 7 * 24 * 3600;

// For the option parser: what is wrong with the text, or nothing.
std::string check_timeout(std::string& text) {
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (end != text.c_str() && *end == '\0' && seconds > 0 && seconds <= kLongestTimeout) return "";
  return fmt::format("'{}' is not a number of seconds between 0 and {:.0f}", text.substr(0, 40),
                     kLongestTimeout);
}

Result<void> apply(const EvalOptions& options, bench::EvalRequest& request) {
  if (options.tensor == "hw") request.tensor = plan::TensorMode::hw;
  if (options.tensor == "f32") request.tensor = plan::TensorMode::f32;
  if (options.tensor == "fast") request.tensor = plan::TensorMode::fast;
  request.async = options.async == "eager" ? plan::AsyncMode::eager : plan::AsyncMode::late;
  const bool random = options.schedule.rfind("random:", 0) == 0;
  const std::string digits = random ? options.schedule.substr(7) : "";
  if (options.schedule != "inorder" &&
      (digits.empty() || digits.size() > 18 ||
       digits.find_first_not_of("0123456789") != std::string::npos))
    return Error{"usage", fmt::format("schedule '{}' is neither inorder nor random:NUMBER",
                                      options.schedule)};
  request.schedule = options.schedule;
  if (options.races != "auto") request.races = options.races == "on";
  request.threads = options.threads;
  if (!options.seed.empty()) {
    PB_ASSIGN_OR_RETURN(bench::Seed seed, bench::parse_seed(options.seed));
    request.seed = seed;
  }
  if (options.timeout_s > 0) request.timeout_s = options.timeout_s;
  return {};
}

Result<bench::Verdict> run(const EvalOptions& options, bench::EvalRequest& request) {
  PB_RETURN_IF_ERROR(apply(options, request));
  Progress progress(options.quiet);
  request.progress = [&](const std::string& what, double fraction) {
    progress.show(what, fraction);
  };
  if (const std::optional<int> gpu = gpu_index(options.device)) {
    bench::GpuRequest on_gpu;
    on_gpu.device.worker.device = *gpu;
    if (const char* driver = std::getenv("PTXBENCH_DRIVER")) on_gpu.device.worker.driver = driver;
    on_gpu.timing.launches = options.launches;
    if (options.timeout_s > 0) on_gpu.device.launch_s = on_gpu.timing.launch_s = options.timeout_s;
    auto verdict = bench::evaluate_on_gpu(request, on_gpu);
    request.progress = nullptr;
    return verdict;
  }
  auto device = device::make_emu_device(request.device_profile);
  auto verdict = bench::evaluate(request, bench::real_services(*device));
  request.progress = nullptr;
  return verdict;
}

// The picture of a candidate whose output was never compared says just that.
Result<void> write_tile_map(const std::string& path, const bench::Verdict& verdict) {
  if (path.empty()) return {};
  std::string title = fmt::format("{} of {}: ", verdict.definition, verdict.candidate);
  if (!verdict.correctness)
    title += fmt::format("nothing was compared ({})", verdict.reason);
  else
    title += fmt::format("{}: {} of {} tiles wrong", verdict.correctness->output,
                         verdict.correctness->bad_tiles, verdict.correctness->tiles);
  const bench::TileMap map = verdict.correctness ? verdict.correctness->map : bench::TileMap();
  return write_file_atomically(path, std::string_view(map.svg(title)));
}

// The time of day as FlashInfer Trace writes it.
std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

Result<void> write_trace(const EvalOptions& options, const bench::EvalRequest& request,
                         const bench::Verdict& verdict) {
  if (options.trace.empty()) return {};
  std::vector<std::string> inputs;
  for (const bench::TensorSpec& input : request.task.definition.inputs)
    inputs.push_back(input.name);
  return write_json(options.trace, bench::to_trace(verdict, inputs, now(), request.inputs));
}

// The verdict together with the source that its findings point into.
nlohmann::json document(const bench::Verdict& verdict, const bench::Candidate& candidate) {
  nlohmann::json json = to_json(verdict);
  if (candidate.source.empty()) return json;
  json["candidate"]["file"] = candidate.file_name;
  json["candidate"]["first_line"] = candidate.first_line;
  json["candidate"]["source"] = candidate.source;
  return json;
}

int eval(EvalOptions options) {
  if (auto seed = apply_trace(options); !seed.ok()) {
    return fail(seed.error());
  } else if (*seed && options.seed.empty()) {
    options.seed = bench::to_hex(**seed);
  }
  std::error_code error;
  if (std::filesystem::is_directory(options.file, error)) return eval_folder(options);
  auto request = make_request(options);
  auto verdict = request.ok() ? run(options, *request) : Result<bench::Verdict>(request.error());
  if (!verdict.ok()) {
    const Error& error = verdict.error();
    static_cast<void>(
        write_json(options.json,
                   {{"infrastructure", {{"kind", error.kind}, {"message", error.to_string()}}}}));
    return fail(error);
  }
  const bench::Candidate& candidate = request->extraction.candidate;
  if (auto written = write_trace(options, *request, *verdict); !written.ok())
    return fail(written.error());
  if (options.json != "-")
    print(verdict_text(*verdict, candidate.source, candidate.first_line, Style()));
  if (auto written = write_json(options.json, document(*verdict, candidate)); !written.ok())
    return fail(written.error());
  if (auto written = write_tile_map(options.tile_map, *verdict); !written.ok())
    return fail(written.error());
  return static_cast<int>(verdict->level) >= options.require ? kOk : kFellShort;
}

}  // namespace

void add_eval(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "Judge one candidate on one workload");
  auto* file =
      command->add_option("file", options->file,
                          "Candidate: .cu, a model's answer in Markdown, .ptx with its launch "
                          "manifest, a FlashInfer solution; or a folder of candidates");
  auto* plan =
      command->add_option("--plan", options->plan, "A recorded launch plan instead of a file");
  file->excludes(plan);
  plan->excludes(file);
  add_candidate_options(*command, *options);
  command
      ->add_option("--tensor", options->tensor,
                   "Tensor arithmetic: hw (as the silicon does), f32, fast (default by size)")
      ->check(CLI::IsMember({"hw", "f32", "fast"}));
  command->add_option("--async", options->async, "When async work is performed: late or eager")
      ->check(CLI::IsMember({"late", "eager"}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Host threads (0: all cores)")
      ->check(CLI::Range(0, 1024));
  command->add_option("--schedule", options->schedule, "inorder or random:NUMBER")
      ->capture_default_str();
  command
      ->add_option("--races", options->races,
                   "Look for accesses that nothing orders: on, off, auto (at small sizes)")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Inputs' seed in hex, to replay a verdict");
  add_output_file(*command, "--tile-map", options->tile_map,
                  "Write a picture of right and wrong 16x16 tiles to FILE (SVG)");
  command->add_option("--require", options->require, "Level that gives exit code 0")
      ->check(CLI::Range(0, 6))
      ->capture_default_str();
  command
      ->add_option("--jobs", options->jobs, "Candidates of a folder judged at once (0: all cores)")
      ->check(CLI::Range(0, 256));
  command
      ->add_option("--launches", options->launches,
                   "On a GPU: timed launches, each on contents of its own")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_output_file(*command, "--trace", options->trace,
                  "Also write the result as a FlashInfer trace");
  command->add_option("--from-trace", options->from_trace,
                      "Judge on the task, workload and seed of a FlashInfer trace");
  command
      ->add_option("--timeout", options->timeout_s,
                   "Seconds for the replay (default 60 for small sizes, else 1800)")
      ->check(CLI::Validator(check_timeout, "SECONDS"));
  command->callback([options, &exit_code] {
    if (options->file.empty()) options->file = options->plan;
    exit_code = options->file.empty() ? fail(Error{"usage", "eval needs a FILE or --plan FILE"})
                                      : eval(*options);
  });
}

}  // namespace ptxbench::cli
