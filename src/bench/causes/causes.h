#pragma once
// Why a correct candidate is no faster: a sample of its CTAs is emulated at the size asked for,
// what they cost becomes an estimate of time (estimate.h), and each cause is thought away to see
// what it costs. Nothing is concluded from source text; every cause names what was counted.

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/causes/estimate.h"
#include "bench/task.h"
#include "plan/launch_plan.h"
#include "toolchain/compiler.h"

namespace ptxbench::bench {

struct SpeedCause {
  // "wave-quantisation", "low-occupancy", "serialised-products", "no-overlap", "bank-conflicts",
  // "uncoalesced-access", "spills", "redundant-traffic", "atomics", "barriers", "divergence",
  // "mma-sync"
  std::string kind;
  double cost = 0;  // share of the estimated time that would go with it
  std::string kernel;
  std::string evidence;  // what was counted
  std::string advice;    // what to do
  std::string file;      // of the CUDA source, where one place stands out; "" otherwise
  int line = 0, ptx_line = 0;
};

struct SpeedReport {
  std::string machine;      // "h200"
  bool calibrated = false;  // the model was compared with times of that card
  AxisValues axes;
  double ms = 0;      // estimated, of all launches of the plan
  std::string bound;  // the part of the machine that the longest launch waits for
  uint64_t ctas = 0, ctas_run = 0;
  std::vector<LaunchEstimate> launches;
  std::vector<SpeedCause> causes;  // dearest first
};

// By kernel name.
using AssembledKernels = std::map<std::string, AssembledKernel>;
AssembledKernels assembled_kernels(const std::vector<toolchain::KernelResources>& resources,
                                   const std::vector<toolchain::Diagnostic>& diagnostics);

// How much of a plan is emulated.
struct SampleLimits {
  uint64_t clusters = 24;             // of each launch: every kind of CTA of a causal kernel
  uint64_t instructions = 1'000'000;  // of warps, after which no further cluster begins
  uint64_t steps = 60'000'000;        // of the whole plan: CTAs that wait for others never end
};

// Costs of each launch of the plan, from a part of its CTAs: matrix instructions compute nothing
// and buffers hold zeros, so that counts are what is learnt. Errors: "not-sampled" (its CTAs wait
// for others, or it fails on zeros), "usage" (no such machine).
Result<std::vector<plan::LaunchCosts>> sample_costs(const plan::LaunchPlan& plan,
                                                    const std::string& device_profile,
                                                    const SampleLimits& limits = {});

SpeedReport explain_costs(const std::vector<plan::LaunchCosts>& costs,
                          const AssembledKernels& kernels, const Machine& machine);

// Both. `kernels` may be empty: then registers come from the plan's machine code.
Result<SpeedReport> explain_speed(const plan::LaunchPlan& plan, const AssembledKernels& kernels,
                                  const std::string& machine, const SampleLimits& limits = {});

}  // namespace ptxbench::bench
