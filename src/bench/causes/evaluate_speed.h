#pragma once
// Adds to a verdict how long the candidate would take and why (causes.h).

#include "bench/causes/causes.h"
#include "bench/evaluate.h"

namespace ptxbench::bench {

// Fills verdict.estimate, at the size that was judged if that is a published one or all that is
// known (a plan), else at a published size that fills a GPU, recorded anew. Where that cannot be
// done a note says why; it never changes a level.
void add_speed_report(const EvalRequest& request, const Services& services,
                      const plan::LaunchPlan& plan, const AssembledKernels& kernels,
                      Verdict& verdict);

}  // namespace ptxbench::bench
