#pragma once
// Runs a candidate's host function twice in the sandbox against our recording CUDA runtime, with
// different fake address bases, and merges the two recordings into a launch plan.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/launch_plan.h"

namespace ptxbench::cudart {

struct TensorArgument {
  std::string name;
  std::string
      dtype;  // FlashInfer-Trace names: "bfloat16", "float32", "float8_e4m3fn", "int32", ...
  std::vector<int64_t> shape;  // row-major, contiguous
  bool is_output = false;
  std::vector<uint8_t>
      host_bytes;  // contents that host code may read back (integer inputs); else empty
};

uint64_t byte_size(const TensorArgument& argument);  // of the tensor; 0 for an unknown dtype

struct ScalarArgument {
  uint32_t position = 0;  // among all arguments, tensors and numbers
  enum class Kind { integer, boolean, floating } kind = Kind::floating;
  double value = 0;  // integers are exact up to 2^53
};

struct RecordRequest {
  std::filesystem::path host_library;
  std::string ptx;
  std::vector<uint8_t> cubin;
  std::string entry_point = "run";  // exported as __tvm_ffi_run
  std::string arch = "sm_90a";
  std::string device_profile = "h200";
  int sm_count = 0;  // what host code is told instead of the profile's own; 0 = the profile's
  std::string definition;
  std::vector<std::pair<std::string, int64_t>> axes;
  std::vector<TensorArgument> arguments;  // tensors: inputs in definition order, then outputs
  std::vector<ScalarArgument> scalars;    // by ascending position
  double timeout_s = 10;
  uint64_t memory_bytes = uint64_t{2} << 30;
  bool trust = false;
};

struct RecordOutcome {
  bool ok = false;
  // When !ok: stable slug of what the candidate did: "entry-point-missing", "wrong-arguments",
  // "host-nondeterministic", "host-timeout", "host-crash", "host-exception", "launch-refused",
  // "unsupported-runtime-call", "result-readback", "no-launch".
  std::string reason;
  std::string message;
  plan::LaunchPlan plan;
  double ms = 0;
};

// A call that the runtime refused counts even if host code ignored the error: the plan would not be
// what the candidate meant. An Error is the harness's own failure ("no-sandbox", "io",
// "infrastructure").
Result<RecordOutcome> record(const RecordRequest& request);

}  // namespace ptxbench::cudart
