#pragma once
// From the AST to a Kernel: register allocation, constants, side tables, handlers.

#include <memory>
#include <vector>

#include "base/result.h"
#include "emu/kernel.h"

namespace ptxbench::emu {

// Decodes one kernel and the device functions it can reach. `global_addresses[i]` is the device
// address of Module::variables[i] (global and const space; ignored for shared). Error kinds:
// "unsupported" (names the instruction, its line and what is missing), "unknown-kernel".
Result<std::shared_ptr<Kernel>> decode(std::shared_ptr<const ptx::Module> module,
                                       const std::string& kernel,
                                       const std::vector<uint64_t>& global_addresses);

}  // namespace ptxbench::emu
