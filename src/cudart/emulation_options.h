#pragma once
// How the live runtime emulates. `ptxbench emulate` hands its options to the program's process
// through environment variables PTXBENCH_EMULATE_*, which also work without it.

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "plan/run_result.h"

namespace ptxbench::cudart {

struct EmulationOptions {
  std::string profile = "h200";  // h100, h200, b200
  plan::TensorMode tensor = plan::TensorMode::hw;
  plan::AsyncMode async = plan::AsyncMode::late;
  int threads = 0;                   // 0: all cores
  std::string schedule = "inorder";  // or "random:SEED"
  bool races = false;                // look for accesses that nothing orders
};

// Sets one option by name ("profile", "tensor", "async", "threads", "schedule",
// "races"). Errors: "usage".
Result<void> set_emulation_option(EmulationOptions* options, const std::string& name,
                                  const std::string& value);

// From PTXBENCH_EMULATE_PROFILE, _TENSOR, _ASYNC, _THREADS, _SCHEDULE, _RACES. Errors: "usage".
Result<EmulationOptions> read_emulation_environment();

}  // namespace ptxbench::cudart
