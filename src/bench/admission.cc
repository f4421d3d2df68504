#include "bench/admission.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/hash.h"
#include "bench/inputs.h"

namespace ptxbench::bench {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{16} << 20;

Result<HonestError> parse_honest_point(const JsonRef& point, const std::string& distribution) {
  HonestError honest;
  PB_ASSIGN_OR_RETURN(JsonRef k, point.at("k"));
  PB_ASSIGN_OR_RETURN(honest.k, k.integer());
  PB_ASSIGN_OR_RETURN(JsonRef distributions, point.at("distributions"));
  PB_ASSIGN_OR_RETURN(auto members, distributions.members());
  for (auto& [name, ref] : members) {
    if (!distribution.empty() && name != distribution) continue;
    PB_ASSIGN_OR_RETURN(double frobenius, ref.number_or("rel_frobenius", 0));
    PB_ASSIGN_OR_RETURN(double misround, ref.number_or("misround", 0));
    PB_ASSIGN_OR_RETURN(double tile, ref.number_or("tile_misround", 0));
    honest.rel_frobenius = std::max(honest.rel_frobenius, frobenius);
    honest.misround = std::max(honest.misround, misround);
    honest.tile_misround = std::max(honest.tile_misround, tile);
  }
  if (!(honest.rel_frobenius > 0)) return point.error("expected a positive rel_frobenius");
  return honest;
}

Result<void> apply(const JsonRef& root, Task& task) {
  PB_ASSIGN_OR_RETURN(JsonRef version_ref, root.at("version"));
  PB_ASSIGN_OR_RETURN(int64_t version, version_ref.integer());
  if (version != kAdmissionVersion)
    return version_ref.error(fmt::format("expected {}, found {}", kAdmissionVersion, version));
  PB_ASSIGN_OR_RETURN(JsonRef admitted_ref, root.at("admitted"));
  PB_ASSIGN_OR_RETURN(bool admitted, admitted_ref.boolean());
  PB_ASSIGN_OR_RETURN(JsonRef digest_ref, root.at("digest"));
  PB_ASSIGN_OR_RETURN(std::string recorded, digest_ref.string());
  PB_ASSIGN_OR_RETURN(std::string digest, task_digest(task.files));
  task.admission = digest != recorded ? AdmissionState::changed
                   : admitted         ? AdmissionState::admitted
                                      : AdmissionState::rejected;
  if (!errors_by_length(task.calibration)) return {};
  PB_ASSIGN_OR_RETURN(JsonRef honest, root.at("honest"));
  PB_ASSIGN_OR_RETURN(std::vector<HonestError> points,
                      parse_honest_points(honest, name(Distribution::mixed)));
  if (task.admission == AdmissionState::admitted) add_honest(points, task.calibration);
  return {};
}

}  // namespace

const char* name(AdmissionState state) {
  switch (state) {
    case AdmissionState::none:
      return "none";
    case AdmissionState::changed:
      return "changed";
    case AdmissionState::rejected:
      return "rejected";
    case AdmissionState::admitted:
      return "admitted";
  }
  return "none";
}

Result<std::string> task_digest(const TaskFiles& task) {
  std::string parts[4];
  const std::filesystem::path files[4] = {task.definition, task.workloads,
                                          task.extras / "requirements.json",
                                          task.extras / "calibration.json"};
  std::error_code error;
  for (size_t i = 0; i < 4; ++i) {
    if (files[i].empty() || !std::filesystem::exists(files[i], error)) continue;
    PB_ASSIGN_OR_RETURN(parts[i], read_file(files[i], kMaxFileBytes));
  }
  return hash_parts({parts[0], parts[1], parts[2], parts[3]});
}

bool errors_by_length(const Calibration& calibration) {
  return calibration.kind == "single-reduction";
}

Result<void> load_admission(Task& task) {
  const std::filesystem::path path = task.folder / "admission.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  auto bad = [](const Error& e) { return Error{"bad-task", e.to_string()}; };
  auto text = read_file(path, kMaxFileBytes);
  if (!text.ok()) return bad(text.error());
  auto document = parse_json(*text, path.string());
  if (!document.ok()) return bad(document.error());
  auto applied = apply(JsonRef(*document, path.string()), task);
  if (!applied.ok()) return bad(applied.error());
  return {};
}

Result<std::vector<HonestError>> parse_honest_points(const JsonRef& object,
                                                     const std::string& distribution) {
  std::vector<HonestError> result;
  PB_ASSIGN_OR_RETURN(JsonRef points, object.at("points"));
  PB_ASSIGN_OR_RETURN(auto items, points.elements());
  for (const JsonRef& item : items) {
    PB_ASSIGN_OR_RETURN(HonestError point, parse_honest_point(item, distribution));
    result.push_back(point);
  }
  if (result.empty()) return points.error("expected at least one measurement");
  return result;
}

void add_honest(const std::vector<HonestError>& points, Calibration& calibration) {
  for (const HonestError& point : points) {
    auto at =
        std::lower_bound(calibration.honest.begin(), calibration.honest.end(), point,
                         [](const HonestError& a, const HonestError& b) { return a.k < b.k; });
    if (at == calibration.honest.end() || at->k != point.k) {
      calibration.honest.insert(at, point);
      continue;
    }
    at->rel_frobenius = std::max(at->rel_frobenius, point.rel_frobenius);
    at->misround = std::max(at->misround, point.misround);
    at->tile_misround = std::max(at->tile_misround, point.tile_misround);
  }
}

}  // namespace ptxbench::bench
