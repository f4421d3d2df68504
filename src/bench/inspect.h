#pragma once
// What is in a file of kernels without running it: PTX text, a plan's modules, or machine code.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/launch_plan.h"

namespace ptxbench::bench {

struct KernelInfo {
  std::string name;
  bool entry = true;
  uint32_t param_bytes = 0;
  uint64_t static_shared_bytes = 0;
  bool dynamic_shared = false;
  uint32_t declared_registers = 0;    // virtual, of the PTX
  int machine_registers = -1;         // per thread, of the machine code; -1 unknown
  uint64_t code_bytes = 0;            // machine code
  std::vector<uint32_t> max_threads;  // .maxntid or .reqntid
  uint32_t min_blocks = 0;
  std::map<std::string, uint64_t> families;  // static instruction counts
};

struct Inspection {
  std::string kind;     // "ptx", "cubin", "plan", "cuda"
  std::string target;   // "sm_90a"
  std::string version;  // PTX ISA "9.0", or the machine code's
  std::vector<KernelInfo> kernels;
  std::vector<std::string> launches;  // of a plan: one line a step
};

Result<Inspection> inspect_ptx(const std::string& text, const std::string& file_name);
// ELF machine code; every offset is checked. Error "bad-cubin".
Result<Inspection> inspect_cubin(std::span<const uint8_t> bytes);
Result<Inspection> inspect_plan(const plan::LaunchPlan& plan);
// Adds registers and code size from `cubin` to the kernels of the same name.
void merge_machine_code(Inspection& ptx, const Inspection& cubin);

}  // namespace ptxbench::bench
