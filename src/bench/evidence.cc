#include "bench/evidence.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxbench::bench {
namespace {

bool starts_with(const std::string& text, std::string_view prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

const FamilyEvidence* find_family(const Evidence& evidence, const std::string& family) {
  for (const FamilyEvidence& item : evidence.families)
    if (item.family == family) return &item;
  return nullptr;
}

double flop_of_compute_family(const std::string& compute, const plan::RunResult& run) {
  for (const plan::FamilyCount& family : run.families)
    if (family.family == compute) return family.tensor_flop;
  return 0;
}

std::string main_compute_type(const plan::RunResult& run) {
  std::map<std::string, double> by_type;
  for (const plan::KernelStats& kernel : run.kernels)
    for (const auto& [type, flop] : kernel.tensor_flop_by_type) by_type[type] += flop;
  std::string best;
  for (const auto& [type, flop] : by_type)
    if (best.empty() || flop > by_type[best]) best = type;
  return best;
}

}  // namespace

Evidence collect_evidence(const Task& task, const std::string& arch, double task_flop,
                          const plan::RunResult& run) {
  Evidence evidence;
  evidence.task_flop = task_flop;
  for (const plan::FamilyCount& family : run.families)
    evidence.families.push_back(
        {family.family, family.static_count, family.warps, family.threads, false});
  auto requirement = task.requirements.architectures.find(arch);
  if (requirement != task.requirements.architectures.end()) {
    for (const std::string& required : requirement->second.families) {
      auto found = std::find_if(evidence.families.begin(), evidence.families.end(),
                                [&](const FamilyEvidence& f) { return f.family == required; });
      if (found != evidence.families.end())
        found->required = true;
      else
        evidence.families.push_back({required, 0, 0, 0, true});
    }
    evidence.tensor_flop = flop_of_compute_family(requirement->second.compute, run);
  }
  std::stable_sort(evidence.families.begin(), evidence.families.end(),
                   [](const FamilyEvidence& a, const FamilyEvidence& b) {
                     return a.required != b.required ? a.required : a.family < b.family;
                   });
  evidence.compute_type = main_compute_type(run);
  bool any_static = false, any_executed = false;
  for (const FamilyEvidence& family : evidence.families) {
    any_static |= family.required && family.static_count > 0;
    any_executed |= family.required && family.warps > 0;
  }
  evidence.level = any_executed ? "executed" : any_static ? "static" : "none";
  return evidence;
}

EvidenceDecision decide_evidence(const Task& task, const std::string& arch,
                                 const Evidence& evidence) {
  if (task.requirements.architectures.empty()) return {true, "", ""};  // any way will do
  auto requirement = task.requirements.architectures.find(arch);
  if (requirement == task.requirements.architectures.end())
    return {false, "instructions-absent",
            fmt::format("{} states no requirements for {}", task.definition.name, arch)};
  std::string absent, idle;
  for (const std::string& name : requirement->second.families) {
    const FamilyEvidence* family = find_family(evidence, name);
    if (family == nullptr || (family->static_count == 0 && family->warps == 0))
      absent += (absent.empty() ? "" : ", ") + name;
    else if (family->warps == 0)
      idle += (idle.empty() ? "" : ", ") + name;
  }
  if (!absent.empty())
    return {false, "instructions-absent",
            fmt::format("the kernels that ran contain no {}, which {} requires on {}", absent,
                        task.definition.name, arch)};
  if (!idle.empty())
    return {false, "instructions-not-executed",
            fmt::format("{} is in the code but was never executed", idle)};
  const double share = evidence.task_flop > 0 ? evidence.tensor_flop / evidence.task_flop : 0;
  if (!requirement->second.compute.empty() && !(share >= task.requirements.min_flop_share))
    return {
        false, "insufficient-flop",
        fmt::format("{} carried {:.1f} % of the task's {:.4g} FLOP; at least {:.0f} % are required",
                    requirement->second.compute, 100 * share, evidence.task_flop,
                    100 * task.requirements.min_flop_share)};
  const std::string& type = task.requirements.compute_type;
  if (!type.empty() && evidence.compute_type != type)
    return {false, "wrong-compute-type",
            fmt::format("computed in {} where {} is declared",
                        evidence.compute_type.empty() ? "no tensor type" : evidence.compute_type,
                        type)};
  return {};
}

std::string published_tag(const Evidence& evidence) {
  bool ampere = false, hopper = false, blackwell = false;
  for (const FamilyEvidence& family : evidence.families) {
    if (family.warps == 0) continue;
    const std::string& name = family.family;
    blackwell |= starts_with(name, "tcgen05.mma");
    hopper |= starts_with(name, "wgmma.mma_async") || starts_with(name, "cp.async.bulk");
    ampere |= starts_with(name, "mma") || starts_with(name, "ldmatrix") ||
              (starts_with(name, "cp.async") && !starts_with(name, "cp.async.bulk"));
  }
  std::string tag;
  for (auto [set, letter] : {std::pair{ampere, "A"}, {hopper, "H"}, {blackwell, "B"}})
    if (set) tag += (tag.empty() ? "" : ", ") + std::string(letter);
  return tag.empty() ? "G" : tag;
}

}  // namespace ptxbench::bench
