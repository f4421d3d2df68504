#pragma once
// What is in a file of kernels without running it: PTX text, a plan's modules, or machine code.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/launch_plan.h"
#include "ptx/hazards.h"
#include "toolchain/compiler.h"

namespace ptxbench::bench {

struct KernelInfo {
  std::string name;
  bool entry = true;
  uint32_t param_bytes = 0;
  uint64_t static_shared_bytes = 0;
  bool dynamic_shared = false;
  uint32_t declared_registers = 0;    // virtual, of the PTX
  uint32_t register_pressure = 0;     // 32-bit registers live at the widest point of the PTX
  int machine_registers = -1;         // per thread, of the machine code; -1 unknown
  int64_t spill_bytes = -1;           // stores and loads, as ptxas counts them; -1 unknown
  int64_t stack_bytes = -1;           // likewise
  int barriers = -1;                  // likewise
  std::string target;                 // what it was compiled for: "sm_90a"
  std::string needs;                  // targets of its most demanding instruction
  uint64_t code_bytes = 0;            // machine code
  std::vector<uint32_t> max_threads;  // .maxntid or .reqntid
  uint32_t min_blocks = 0;
  struct Family {
    uint64_t count = 0;  // static instructions
    std::string needs;   // targets that have them, "" where all that ptxas compiles for do
  };
  std::map<std::string, Family> families;
};

struct Inspection {
  std::string kind;     // "ptx", "cubin", "plan", "fat binary"
  std::string target;   // "sm_90a"
  std::string version;  // PTX ISA "9.0", or the machine code's
  std::vector<KernelInfo> kernels;
  std::vector<std::string> launches;  // of a plan: one line a step
  std::vector<ptx::StaticHazard> hazards;
};

Result<Inspection> inspect_ptx(const std::string& text, const std::string& file_name);
// ELF machine code; every offset is checked. Errors "bad-cubin", "no-kernel".
Result<Inspection> inspect_cubin(std::span<const uint8_t> bytes);
// A host program or library with a fat binary section, a fat binary, a cubin or PTX text, told
// apart by content. Errors: "syntax", "too-large", "usage" (no device code), "bad-cubin",
// "no-kernel", "ptx-syntax".
Result<Inspection> inspect_device_code(std::span<const uint8_t> bytes,
                                       const std::string& file_name);
Result<Inspection> inspect_plan(const plan::LaunchPlan& plan);
// Adds registers and code size from `cubin` to the kernels of the same name.
void merge_machine_code(Inspection& ptx, const Inspection& cubin);
// Likewise what `ptxas -v` said.
void merge_resources(Inspection& inspection, const std::vector<toolchain::KernelResources>& said);

}  // namespace ptxbench::bench
