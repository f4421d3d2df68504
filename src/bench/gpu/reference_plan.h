#pragma once
// Launch plans of this project's own reference kernels, piece by piece.

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"

namespace ptxbench::bench {

class ReferencePlan {
 public:
  static constexpr uint32_t kNone = ~0u;

  // One kernel parameter: a number, or an address in a buffer.
  struct Parameter {
    uint64_t bits = 0;
    uint8_t bytes = 8;
    uint32_t buffer = kNone;
  };
  static Parameter address(uint32_t buffer, uint64_t offset) { return {offset, 8, buffer}; }
  static Parameter null() { return {}; }
  template <class T>
  static Parameter number(T value) {
    Parameter parameter{0, sizeof(T), kNone};
    std::memcpy(&parameter.bits, &value, sizeof value);
    return parameter;
  }

  ReferencePlan(const std::string& name, const char* ptx);
  // Both return the buffer's index; arguments are bound in the order in which they are added.
  uint32_t argument(uint64_t bytes);
  uint32_t scratch(uint64_t bytes);
  // CTAs of 256 threads.
  void launch(const std::string& kernel, plan::Dim3 grid, const std::vector<Parameter>& parameters);
  plan::LaunchPlan take() { return std::move(plan_); }

 private:
  plan::LaunchPlan plan_;
  uint32_t arguments_ = 0;
};

// Error "infrastructure" where the kernels did not run to their end or left a finding.
Result<void> replay_reference(device::Device& device, const plan::LaunchPlan& plan,
                              std::span<const device::Binding> bindings);

}  // namespace ptxbench::bench
