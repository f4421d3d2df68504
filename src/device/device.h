#pragma once
// What runs a launch plan: the emulator or a real GPU. Everything above does not know which.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/launch_plan.h"
#include "plan/run_result.h"

namespace ptxbench::device {

// A plan buffer bound to host bytes. One binding per plan buffer of role `argument`, by position.
struct Binding {
  std::span<uint8_t> bytes;  // initial contents; updated after the replay unless read_only
  bool read_only = false;    // inputs: a write is a finding, the bytes stay as they were
  bool initialized = true;   // false: outputs; reading an unwritten byte is a finding
};

using plan::AsyncMode;
using plan::FamilyCount;
using plan::Finding;
using plan::HazardClass;
using plan::KernelStats;
using plan::RunOptions;
using plan::RunResult;
using plan::RunStatus;
using plan::TensorMode;

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;  // "emu:h200"
  // Runs every step of the plan in order. An Error means the harness failed (infrastructure);
  // whatever the candidate did wrong is in the RunResult.
  virtual Result<RunResult> replay(const plan::LaunchPlan& plan, std::span<const Binding> arguments,
                                   const RunOptions& options) = 0;
};

std::unique_ptr<Device> make_emu_device(const std::string& profile /* "h200" */);

}  // namespace ptxbench::device
