#include "bench/inspect.h"

#include <fmt/format.h>

#include "ptx/instruction_table.h"
#include "ptx/parser.h"

namespace ptxbench::bench {
namespace {

KernelInfo describe_function(const ptx::Function& function, const ptx::Module& module) {
  KernelInfo info;
  info.name = function.name;
  info.entry = function.is_entry;
  info.param_bytes = function.param_bytes;
  info.declared_registers = static_cast<uint32_t>(function.registers.size());
  info.min_blocks = function.directives.minnctapersm;
  info.max_threads = function.directives.reqntid.empty() ? function.directives.maxntid
                                                         : function.directives.reqntid;
  for (const auto* variables : {&function.variables, &module.variables})
    for (const ptx::Variable& variable : *variables) {
      if (variable.space != ptx::Space::shared) continue;
      info.static_shared_bytes += variable.size;
      info.dynamic_shared |= variable.linkage == ptx::Linkage::extern_ && variable.size == 0;
    }
  for (const ptx::Statement& statement : function.body)
    if (const auto* instruction = std::get_if<ptx::Instruction>(&statement))
      ++info.families[ptx::family(*instruction)];
  return info;
}

void add_kernels(const std::string& prefix, Inspection& from, Inspection& to) {
  for (KernelInfo& kernel : from.kernels) {
    kernel.name = prefix + kernel.name;
    to.kernels.push_back(std::move(kernel));
  }
}

std::string describe_step(const plan::LaunchPlan& plan, const plan::Step& step) {
  auto buffer = [&](const plan::BufferRef& ref) {
    const std::string name =
        ref.buffer < plan.buffers.size() ? plan.buffers[ref.buffer].name : std::string("?");
    return ref.offset ? fmt::format("{}+{}", name, ref.offset) : name;
  };
  if (const auto* launch = std::get_if<plan::Launch>(&step)) {
    auto dims = [](const plan::Dim3& d) { return fmt::format("({},{},{})", d.x, d.y, d.z); };
    std::string text = fmt::format("launch {} grid {} block {}", launch->kernel, dims(launch->grid),
                                   dims(launch->block));
    if (launch->explicit_cluster) text += " cluster " + dims(launch->cluster);
    text +=
        fmt::format(", {} bytes of dynamic shared memory, {} bytes of parameters, {} tensor maps",
                    launch->dynamic_shared_bytes, launch->params.bytes.size(),
                    launch->params.tensor_maps.size());
    return text;
  }
  if (const auto* memset = std::get_if<plan::Memset>(&step))
    return fmt::format("memset {} with {:#x}, {} bytes", buffer(memset->dst), memset->value,
                       memset->bytes);
  if (const auto* copy = std::get_if<plan::CopyHostToDevice>(&step))
    return fmt::format("copy {} bytes from the host to {}", copy->data.bytes.size(),
                       buffer(copy->dst));
  if (const auto* free = std::get_if<plan::Free>(&step)) return "free " + buffer({free->buffer, 0});
  const auto& copy = std::get<plan::CopyDeviceToDevice>(step);
  return fmt::format("copy {} bytes from {} to {}", copy.bytes, buffer(copy.src), buffer(copy.dst));
}

}  // namespace

Result<Inspection> inspect_ptx(const std::string& text, const std::string& file_name) {
  PB_ASSIGN_OR_RETURN(ptx::Module module, ptx::parse(text, file_name));
  Inspection inspection;
  inspection.kind = "ptx";
  inspection.target = module.target;
  inspection.version = fmt::format("{}.{}", module.version_major, module.version_minor);
  for (const ptx::Function& function : module.functions)
    if (!function.is_declaration) inspection.kernels.push_back(describe_function(function, module));
  return inspection;
}

Result<Inspection> inspect_plan(const plan::LaunchPlan& plan) {
  Inspection inspection;
  inspection.kind = "plan";
  inspection.target = plan.arch;
  inspection.version = std::to_string(plan::LaunchPlan::kVersion);
  for (size_t i = 0; i < plan.modules.size(); ++i) {
    const plan::Module& module = plan.modules[i];
    Inspection inner;
    if (!module.ptx.empty()) {
      PB_ASSIGN_OR_RETURN(inner, inspect_ptx(module.ptx, fmt::format("module {}", i)));
    }
    if (!module.cubin.empty()) {
      PB_ASSIGN_OR_RETURN(Inspection machine, inspect_cubin(module.cubin));
      if (module.ptx.empty())
        inner = std::move(machine);
      else
        merge_machine_code(inner, machine);
    }
    add_kernels("", inner, inspection);
  }
  for (const plan::Step& step : plan.steps)
    inspection.launches.push_back(describe_step(plan, step));
  return inspection;
}

void merge_machine_code(Inspection& ptx, const Inspection& cubin) {
  for (KernelInfo& kernel : ptx.kernels)
    for (const KernelInfo& machine : cubin.kernels)
      if (machine.name == kernel.name) {
        kernel.machine_registers = machine.machine_registers;
        kernel.code_bytes = machine.code_bytes;
      }
}

}  // namespace ptxbench::bench
