#include "bench/verdict.h"

#include <cmath>

#include "base/json.h"
#include "bench/causes/speed_json.h"

namespace ptxbench::bench {
namespace {

// JSON has no infinity; a reader must not take a missing number for a good one.
Json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? Json("nan") : Json(x > 0 ? "inf" : "-inf");
}

const char* hazard_name(plan::HazardClass hazard) {
  switch (hazard) {
    case plan::HazardClass::fatal:
      return "fatal";
    case plan::HazardClass::latent:
      return "latent";
    case plan::HazardClass::repaired:
      return "repaired";
    case plan::HazardClass::advice:
      return "advice";
  }
  return "fatal";
}

const char* severity_name(toolchain::Diagnostic::Severity severity) {
  using Severity = toolchain::Diagnostic::Severity;
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
    case Severity::advisory:
      return "advisory";
  }
  return "error";
}

Json axes_json(const std::vector<std::pair<std::string, int64_t>>& axes) {
  Json json = Json::object();
  for (const auto& [axis, value] : axes) json[axis] = value;
  return json;
}

Json evidence_json(const Evidence& evidence) {
  Json families = Json::object();
  for (const FamilyEvidence& f : evidence.families)
    families[f.family] = {{"static", f.static_count},
                          {"warps", f.warps},
                          {"threads", f.threads},
                          {"required", f.required},
                          {"depends", f.depends ? number(*f.depends) : Json()},
                          {"machine_sites", f.machine_sites ? Json(*f.machine_sites) : Json()}};
  return {{"level", evidence.level},
          {"families", families},
          {"task_flop", number(evidence.task_flop)},
          {"tensor_flop", number(evidence.tensor_flop)},
          {"compute_type", evidence.compute_type}};
}

Json correctness_json(const Correctness& c) {
  // Either the noise counts, or the task's own tolerance, or the other bounds do.
  const bool by_noise = c.bound_noise > 0, by_tolerance = c.bound_tolerated > 0;
  const auto in_noise = [&](double x) { return by_noise ? number(x) : Json(); };
  const auto in_tolerance = [&](double x) { return by_tolerance ? number(x) : Json(); };
  const auto in_matrix = [&](double x) { return by_noise || by_tolerance ? Json() : number(x); };
  Json worst = Json::array();
  for (const BadElement& e : c.worst)
    worst.push_back({{"index", element_index(c, e.row, e.column)},
                     {"expected", number(e.expected)},
                     {"actual", number(e.actual)}});
  return {{"output", c.output},
          {"passed", c.passed},
          {"why", c.why},
          {"verified", c.verified},
          {"total", c.total},
          {"poisoned", c.poisoned},
          {"class_mismatches", c.class_mismatches},
          {"max_abs", number(c.max_abs)},
          {"max_rel", number(c.max_rel)},
          {"matched_ratio", number(c.matched_ratio)},
          {"rule_a_passed", c.rule_a_passed},
          {"rel_frobenius", number(c.rel_frobenius)},
          {"misround_rate", number(c.misround_rate)},
          {"noise_ratio", in_noise(c.noise_ratio)},
          {"tolerated_ratio", in_tolerance(c.tolerated_ratio)},
          {"worst_tile",
           {{"index", element_index(c, c.tile_row, c.tile_column)},
            {"rel_frobenius", number(c.tile_rel_frobenius)},
            {"misround_rate", number(c.tile_misround_rate)},
            {"noise_ratio", in_noise(c.tile_noise_ratio)}}},
          {"bounds",
           {{"rel_frobenius", in_matrix(c.bound_rel_frobenius)},
            {"tile_rel_frobenius", in_matrix(c.bound_tile_rel_frobenius)},
            {"misround_rate", in_matrix(c.bound_misround)},
            {"tile_misround_rate", in_matrix(c.bound_tile_misround)},
            {"noise_ratio", in_noise(c.bound_noise)},
            {"tile_noise_ratio", in_noise(c.bound_tile_noise)},
            {"tolerated_ratio", in_tolerance(c.bound_tolerated)}}},
          {"bad_tiles", c.bad_tiles},
          {"pattern", c.explanation.text},
          {"pattern_kind", c.explanation.kind},
          {"pattern_explains", number(c.explanation.explains)},
          {"tile_map", c.bad_tiles > 0 ? Json(c.map.text()) : Json::array()},
          {"worst", worst}};
}

Json finding_json(const plan::Finding& f) {
  Json inlined = Json::array();
  for (const auto& [file, line] : f.inlined_at) inlined.push_back({{"file", file}, {"line", line}});
  return {{"kind", f.kind},
          {"severity", hazard_name(f.hazard)},
          {"kernel", f.kernel},
          {"message", f.message},
          {"hint", f.hint},
          {"source", {{"file", f.file}, {"line", f.line}, {"inlined_at", inlined}}},
          {"ptx_line", f.ptx_line},
          {"ptx", f.ptx},
          {"other", f.other_ptx_line == 0 ? Json()
                                          : Json({{"file", f.other_file},
                                                  {"line", f.other_line},
                                                  {"ptx_line", f.other_ptx_line}})},
          {"cta", f.cta},
          {"warp", f.warp},
          {"lanes", f.lanes},
          {"address", f.address},
          {"symbol", f.symbol},
          {"count", f.count}};
}

Json diagnostic_json(const toolchain::Diagnostic& d) {
  return {{"severity", severity_name(d.severity)},
          {"tool", d.tool},
          {"source", {{"file", d.file}, {"line", d.line}, {"column", d.column}}},
          {"code", d.code},
          {"message", d.text},
          {"ptx_line", d.ptx_line},
          {"hint", d.hint}};
}

Json kernel_json(const plan::KernelStats& k) {
  Json by_type = Json::object();
  for (const auto& [type, flop] : k.tensor_flop_by_type) by_type[type] = number(flop);
  return {{"kernel", k.kernel},
          {"launches", k.launches},
          {"ctas", k.ctas},
          {"warp_instructions", k.warp_instructions},
          {"thread_instructions", k.thread_instructions},
          {"tensor_flop", number(k.tensor_flop)},
          {"tensor_flop_by_type", by_type},
          {"global_load_bytes", k.global_load_bytes},
          {"global_store_bytes", k.global_store_bytes},
          {"bulk_load_bytes", k.bulk_load_bytes},
          {"bulk_store_bytes", k.bulk_store_bytes},
          {"shared_load_bytes", k.shared_load_bytes},
          {"shared_store_bytes", k.shared_store_bytes},
          {"registers", k.registers}};
}

Json performance_json(const Performance& p) {
  return {
      {"candidate_ms", number(p.candidate_ms)},
      {"baseline_ms", p.baseline_ms > 0 ? number(p.baseline_ms) : Json()},
      {"speedup", p.baseline_ms > 0 ? number(p.speedup) : Json()},
      {"speedup_interval",
       p.baseline_ms > 0 ? Json::array({number(p.speedup_low), number(p.speedup_high)}) : Json()},
      {"candidate_end_to_end_ms", number(p.candidate_end_to_end_ms)},
      {"baseline_end_to_end_ms", p.baseline_ms > 0 ? number(p.baseline_end_to_end_ms) : Json()},
      {"floor_ms", number(p.floor_ms)},
      {"speed_of_light", number(p.speed_of_light)},
      {"empty_launch_ms", number(p.empty_launch_ms)},
      {"timer", p.timer},
      {"baseline", p.baseline},
      {"launches", p.launches},
      {"verified", p.verified},
      {"implausible", p.implausible},
      {"clocks",
       {{"sm_mhz", {p.sm_mhz_low, p.sm_mhz_high}},
        {"memory_mhz", p.memory_mhz},
        {"watts", number(p.watts_high)},
        {"throttle_reasons", p.throttle_reasons}}},
      {"causes", p.causes}};
}

template <class T, class F>
Json list(const std::vector<T>& items, F make) {
  Json json = Json::array();
  for (const T& item : items) json.push_back(make(item));
  return json;
}

}  // namespace

const char* name(Level level) {
  switch (level) {
    case Level::extraction:
      return "extraction";
    case Level::syntax:
      return "syntax";
    case Level::execution:
      return "execution";
    case Level::numerics:
      return "numerics";
    case Level::instructions:
      return "instructions";
    case Level::strategy:
      return "strategy";
    case Level::frontier:
      return "frontier";
  }
  return "extraction";
}

nlohmann::json to_json(const Verdict& v) {
  Json json = {{"version", kVerdictVersion},
               {"level", static_cast<int>(v.level)},
               {"level_name", name(v.level)},
               {"reason", v.reason},
               {"message", v.message},
               {"label", v.label},
               {"status", v.status},
               {"tag", v.tag},
               {"definition", v.definition},
               {"workload", v.workload},
               {"published_workload", v.published_workload},
               {"axes", axes_json(v.axes)},
               {"device", v.device},
               {"arch", v.arch},
               {"seed", v.seed},
               {"candidate", {{"name", v.candidate}, {"hash", v.candidate_hash}}},
               {"mode",
                {{"tensor", v.tensor_mode},
                 {"async", v.async_mode},
                 {"schedule", v.schedule},
                 {"races", v.races}}},
               {"evidence", evidence_json(v.evidence)},
               {"held_out", v.held_out ? Json{{"axes", axes_json(v.held_out->axes)},
                                              {"level", static_cast<int>(v.held_out->level)},
                                              {"reason", v.held_out->reason}}
                                       : Json()},
               {"performance", v.performance ? performance_json(*v.performance) : Json()},
               {"estimate", v.estimate ? to_json(*v.estimate) : Json()},
               {"notes", v.notes},
               {"feedback", v.feedback},
               {"total_ms", number(v.total_ms)},
               {"versions", {{"ptxbench", kProgramVersion}, {"verdict", kVerdictVersion}}}};
  json["sm_count"] = v.sm_count > 0 ? Json(v.sm_count) : Json(nullptr);
  json["correctness"] = v.correctness ? correctness_json(*v.correctness) : Json(nullptr);
  json["outputs"] = list(v.outputs, [](const Correctness& c) {
    return Json{{"output", c.output},
                {"passed", c.passed},
                {"why", c.why},
                {"verified", c.verified},
                {"total", c.total},
                {"rel_frobenius", number(c.rel_frobenius)},
                {"max_abs", number(c.max_abs)},
                {"rule_a_passed", c.rule_a_passed},
                {"bad_tiles", c.bad_tiles},
                {"pattern", c.explanation.text},
                {"pattern_kind", c.explanation.kind}};
  });
  json["findings"] = list(v.findings, finding_json);
  json["diagnostics"] = list(v.diagnostics, diagnostic_json);
  json["kernels"] = list(v.kernels, kernel_json);
  json["stages"] = list(v.stages, [](const Stage& s) {
    return Json{{"name", s.name}, {"ms", number(s.ms)}, {"cached", s.cached}};
  });
  return json;
}

}  // namespace ptxbench::bench
