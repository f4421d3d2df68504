#include "bench/gpu/reference_plan.h"

#include <fmt/format.h>

namespace ptxbench::bench {

ReferencePlan::ReferencePlan(const std::string& name, const char* ptx) {
  plan_.arch = "sm_90";
  plan_.device_profile = "h200";
  plan_.definition = "fp64 reference";
  plan::Module module;
  module.hash = name;
  module.ptx = ptx;
  plan_.modules.push_back(std::move(module));
}

uint32_t ReferencePlan::argument(uint64_t bytes) {
  plan::Buffer buffer;
  buffer.name = fmt::format("argument{}", arguments_);
  buffer.argument = arguments_++;
  buffer.size = bytes;
  plan_.buffers.push_back(std::move(buffer));
  return static_cast<uint32_t>(plan_.buffers.size() - 1);
}

uint32_t ReferencePlan::scratch(uint64_t bytes) {
  plan::Buffer buffer;
  buffer.name = fmt::format("scratch{}", plan_.buffers.size());
  buffer.role = plan::BufferRole::scratch;
  buffer.size = bytes;
  plan_.buffers.push_back(std::move(buffer));
  return static_cast<uint32_t>(plan_.buffers.size() - 1);
}

void ReferencePlan::launch(const std::string& kernel, plan::Dim3 grid,
                           const std::vector<Parameter>& parameters) {
  plan::Launch launch;
  launch.kernel = kernel;
  launch.grid = grid;
  launch.block.x = 256;
  std::vector<uint8_t>& block = launch.params.bytes;
  for (const Parameter& p : parameters) {
    const size_t at = (block.size() + p.bytes - 1) / p.bytes * p.bytes;
    block.resize(at + p.bytes);
    if (p.buffer == kNone)
      std::memcpy(block.data() + at, &p.bits, p.bytes);
    else
      launch.params.pointers.push_back({at, {p.buffer, p.bits}});
  }
  plan_.steps.push_back(std::move(launch));
}

Result<void> replay_reference(device::Device& device, const plan::LaunchPlan& plan,
                              std::span<const device::Binding> bindings) {
  PB_ASSIGN_OR_RETURN(const plan::RunResult run, device.replay(plan, bindings, plan::RunOptions()));
  if (run.status != plan::RunStatus::completed || !run.findings.empty())
    return Error{"infrastructure",
                 "the reference kernels failed: " +
                     (run.findings.empty() ? run.message : run.findings[0].message)};
  return {};
}

}  // namespace ptxbench::bench
