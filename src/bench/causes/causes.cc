#include "bench/causes/causes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/demangle.h"

namespace ptxbench::bench {
namespace {

using plan::CostSite;
using plan::LaunchCosts;

constexpr double kWorthNaming = 0.02;  // of the estimated time

double real(uint64_t n) { return static_cast<double>(n); }

// One launch, as it is.
struct Seen {
  const LaunchCosts& costs;
  const AssembledKernel& kernel;
  const LaunchEstimate& estimate;
};

// The dearest place of one of the kinds.
const CostSite* dearest(const LaunchCosts& costs, std::initializer_list<const char*> kinds,
                        bool by_excess) {
  const CostSite* best = nullptr;
  const auto weight = [&](const CostSite& s) {
    return by_excess ? s.cost.units - std::min(s.cost.units, s.cost.least) : s.cost.requests;
  };
  for (const CostSite& site : costs.sites)
    for (const char* kind : kinds)
      if (site.kind == kind && (!best || weight(site) > weight(*best))) best = &site;
  return best;
}

void place(SpeedCause& cause, const CostSite* site) {
  if (site == nullptr) return;
  cause.file = site->file;
  cause.line = site->line;
  cause.ptx_line = site->ptx_line;
}

std::string per_request(const plan::AccessCost& cost) {
  return fmt::format("{:.1f} instead of {:.1f}",
                     real(cost.units) / std::max(1.0, real(cost.requests)),
                     real(cost.least) / std::max(1.0, real(cost.requests)));
}

// A cause: how to think it away, and what to say of it. False: there is nothing to say.
struct Rule {
  const char* kind;
  bool WhatIf::*without;
  bool (*describe)(const Seen& seen, SpeedCause& cause);
};

bool quantisation(const Seen& s, SpeedCause& c) {
  if (s.estimate.imbalance < 1.02) return false;
  c.evidence = fmt::format(
      "{} CTAs in {:.2f} waves ({} on an SM): the busiest SM has {:.2f} times the average work",
      s.costs.ctas, s.estimate.waves, s.estimate.ctas_per_sm, s.estimate.imbalance);
  c.advice = s.estimate.waves < 1
                 ? "use smaller tiles or split the reduction, so that every SM gets work"
                 : "choose tiles so that their number is just below a multiple of the SMs, or let "
                   "persistent CTAs share the remainder (stream-K)";
  return true;
}

bool occupancy(const Seen& s, SpeedCause& c) {
  const uint32_t warps = (s.costs.block[0] * s.costs.block[1] * s.costs.block[2] + 31) / 32;
  const uint32_t resident = warps * static_cast<uint32_t>(s.estimate.ctas_per_sm);
  // Warp-specialised kernels with TMA are meant to run alone on an SM.
  if (resident >= 32 || s.costs.matrix_beside_copy * 2 > s.costs.matrix_instructions) return false;
  c.evidence = fmt::format(
      "{} warps of 64 fit on an SM, limited by {} ({} registers a thread, "
      "{} bytes of shared memory a CTA)",
      resident, s.estimate.limited_by, s.kernel.registers, s.costs.shared_bytes);
  c.advice = s.estimate.limited_by == "registers"
                 ? "fewer registers (__launch_bounds__, smaller tiles a thread), or prefetch with "
                   "cp.async or TMA so that few warps suffice"
             : s.estimate.limited_by == "shared memory"
                 ? "less shared memory a CTA, or prefetch deeper so that few warps suffice"
                 : "larger CTAs or more of them";
  return true;
}

bool serialised(const Seen& s, SpeedCause& c) {
  if (s.costs.matrix.empty()) return false;
  const bool warpgroups = s.costs.matrix[0].warpgroup;
  if (!warpgroups) return false;
  if (s.kernel.products_waited_for)
    c.evidence = "ptxas waits for every wgmma of this kernel (its advisory says why)";
  else
    c.evidence = fmt::format(
        "{:.0f} % of the waits leave no wgmma in flight, and {} warpgroups an SM multiply",
        100 * real(s.costs.wgmma_drains) / std::max(1.0, real(s.costs.wgmma_waits)),
        s.costs.matrix_warps / 4 * static_cast<uint32_t>(s.estimate.ctas_per_sm));
  c.advice =
      s.kernel.products_waited_for
          ? "keep accumulators out of branches and function calls, and do not touch them between "
            "wgmma and wgmma.wait_group"
          : "issue the next wgmma group before waiting for the last (wgmma.wait_group 1), or let "
            "a second warpgroup multiply meanwhile";
  return true;
}

bool overlap(const Seen& s, SpeedCause& c) {
  if (s.costs.matrix_instructions == 0) return false;
  const double beside = real(s.costs.matrix_beside_copy) / real(s.costs.matrix_instructions);
  if (s.costs.copies > 0 && beside > 0.4) return false;
  c.evidence =
      s.costs.copies == 0
          ? "operands are loaded through registers; no asynchronous copy is used"
          : fmt::format("{:.0f} % of the products run while a copy is in flight", 100 * beside);
  c.advice =
      "load the next stage (TMA or cp.async into a ring of buffers) before the products of this "
      "one, and wait only for the stage that is needed";
  place(c, dearest(s.costs, {"mbarrier-wait"}, false));
  return true;
}

bool conflicts(const Seen& s, SpeedCause& c) {
  plan::AccessCost all = s.costs.shared_load;
  all.add(s.costs.shared_store);
  if (real(all.units) < 1.1 * real(all.least)) return false;
  const CostSite* site = dearest(s.costs, {"shared-load", "shared-store"}, true);
  if (site == nullptr) return false;
  c.evidence = fmt::format(
      "{} takes {} cycles of shared memory; over all accesses {:.1f} times "
      "the least",
      site->kind, per_request(site->cost), real(all.units) / std::max(1.0, real(all.least)));
  c.advice = "swizzle or pad the rows so that lanes of one access lie in different banks";
  place(c, site);
  return true;
}

bool uncoalesced(const Seen& s, SpeedCause& c) {
  const CostSite* site = dearest(s.costs, {"global-load", "global-store"}, true);
  plan::AccessCost all = s.costs.global_load;
  all.add(s.costs.global_store);
  if (site == nullptr || real(all.units) < 1.25 * real(all.least)) return false;
  c.evidence = fmt::format("{} touches {} sectors of 32 bytes an access", site->kind,
                           per_request(site->cost));
  c.advice =
      "let neighbouring lanes access neighbouring addresses, 16 bytes a lane where possible; "
      "transpose through shared memory if need be";
  place(c, site);
  return true;
}

bool spills(const Seen& s, SpeedCause& c) {
  if (s.kernel.spill_bytes == 0) return false;
  c.evidence = fmt::format("ptxas spills: {} bytes of stores and loads a thread, at {} registers",
                           s.kernel.spill_bytes, s.kernel.registers);
  c.advice =
      "fewer live values a thread: smaller tiles, fewer stages held in registers, or more "
      "registers (__launch_bounds__, setmaxnreg)";
  return true;
}

bool redundant(const Seen& s, SpeedCause& c) {
  const double share = s.costs.ctas_run ? real(s.costs.ctas) / real(s.costs.ctas_run) : 0;
  const double loads = share * (32 * real(s.costs.l2_load_sectors) + real(s.costs.bulk_load_bytes));
  if (loads < 4 * s.costs.unique_read_bytes || s.costs.unique_read_bytes <= 0) return false;
  // Tiles read their operands many times, and rightly so: only where nothing else is slower.
  const auto& terms = s.estimate.terms;
  if (terms.empty() ||
      (terms[0].name != "L2" && terms[0].name != "L2 to SM" && terms[0].name != "memory" &&
       terms[0].name != "waits" && terms[0].name != "shared memory"))
    return false;
  c.evidence =
      fmt::format("{:.3g} GB are fetched from L2 to read {:.3g} GB: {:.0f} times", loads / 1e9,
                  s.costs.unique_read_bytes / 1e9, loads / s.costs.unique_read_bytes);
  c.advice =
      "larger tiles, operands kept in shared memory for all warps of the CTA, or multicast in a "
      "cluster";
  place(c, dearest(s.costs, {"global-load"}, false));
  return true;
}

bool atomics(const Seen& s, SpeedCause& c) {
  if (s.costs.atomics.requests + s.costs.shared_atomics.requests == 0) return false;
  const CostSite* site = dearest(s.costs, {"atomic"}, false);
  const double share = s.costs.ctas_run ? real(s.costs.ctas) / real(s.costs.ctas_run) : 0;
  c.evidence =
      fmt::format("{:.3g} atomics of lanes on global memory, {:.3g} of them on one word",
                  share * real(s.costs.atomics.bytes) / 4, share * real(s.costs.hottest_atomic));
  c.advice =
      "add up in registers, warps (redux, shuffles) and shared memory first, one atomic a CTA";
  place(c, site);
  return true;
}

bool barriers(const Seen& s, SpeedCause& c) {
  if (s.costs.barriers == 0) return false;
  c.evidence = fmt::format("a CTA barrier every {:.0f} warp instructions",
                           real(s.costs.warp_instructions) / real(s.costs.barriers));
  c.advice = "more work between barriers, or mbarriers that only those wait at who need to";
  place(c, dearest(s.costs, {"barrier-wait"}, false));
  return true;
}

bool divergence(const Seen& s, SpeedCause& c) {
  const double lanes = real(s.costs.thread_instructions) / real(s.costs.warp_instructions);
  if (lanes > 28) return false;
  c.evidence = fmt::format("{:.1f} of 32 lanes take part in an instruction on average", lanes);
  c.advice = "give all lanes the same path; one lane may issue TMA, arithmetic needs all";
  return true;
}

bool small_products(const Seen& s, SpeedCause& c) {
  if (s.costs.matrix.empty() || s.costs.matrix[0].warpgroup) return false;
  c.evidence = "products are mma.sync, which reaches about 62 % of the peak on Hopper";
  c.advice = "wgmma with operands in shared memory, filled by TMA";
  return true;
}

constexpr Rule kRules[] = {
    {"wave-quantisation", &WhatIf::even_work, quantisation},
    {"low-occupancy", &WhatIf::full_occupancy, occupancy},
    {"serialised-products", &WhatIf::products_queued, serialised},
    {"no-overlap", &WhatIf::copies_beside, overlap},
    {"bank-conflicts", &WhatIf::no_conflicts, conflicts},
    {"uncoalesced-access", &WhatIf::coalesced, uncoalesced},
    {"spills", &WhatIf::no_spills, spills},
    {"redundant-traffic", &WhatIf::read_once, redundant},
    {"atomics", &WhatIf::no_atomics, atomics},
    {"barriers", &WhatIf::no_barriers, barriers},
    {"divergence", &WhatIf::converged, divergence},
    {"mma-sync", &WhatIf::warpgroup_products, small_products},
};

}  // namespace

SpeedReport explain_costs(const std::vector<LaunchCosts>& costs, const AssembledKernels& kernels,
                          const Machine& machine) {
  SpeedReport report;
  report.machine = machine.name;
  report.calibrated = machine.calibrated;
  const auto assembled = [&](const LaunchCosts& c) {
    const auto found = kernels.find(c.kernel);
    return found == kernels.end() ? AssembledKernel() : found->second;
  };
  for (const LaunchCosts& c : costs) {
    report.launches.push_back(estimate(c, assembled(c), machine));
    report.ms += report.launches.back().ms;
    report.ctas += c.ctas, report.ctas_run += c.ctas_run;
  }
  double longest = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    const LaunchEstimate& as_is = report.launches[i];
    const AssembledKernel kernel = assembled(costs[i]);
    if (as_is.ms > longest && !as_is.terms.empty()) {
      longest = as_is.ms;
      report.bound = as_is.terms[0].ms < as_is.launch_ms ? "launch" : as_is.terms[0].name;
    }
    for (const Rule& rule : kRules) {
      WhatIf what_if;
      what_if.*rule.without = true;
      SpeedCause cause;
      cause.kind = rule.kind;
      cause.cost = (as_is.ms - estimate(costs[i], kernel, machine, what_if).ms) / report.ms;
      if (cause.cost < kWorthNaming) continue;
      cause.kernel = demangled_function(costs[i].kernel);
      if (rule.describe({costs[i], kernel, as_is}, cause)) report.causes.push_back(cause);
    }
  }
  std::stable_sort(report.causes.begin(), report.causes.end(),
                   [](const auto& a, const auto& b) { return a.cost > b.cost; });
  return report;
}

}  // namespace ptxbench::bench
