#include "device/dataflow.h"

#include <algorithm>

namespace ptxbench::device {

std::vector<bool> contributes(const std::vector<StepEffect>& steps, std::vector<uint64_t> needed) {
  auto is_needed = [&](uint64_t base) {
    return std::find(needed.begin(), needed.end(), base) != needed.end();
  };
  std::vector<bool> useful(steps.size());
  for (size_t i = steps.size(); i-- > 0;) {
    const auto& touched = steps[i].touched;
    useful[i] = std::any_of(touched.begin(), touched.end(), [&](const BufferTouch& t) {
      return t.written > 0 && is_needed(t.base);
    });
    if (!useful[i]) continue;
    for (const BufferTouch& t : touched)
      if (t.written >= t.size && t.read == 0) std::erase(needed, t.base);
    for (const BufferTouch& t : touched)
      if (t.read > 0 && !is_needed(t.base)) needed.push_back(t.base);
  }
  return useful;
}

namespace {

void add(plan::KernelStats& to, const plan::KernelStats& from) {
  to.launches += from.launches, to.ctas += from.ctas;
  to.warp_instructions += from.warp_instructions;
  to.thread_instructions += from.thread_instructions;
  to.tensor_flop += from.tensor_flop;
  for (const auto& [type, flop] : from.tensor_flop_by_type) {
    auto it = std::find_if(to.tensor_flop_by_type.begin(), to.tensor_flop_by_type.end(),
                           [&](const auto& x) { return x.first == type; });
    if (it == to.tensor_flop_by_type.end())
      to.tensor_flop_by_type.emplace_back(type, flop);
    else
      it->second += flop;
  }
  to.global_load_bytes += from.global_load_bytes, to.global_store_bytes += from.global_store_bytes;
  to.bulk_load_bytes += from.bulk_load_bytes, to.bulk_store_bytes += from.bulk_store_bytes;
  to.shared_load_bytes += from.shared_load_bytes, to.shared_store_bytes += from.shared_store_bytes;
}

}  // namespace

void merge_counts(const StepEffect& step, plan::RunResult* result) {
  bool seen = false;
  for (const plan::KernelStats& k : step.kernels) {
    auto it = std::find_if(result->kernels.begin(), result->kernels.end(),
                           [&](const plan::KernelStats& x) { return x.kernel == k.kernel; });
    seen |= it != result->kernels.end();
    if (it == result->kernels.end())
      result->kernels.push_back(k);
    else
      add(*it, k);
  }
  for (const plan::FamilyCount& f : step.families) {
    auto it = std::find_if(result->families.begin(), result->families.end(),
                           [&](const plan::FamilyCount& x) { return x.family == f.family; });
    if (it == result->families.end()) {
      result->families.push_back(f);
      continue;
    }
    if (!seen) it->static_count += f.static_count;
    it->warps += f.warps, it->threads += f.threads;
    it->tensor_flop += f.tensor_flop;
  }
  std::sort(result->families.begin(), result->families.end(),
            [](const auto& a, const auto& b) { return a.family < b.family; });
}

}  // namespace ptxbench::device
