#include "bench/inspect.h"

#include <fmt/format.h>

#include <algorithm>

#include "ptx/instruction_table.h"
#include "ptx/liveness.h"
#include "ptx/parser.h"
#include "ptx/verifier.h"
#include "toolchain/fatbin.h"

namespace ptxbench::bench {
namespace {

// What ptxas 13.0 compiles for.
constexpr std::string_view kTargets[] = {
    "sm_75",   "sm_80",   "sm_86",   "sm_87",   "sm_88",   "sm_89",   "sm_90",  "sm_90a",
    "sm_100",  "sm_100a", "sm_100f", "sm_103",  "sm_103a", "sm_103f", "sm_110", "sm_110a",
    "sm_110f", "sm_120",  "sm_120a", "sm_120f", "sm_121",  "sm_121a", "sm_121f"};

// How many of them have what is required.
size_t targets_with(const ptx::Requirement& requirement) {
  return static_cast<size_t>(
      std::count_if(std::begin(kTargets), std::end(kTargets), [&](std::string_view target) {
        return ptx::satisfies(requirement, ptx::parse_target(target));
      }));
}

// The requirement that the fewest targets meet; of no interest when all do.
class Strictest {
 public:
  void add(const ptx::Requirement& requirement) {
    const size_t targets = targets_with(requirement);
    if (targets >= fewest_) return;
    fewest_ = targets;
    text_ = ptx::to_string(requirement);
  }
  const std::string& text() const { return text_; }

 private:
  size_t fewest_ = std::size(kTargets);
  std::string text_;
};

void count_families(const ptx::Function& function, KernelInfo& info) {
  std::map<std::string, Strictest> strictest;
  Strictest all;
  for (const ptx::Statement& statement : function.body) {
    const auto* instruction = std::get_if<ptx::Instruction>(&statement);
    if (!instruction) continue;
    const std::string family = ptx::family(*instruction);
    ++info.families[family].count;
    const ptx::Requirement needed = ptx::requirement_of(*instruction);
    strictest[family].add(needed);
    all.add(needed);
  }
  for (const auto& [family, needs] : strictest) info.families[family].needs = needs.text();
  info.needs = all.text();
}

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
  count_families(function, info);
  info.register_pressure = ptx::Liveness(ptx::ControlFlow(function, &module)).pressure();
  info.target = module.target;
  return info;
}

bool same_kernel(const KernelInfo& a, const KernelInfo& b) {
  return a.name == b.name && (a.target == b.target || a.target.empty() || b.target.empty());
}

void take_machine_code(KernelInfo& to, const KernelInfo& from) {
  to.machine_registers = from.machine_registers;
  to.code_bytes = from.code_bytes;
}

// Another entry of a fat binary: PTX and machine code for the same target describe one kernel.
void join(Inspection& from, Inspection& to) {
  for (KernelInfo& kernel : from.kernels) {
    const auto known = std::find_if(to.kernels.begin(), to.kernels.end(),
                                    [&](const KernelInfo& k) { return same_kernel(k, kernel); });
    if (known == to.kernels.end()) {
      to.kernels.push_back(std::move(kernel));
    } else if (kernel.code_bytes > 0) {
      take_machine_code(*known, kernel);
    } else {
      take_machine_code(kernel, *known);
      *known = std::move(kernel);
    }
  }
  to.hazards.insert(to.hazards.end(), from.hazards.begin(), from.hazards.end());
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
  inspection.hazards = ptx::static_hazards(module);
  return inspection;
}

Result<Inspection> inspect_device_code(std::span<const uint8_t> bytes,
                                       const std::string& file_name) {
  PB_ASSIGN_OR_RETURN(const std::vector<toolchain::FatbinEntry> entries,
                      toolchain::read_device_code(bytes));
  if (entries.empty()) return Error{"usage", "it holds no device code", {file_name, 0, 0}};
  Inspection all;
  for (const toolchain::FatbinEntry& entry : entries) {
    Inspection one;
    if (entry.kind == toolchain::FatbinEntry::Kind::ptx) {
      const std::string text(entry.bytes.begin(), entry.bytes.end());
      PB_ASSIGN_OR_RETURN(one, inspect_ptx(text, file_name));
    } else {
      auto cubin = inspect_cubin(entry.bytes);
      // The linker's own entries are empty.
      if (!cubin.ok() && cubin.error().kind == "no-kernel" && entries.size() > 1) continue;
      if (!cubin.ok()) return cubin.error();
      one = cubin.take();
      one.target = entry.arch;  // with its suffix, which the ELF header lacks
      for (KernelInfo& kernel : one.kernels) kernel.target = entry.arch;
    }
    if (entries.size() == 1) return one;
    all.kind = "fat binary";
    if (all.target.find(one.target) == std::string::npos)
      all.target += (all.target.empty() ? "" : ", ") + one.target;
    all.version = one.version.empty() ? all.version : one.version;
    join(one, all);
  }
  if (all.kernels.empty()) return Error{"usage", "it holds no kernel", {file_name, 0, 0}};
  return all;
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
    inspection.hazards.insert(inspection.hazards.end(), inner.hazards.begin(), inner.hazards.end());
    for (KernelInfo& kernel : inner.kernels) inspection.kernels.push_back(std::move(kernel));
  }
  for (const plan::Step& step : plan.steps)
    inspection.launches.push_back(describe_step(plan, step));
  return inspection;
}

void merge_machine_code(Inspection& ptx, const Inspection& cubin) {
  for (KernelInfo& kernel : ptx.kernels)
    for (const KernelInfo& machine : cubin.kernels)
      if (machine.name == kernel.name) take_machine_code(kernel, machine);
}

void merge_resources(Inspection& inspection, const std::vector<toolchain::KernelResources>& said) {
  for (KernelInfo& kernel : inspection.kernels)
    for (const toolchain::KernelResources& resources : said) {
      if (resources.name != kernel.name) continue;
      kernel.machine_registers = resources.registers;
      kernel.spill_bytes = static_cast<int64_t>(resources.spill_stores) +
                           static_cast<int64_t>(resources.spill_loads);
      kernel.stack_bytes = static_cast<int64_t>(resources.stack);
      kernel.barriers = resources.barriers;
    }
}

}  // namespace ptxbench::bench
