#include "bench/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ptxbench::bench {
namespace {

constexpr const char* kStatuses[] = {"PASSED",          "INCORRECT_SHAPE", "INCORRECT_NUMERICAL",
                                     "INCORRECT_DTYPE", "RUNTIME_ERROR",   "COMPILE_ERROR",
                                     "TIMEOUT"};
constexpr const char* kEmulated = "emulated: no time measured";

// The format spells what JSON has no number for as a word.
Json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity";
}

Result<double> read_number(const JsonRef& ref) {
  if (!ref.json().is_string()) return ref.number();
  for (const auto& [word, value] : {std::pair{"NaN", NAN}, std::pair{"Infinity", INFINITY}})
    if (ref.json() == word) return static_cast<double>(value);
  return ref.error("is no number");
}

Json source_json(const InputSource& source) {
  switch (source.kind) {
    case InputSource::Kind::scalar:
      return {{"type", "scalar"}, {"value", number(source.value)}};
    case InputSource::Kind::safetensors:
      return {{"type", "safetensors"},
              {"path", source.written_path},
              {"tensor_key", source.tensor_key}};
    case InputSource::Kind::random:
      break;
  }
  Json json = {{"type", "random"}};
  if (source.low < source.high) json["range"] = {source.low, source.high};
  return json;
}

Json correctness(const Verdict& v) {
  // Nothing was compared where no output came out: as wrong as can be.
  const double nothing = INFINITY;
  return {{"max_relative_error", number(v.correctness ? v.correctness->max_rel : nothing)},
          {"max_absolute_error", number(v.correctness ? v.correctness->max_abs : nothing)}};
}

Result<std::vector<std::pair<std::string, int64_t>>> read_axes(const JsonRef& ref) {
  std::vector<std::pair<std::string, int64_t>> axes;
  PB_ASSIGN_OR_RETURN(const auto members, ref.members());
  for (const auto& [name, item] : members) {
    PB_ASSIGN_OR_RETURN(const int64_t value, item.integer());
    axes.emplace_back(name, value);
  }
  return axes;
}

Result<void> read_evaluation(const JsonRef& ref, TraceDocument& out) {
  PB_ASSIGN_OR_RETURN(const JsonRef status_ref, ref.at("status"));
  PB_ASSIGN_OR_RETURN(const std::string status, status_ref.string());
  if (std::none_of(std::begin(kStatuses), std::end(kStatuses),
                   [&](const char* known) { return status == known; }))
    return status_ref.error(fmt::format("unknown status \"{}\"", status.substr(0, 40)));
  out.status = status;
  PB_ASSIGN_OR_RETURN(const JsonRef environment, ref.at("environment"));
  PB_ASSIGN_OR_RETURN(const JsonRef hardware, environment.at("hardware"));
  PB_RETURN_IF_ERROR(hardware.string());
  if (environment.has("libs")) {
    PB_ASSIGN_OR_RETURN(const JsonRef libs, environment.at("libs"));
    PB_ASSIGN_OR_RETURN(const std::string seed, libs.string_or("ptxbench.seed", ""));
    if (!seed.empty()) {
      const auto parsed = parse_seed(seed);
      if (!parsed.ok()) return libs.at("ptxbench.seed").take().error("is not 1 to 32 hex digits");
      out.seed = *parsed;
    }
    PB_ASSIGN_OR_RETURN(out.arch, libs.string_or("ptxbench.arch", ""));
  }
  const bool compared = status == "PASSED" || status == "INCORRECT_NUMERICAL";
  const bool has = ref.has("correctness") && !ref.json()["correctness"].is_null();
  if (has != compared)
    return ref.error(fmt::format("correctness {} with status {}",
                                 has ? "does not go" : "must be there", status));
  if (!has) return {};
  PB_ASSIGN_OR_RETURN(const JsonRef c, ref.at("correctness"));
  PB_ASSIGN_OR_RETURN(const JsonRef rel, c.at("max_relative_error"));
  PB_ASSIGN_OR_RETURN(const JsonRef abs, c.at("max_absolute_error"));
  PB_ASSIGN_OR_RETURN(out.max_rel, read_number(rel));
  PB_ASSIGN_OR_RETURN(out.max_abs, read_number(abs));
  return {};
}

Result<TraceDocument> parse(const JsonRef& root) {
  TraceDocument out;
  PB_ASSIGN_OR_RETURN(const JsonRef definition, root.at("definition"));
  PB_ASSIGN_OR_RETURN(out.definition, definition.string());
  PB_ASSIGN_OR_RETURN(const JsonRef workload, root.at("workload"));
  PB_ASSIGN_OR_RETURN(out.uuid, workload.string_or("uuid", ""));
  PB_ASSIGN_OR_RETURN(const JsonRef axes, workload.at("axes"));
  PB_ASSIGN_OR_RETURN(out.axes, read_axes(axes));
  PB_ASSIGN_OR_RETURN(const std::string solution, root.string_or("solution", ""));
  if (!solution.empty()) out.solution = solution;
  if (root.has("evaluation") && !root.json()["evaluation"].is_null())
    PB_RETURN_IF_ERROR(read_evaluation(root.at("evaluation").take(), out));
  return out;
}

}  // namespace

Json to_trace(const Verdict& v, const std::vector<std::string>& input_names,
              const std::string& timestamp, const InputSources& sources) {
  Json axes = Json::object(), inputs = Json::object();
  for (const auto& [name, value] : v.axes) axes[name] = value;
  for (const std::string& name : input_names) {
    const auto source = sources.find(name);
    inputs[name] = source_json(source == sources.end() ? InputSource{} : source->second);
  }
  Json evaluation = {
      {"status", v.status},
      {"environment",
       {{"hardware", v.device.empty() ? "none" : v.device},
        {"libs",
         {{"ptxbench.timer", v.performance ? v.performance->timer : kEmulated},
          {"ptxbench.seed", v.seed},
          {"ptxbench.arch", v.arch}}}}},
      {"timestamp", timestamp},
      {"log", fmt::format("level {} {}: {}", static_cast<int>(v.level), v.reason, v.message)},
      {"correctness", nullptr},
      {"performance", nullptr}};
  const bool passed = v.status == "PASSED";
  if (passed || v.status == "INCORRECT_NUMERICAL") evaluation["correctness"] = correctness(v);
  const Performance p = v.performance.value_or(Performance());  // zeros: not timed
  if (passed)
    evaluation["performance"] = {{"latency_ms", p.candidate_ms},
                                 {"reference_latency_ms", p.baseline_ms},
                                 {"speedup_factor", p.speedup}};
  return {{"definition", v.definition},
          {"workload", {{"uuid", v.workload}, {"axes", axes}, {"inputs", inputs}}},
          {"solution", v.candidate},
          {"evaluation", evaluation}};
}

Result<TraceDocument> read_trace(const std::string& text, const std::string& file) {
  const auto usage = [](const Error& error) { return Error{"usage", error.to_string()}; };
  const auto document = parse_json(text, file);
  if (!document.ok()) return usage(document.error());
  auto trace = parse(JsonRef(*document, file));
  if (!trace.ok()) return usage(trace.error());
  return trace;
}

}  // namespace ptxbench::bench
