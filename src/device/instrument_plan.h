#pragma once
// A launch plan whose modules count their target instructions (ptx/instrument.h). Runs on any
// Device; on a GPU the instrumented PTX has to be assembled first, its cubins are left empty.

#include <span>
#include <string>
#include <vector>

#include "plan/launch_plan.h"
#include "plan/run_result.h"
#include "ptx/instrument.h"

namespace ptxbench::device {

struct InstrumentedPlan {
  plan::LaunchPlan plan;
  struct Counters {
    uint32_t module = 0;  // LaunchPlan::modules
    uint64_t offset = 0;  // of its counters within the buffer, bytes
    ptx::Instrumentation instrumentation;
  };
  std::vector<Counters> modules;  // those that have something to count
  uint64_t counter_bytes = 0;     // 0: nothing to count, and the plan is the one given
};

// Adds one argument after the plan's own: the counters, `counter_bytes` bytes, zero before the
// replay. Errors: "ptx-syntax" of a module, those of ptx::instrument, "unsupported" (a module that
// is machine code alone).
Result<InstrumentedPlan> instrument(const plan::LaunchPlan& plan,
                                    const std::vector<std::string>& families = {});

// What the counters say after the replay, by family, sorted. Error "usage": another size.
Result<std::vector<plan::FamilyCount>> decode_counters(const InstrumentedPlan& plan,
                                                       std::span<const uint8_t> bytes);

}  // namespace ptxbench::device
