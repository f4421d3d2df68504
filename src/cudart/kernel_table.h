#pragma once
// What must be known of each kernel before host code can be recorded: parameter layout and limits
// from the PTX, register counts from the machine code, and which parameter bytes the kernel can
// read at all.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cudart/wire.h"

namespace ptxbench::cudart {

struct KernelTable {
  std::string target;  // "sm_90a"
  std::vector<wire::KernelInfo> kernels;
  // Per kernel, one flag for each byte of the .param block: may an instruction read it? Padding
  // inside a structure is never read, so it may hold anything.
  std::map<std::string, std::vector<bool>, std::less<>> read_bytes;
  // Bytes of the module's variables, by PTX name.
  std::map<std::string, uint64_t, std::less<>> variables;
};

// kind: the parser's ("ptx-syntax").
Result<KernelTable> build_kernel_table(std::string_view ptx, const std::vector<uint8_t>& cubin);

// Registers per thread by kernel name, from a cubin's .nv.info section; empty if it cannot be read.
std::map<std::string, uint32_t, std::less<>> register_counts(const std::vector<uint8_t>& cubin);

}  // namespace ptxbench::cudart
