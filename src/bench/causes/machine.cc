#include "bench/causes/machine.h"

namespace ptxbench::bench {
namespace {

// SMs, clocks and shared memory: NVIDIA's white papers of the Hopper and Blackwell architectures.
// Memory of the H200: the device copy in docs/performance.md (4.19 TB/s of 4.8); the others in the
// same proportion. L2 of Hopper: at least what the bf16 GEMM M8828 N2048 K4096 moves without
// multicast in docs/hardware-results.md (2.3 GB in 0.217 ms), rounded up. B200: no time was ever
// compared.
constexpr double kCopyShare = 0.87;
const Machine kMachines[] = {
    {.name = "h100",
     .calibrated = false,
     .sms = 132,
     .ghz = 1.83,
     .matrix_flop = 4096,
     .l2_bytes_per_ns = 12000,
     .dram_bytes_per_ns = 3350 * kCopyShare,
     .l2_mib = 50,
     .shared_per_sm = 233472},
    {.name = "h200",
     .calibrated = true,
     .sms = 132,
     .ghz = 1.83,
     .matrix_flop = 4096,
     .l2_bytes_per_ns = 12000,
     .dram_bytes_per_ns = 4800 * kCopyShare,
     .l2_mib = 60,
     .shared_per_sm = 233472},
    {.name = "b200",
     .calibrated = false,
     .sms = 148,
     .ghz = 1.85,
     .matrix_flop = 8192,
     .l2_bytes_per_ns = 16000,
     .dram_bytes_per_ns = 8000 * kCopyShare,
     .l2_mib = 126,
     .shared_per_sm = 233472},
};

}  // namespace

const Machine* find_machine(std::string_view name) {
  for (const Machine& machine : kMachines)
    if (machine.name == name) return &machine;
  return nullptr;
}

}  // namespace ptxbench::bench
