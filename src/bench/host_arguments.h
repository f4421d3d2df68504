#pragma once
// What the host function of a candidate is called with.

#include <string>
#include <vector>

#include "base/result.h"
#include "bench/task.h"
#include "cudart/record.h"

namespace ptxbench::bench {

struct HostArguments {
  std::vector<cudart::TensorArgument> tensors;
  std::vector<cudart::ScalarArgument> scalars;
};

// Inputs in definition order, then outputs. Host code sees shapes and types, numbers and what blobs
// hold in integer tensors (indices, lengths), never values that come from the seed. Errors:
// "bad-task" for a number without a value, those of resolve_shape and read_safetensor.
Result<HostArguments> host_arguments(const Definition& definition, const AxisValues& axes,
                                     const InputSources& sources);

// A plan made elsewhere must be for this task at this size, and bind the task's tensors. Error
// "usage".
Result<void> check_plan(const plan::LaunchPlan& plan, const Definition& definition,
                        const AxisValues& axes, const InputSources& sources,
                        const std::string& arch);

}  // namespace ptxbench::bench
