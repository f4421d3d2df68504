#pragma once
// Which of a program's PTX texts runs on a device.

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cudart/lib/profiles.h"
#include "toolchain/fatbin.h"

namespace ptxbench::cudart {

// The entry for the newest architecture that the device runs, as a JIT compiler chooses; null if
// there is none.
const toolchain::FatbinEntry* choose_ptx(const std::vector<toolchain::FatbinEntry>& entries,
                                         const DeviceProfile& device);
// The machine code for exactly the architecture of `ptx`; null if there is none.
const toolchain::FatbinEntry* matching_cubin(const std::vector<toolchain::FatbinEntry>& entries,
                                             const toolchain::FatbinEntry& ptx);

// What a program carries instead of PTX for the device, and what to do about it: one sentence.
std::string explain_no_ptx(const std::vector<toolchain::FatbinEntry>& entries,
                           const DeviceProfile& device);

}  // namespace ptxbench::cudart
