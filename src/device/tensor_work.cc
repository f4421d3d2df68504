#include "device/tensor_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "ptx/parser.h"

namespace ptxbench::device {
namespace {

// Matrix instructions of a function by their line. Sites of one line (macros of inline PTX) add up
// only if they are the same work, so the first stands for all.
using WorkByLine = std::map<std::pair<std::string, uint32_t>, TensorWork>;

WorkByLine work_of(const ptx::Module& module) {
  WorkByLine out;
  for (const ptx::Function& function : module.functions)
    for (const ptx::Statement& statement : function.body)
      if (const auto* i = std::get_if<ptx::Instruction>(&statement))
        if (TensorWork work = tensor_work(*i); work.flop > 0)
          out.emplace(std::pair(function.name, i->line), std::move(work));
  return out;
}

void add_types(plan::KernelStats& kernel, const std::string& types, double flop) {
  kernel.tensor_flop += flop;
  for (auto& [name, sum] : kernel.tensor_flop_by_type)
    if (name == types) {
      sum += flop;
      return;
    }
  kernel.tensor_flop_by_type.emplace_back(types, flop);
}

plan::KernelStats& kernel_of(const std::string& name, plan::RunResult* result) {
  for (plan::KernelStats& kernel : result->kernels)
    if (kernel.kernel == name) return kernel;
  result->kernels.push_back(plan::KernelStats{.kernel = name});
  return result->kernels.back();
}

}  // namespace

TensorWork tensor_work(const ptx::Instruction& instruction) {
  const ptx::Modifiers& mods = instruction.mods;
  const bool wgmma =
      instruction.op == ptx::Op::wgmma_mma_async || instruction.op == ptx::Op::wgmma_mma_async_sp;
  const bool mma = instruction.op == ptx::Op::mma;
  if ((!wgmma && !mma) || mods.types.size() < 3) return {};
  const auto& shape = mods.shape;
  // A wgmma's 64 rows are four warps' work; one m8n8k4 of f16 multiplies four pairs.
  const double rows = wgmma ? 16 : shape.m;
  const bool quad = mma && shape.m == 8 && shape.k == 4 && mods.types[1] == ptx::Type::f16;
  return {(quad ? 8.0 : 2.0) * rows * shape.n * shape.k,
          fmt::format("{}.{}.{}", ptx::name(mods.types[1]), ptx::name(mods.types[2]),
                      ptx::name(mods.types[0]))};
}

Result<void> add_counts(const plan::LaunchPlan& original, const InstrumentedPlan& instrumented,
                        std::span<const uint8_t> counters, plan::RunResult* result) {
  if (counters.size() != instrumented.counter_bytes)
    return Error{"usage", fmt::format("{} bytes of counters where the plan has {}", counters.size(),
                                      instrumented.counter_bytes)};
  // As the ledger: what kernels that were not launched hold is not counted, not even as sites.
  std::set<std::string> launched;
  for (const plan::Step& step : original.steps)
    if (const auto* launch = std::get_if<plan::Launch>(&step)) launched.insert(launch->kernel);
  std::map<std::string, plan::FamilyCount> families;
  for (const InstrumentedPlan::Counters& module : instrumented.modules) {
    PB_ASSIGN_OR_RETURN(const ptx::Module parsed,
                        ptx::parse(original.modules[module.module].ptx, "module"));
    const WorkByLine work = work_of(parsed);
    for (const ptx::CounterSite& site : module.instrumentation.sites) {
      const ptx::Function* function = parsed.find_function(site.function);
      if (function != nullptr && function->is_entry && launched.count(site.function) == 0) continue;
      uint64_t counts[2] = {};
      std::memcpy(counts, counters.data() + module.offset + uint64_t{16} * site.counter, 16);
      plan::FamilyCount& family = families[site.family];
      family.family = site.family;
      ++family.static_count;
      family.warps += counts[0];
      family.threads += counts[1];
      const auto found = work.find({site.function, site.line});
      const bool matrix = site.family.starts_with("wgmma") || site.family.starts_with("mma");
      if (found == work.end() || !matrix) continue;
      const double flop = found->second.flop * static_cast<double>(counts[0]);
      family.tensor_flop += flop;
      // What device functions compute is booked under their own name.
      add_types(kernel_of(site.function, result), found->second.types, flop);
    }
  }
  for (const plan::Step& step : original.steps) {
    const auto* launch = std::get_if<plan::Launch>(&step);
    if (launch == nullptr) continue;
    plan::KernelStats& kernel = kernel_of(launch->kernel, result);
    ++kernel.launches;
    kernel.ctas += launch->grid.count();
  }
  result->families.clear();
  for (const auto& [name, family] : families) result->families.push_back(family);
  return {};
}

}  // namespace ptxbench::device
