#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "bench/causes/causes.h"
#include "bench/inspect.h"
#include "device/device.h"

namespace ptxbench::bench {
namespace {

// Zeros that cost memory only where they are written.
struct FreeBytes {
  void operator()(uint8_t* p) const { std::free(p); }
};
using Bytes = std::unique_ptr<uint8_t, FreeBytes>;

}  // namespace

AssembledKernels assembled_kernels(const std::vector<toolchain::KernelResources>& resources,
                                   const std::vector<toolchain::Diagnostic>& diagnostics) {
  AssembledKernels out;
  for (const toolchain::KernelResources& r : resources) {
    AssembledKernel kernel{r.registers, r.spill_stores + r.spill_loads, false};
    for (const toolchain::Diagnostic& d : diagnostics)
      if (d.code == "C7510" || d.code == "C7511" || d.code == "C7514" || d.code == "C7515")
        kernel.products_waited_for |=
            d.text.find(r.name) != std::string::npos || resources.size() == 1;
    out[r.name] = kernel;
  }
  return out;
}

Result<std::vector<plan::LaunchCosts>> sample_costs(const plan::LaunchPlan& plan,
                                                    const std::string& device_profile,
                                                    const SampleLimits& limits) {
  std::vector<Bytes> memory;
  std::vector<device::Binding> bindings;
  for (const plan::Buffer& buffer : plan.buffers) {
    if (buffer.role != plan::BufferRole::argument) continue;
    memory.emplace_back(static_cast<uint8_t*>(std::calloc(std::max<uint64_t>(buffer.size, 1), 1)));
    if (!memory.back())
      return Error{"not-sampled",
                   fmt::format("no memory for {} of {} bytes", buffer.name, buffer.size)};
    if (bindings.size() <= buffer.argument) bindings.resize(buffer.argument + 1);
    bindings[buffer.argument] = {std::span(memory.back().get(), buffer.size), false, true};
  }
  plan::RunOptions options;
  options.ghost = plan::Ghost::matrix;
  options.threads = 1;
  options.step_budget = limits.steps;
  options.costs = {
      .collect = true, .clusters = limits.clusters, .instructions = limits.instructions};
  auto emulator = device::make_emu_device(device_profile);
  if (!emulator) return Error{"usage", "no device profile named " + device_profile};
  PB_ASSIGN_OR_RETURN(plan::RunResult run, emulator->replay(plan, bindings, options));
  if (run.status != plan::RunStatus::completed)
    return Error{"not-sampled", "a part of the grid does not run alone: " + run.message};
  return std::move(run.costs);
}

Result<SpeedReport> explain_speed(const plan::LaunchPlan& plan, const AssembledKernels& known,
                                  const std::string& machine_name, const SampleLimits& limits) {
  const Machine* machine = find_machine(machine_name);
  if (machine == nullptr)
    return Error{"usage", "no machine named " + machine_name + "; known: h100, h200, b200"};
  PB_ASSIGN_OR_RETURN(const std::vector<plan::LaunchCosts> costs,
                      sample_costs(plan, machine_name == "h100" ? "h100" : "h200", limits));
  AssembledKernels kernels = known;
  if (kernels.empty())
    for (const plan::Module& module : plan.modules)
      if (auto code = inspect_cubin(module.cubin); code.ok())
        for (const KernelInfo& info : code->kernels)
          kernels[info.name].registers = std::max(info.machine_registers, 0);
  SpeedReport report = explain_costs(costs, kernels, *machine);
  report.axes = plan.axes;
  return report;
}

}  // namespace ptxbench::bench
