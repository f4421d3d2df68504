// admission.json, the document that stays in the task's folder.
#include <cmath>

#include "bench/admission.h"
#include "bench/admit/admit.h"
#include "bench/verdict.h"

namespace ptxbench::bench::admit {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Four digits: the file is for people too, and measurements hold no more.
double shortened(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(x))) - 3);
  return std::stod(fmt::format("{:.6g}", std::ceil(x / unit) * unit));
}

OrderedJson entries_json(const std::vector<EntryResult>& entries) {
  OrderedJson json = OrderedJson::array();
  for (const EntryResult& e : entries)
    json.push_back({{"name", e.name},
                    {"what", e.what},
                    {"runs", e.runs},
                    {"accepted", e.accepted},
                    {"as_right", e.as_right},
                    {"nearest",
                     {{"statistic_over_bound", shortened(e.nearest)},
                      {"workload", e.nearest_workload},
                      {"distribution", e.nearest_distribution}}}});
  for (size_t i = 0; i < entries.size(); ++i)
    if (!entries[i].hidden_on.empty()) json[i]["hidden_on"] = entries[i].hidden_on;
  return json;
}

OrderedJson point_json(const HonestPoint& p) {
  OrderedJson json = {{"rel_frobenius", shortened(p.rel_frobenius)},
                      {"tile_rel_frobenius", shortened(p.tile_rel_frobenius)},
                      {"misround", shortened(p.misround)},
                      {"tile_misround", shortened(p.tile_misround)}};
  if (p.noise_ratio > 0) {
    json["noise_ratio"] = shortened(p.noise_ratio);
    json["tile_noise_ratio"] = shortened(p.tile_noise_ratio);
  }
  return json;
}

// By length, or by workload; the statistics of an only output stand at the distribution itself.
OrderedJson points_json(const Admission& a) {
  OrderedJson json = OrderedJson::array();
  const HonestPoint* before = nullptr;
  for (const HonestPoint& p : a.points) {
    if (before == nullptr || before->k != p.k || before->form != p.form) {
      json.push_back(OrderedJson::object());
      if (p.k > 0)
        json.back()["k"] = p.k;
      else
        json.back()["workload"] = a.forms[p.form].workload;
      json.back()["distributions"] = OrderedJson::object();
    }
    OrderedJson& at = json.back()["distributions"][name(p.distribution)];
    if (a.outputs.size() > 1)
      at[a.outputs[p.output]] = point_json(p);
    else
      at = point_json(p);
    before = &p;
  }
  return json;
}

OrderedJson form_json(const Form& form) {
  OrderedJson axes = OrderedJson::object();
  for (const auto& [axis, value] : form.axes) axes[axis] = value;
  return {{"workload", form.workload}, {"axes", axes}, {"reduced", form.reduced}};
}

}  // namespace

OrderedJson to_json(const Admission& a) {
  OrderedJson json = {{"version", kAdmissionVersion},
                      {"task", a.task},
                      {"admitted", a.admitted},
                      {"digest", a.digest},
                      {"failures", a.failures}};
  json["provenance"] = {
      {"by", "ptxbench tasks admit"},
      {"versions", {{"ptxbench", kProgramVersion}, {"admission", kAdmissionVersion}}},
      {"date", a.date},
      {"seed", a.seed},
      {"sample", a.sample},
      {"device", "CPU; tensor cores are the emulator's model of an H200"}};
  json["honest"] = {{"implementations", entries_json(a.honest)}, {"points", points_json(a)}};
  json["battery"] = entries_json(a.battery);
  json["not_applicable"] = OrderedJson::array();
  for (const NotApplicable& n : a.not_applicable)
    json["not_applicable"].push_back({{"name", n.name}, {"why", n.why}});
  json["sensitivity"] = {{"slices", a.sensitivity.slices},
                         {"required_tolerances", kRequiredMove},
                         {"least",
                          {{"tolerances", shortened(a.sensitivity.least)},
                           {"input", a.sensitivity.input},
                           {"slice", a.sensitivity.slice},
                           {"workload", a.sensitivity.workload}}}};
  json["distributions"] = OrderedJson::array();
  for (const auto& [distribution, battery] : a.distributions)
    json["distributions"].push_back({{"name", name(distribution)}, {"battery", battery}});
  json["published_sizes"] = a.reduced_how.empty() ? "in full" : a.reduced_how;
  json["forms"] = OrderedJson::array();
  for (const Form& form : a.forms) json["forms"].push_back(form_json(form));
  return json;
}

}  // namespace ptxbench::bench::admit
