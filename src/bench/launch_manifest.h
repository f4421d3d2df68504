#pragma once
// A launch manifest (docs/launch-manifest.md): what host code would do, as data. Together with PTX
// text it is a candidate without host code; this turns both into a launch plan.

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "bench/task.h"
#include "cudart/kernel_table.h"
#include "cudart/record.h"
#include "plan/launch_plan.h"

namespace ptxbench::bench {

struct ManifestRequest {
  std::string manifest;  // JSON text
  std::string ptx;
  std::vector<uint8_t> cubin;
  std::string arch, device_profile, definition;
  AxisValues axes;                                // names in expressions, beside sm_count
  int sm_count = 0;                               // what host code would be told
  std::vector<cudart::TensorArgument> arguments;  // the task's tensors, in argument order
};

// Not ok: the manifest or the PTX is wrong, reason "bad-launch-manifest" with file and place, or
// "launch-refused" for a shape that no device takes. An Error is the harness's own failure.
Result<cudart::RecordOutcome> plan_from_manifest(const ManifestRequest& request);

// Whether a JSON document means to be a manifest.
bool is_launch_manifest(const Json& document);

}  // namespace ptxbench::bench
