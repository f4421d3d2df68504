#include "bench/causes/speed_json.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/demangle.h"

namespace ptxbench::bench {
namespace {

using Json = nlohmann::json;

Json number(double x) { return std::isfinite(x) ? Json(x) : Json("inf"); }

Json launch_json(const LaunchEstimate& launch) {
  Json terms = Json::object();
  for (const LaunchEstimate::Term& term : launch.terms) terms[term.name] = number(term.ms);
  return {{"kernel", demangled_function(launch.kernel)},
          {"ms", number(launch.ms)},
          {"terms", terms},
          {"imbalance", number(launch.imbalance)},
          {"waves", number(launch.waves)},
          {"ctas_per_sm", launch.ctas_per_sm},
          {"limited_by", launch.limited_by}};
}

Json cause_json(const SpeedCause& cause) {
  return {{"kind", cause.kind},        {"cost", number(cause.cost)},
          {"kernel", cause.kernel},    {"evidence", cause.evidence},
          {"advice", cause.advice},    {"source", {{"file", cause.file}, {"line", cause.line}}},
          {"ptx_line", cause.ptx_line}};
}

}  // namespace

nlohmann::json to_json(const SpeedReport& report) {
  Json launches = Json::array(), causes = Json::array(), axes = Json::object();
  for (const LaunchEstimate& launch : report.launches) launches.push_back(launch_json(launch));
  for (const SpeedCause& cause : report.causes) causes.push_back(cause_json(cause));
  for (const auto& [axis, value] : report.axes) axes[axis] = value;
  return {{"machine", report.machine},
          {"calibrated", report.calibrated},
          {"axes", axes},
          {"ms", number(report.ms)},
          {"bound", report.bound},
          {"ctas", report.ctas},
          {"ctas_run", report.ctas_run},
          {"launches", launches},
          {"causes", causes}};
}

std::string speed_feedback(const SpeedReport& report, size_t causes) {
  std::string axes;
  for (const auto& [axis, value] : report.axes) axes += fmt::format(" {}={}", axis, value);
  std::string text = fmt::format(
      "- estimated, not measured, on {}{} at{}: {:.3g} ms, bound by {} (from {} of {} "
      "CTAs)\n",
      report.machine, report.calibrated ? "" : " (never compared with its times)", axes, report.ms,
      report.bound, report.ctas_run, report.ctas);
  for (size_t i = 0; i < std::min(causes, report.causes.size()); ++i) {
    const SpeedCause& c = report.causes[i];
    std::string where;
    if (!c.file.empty())
      where = fmt::format(" at {}:{}", std::filesystem::path(c.file).filename().string(), c.line);
    else if (c.ptx_line > 0)
      where = fmt::format(" at PTX line {}", c.ptx_line);
    text += fmt::format("- slow because of {}{} (about {:.0f} % of the time): {}. {}\n", c.kind,
                        where, 100 * c.cost, c.evidence, c.advice);
  }
  return text;
}

}  // namespace ptxbench::bench
