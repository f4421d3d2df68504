#pragma once
// GPUs as the time model knows them: rates, sizes and delays. Rates of an SM are per clock.

#include <string>
#include <string_view>

namespace ptxbench::bench {

struct Machine {
  std::string name;
  bool calibrated = false;  // the model's constants were compared with times of this card
  int sms = 0;
  double ghz = 0;  // boost clock, at which peak rates are stated
  // Dense FLOP of an SM for 16-bit inputs; 8-bit ones are twice as fast, tf32 half.
  double matrix_flop = 0;
  double l2_bytes_per_ns = 0, dram_bytes_per_ns = 0;
  double l2_mib = 0;
  uint32_t shared_per_sm = 0, registers_per_sm = 65536, warps_per_sm = 64, ctas_per_sm = 32;
};

// "h100", "h200", "b200"; null for others.
const Machine* find_machine(std::string_view name);

// Constants of the model that belong to no card. None was fitted to a single kernel.
namespace model {

// Share of the boost clock's peak that long runs of matrix instructions keep up: cuBLASLt's bf16
// GEMM M8192 N7168 K5120 in docs/hardware-results.md (813 TFLOP/s in 13.6 of 14 waves, of 989).
constexpr double kSustained = 0.85;
// mma.sync against wgmma on compute capability 9.0 (Luo et al., "Benchmarking and Dissecting the
// Nvidia Hopper GPU Architecture", 2024: 62 % of the peak on average).
constexpr double kMmaSync = 0.62;
// What busy parts of an SM cost each other although they work at the same time; and what the
// shorter of products and arithmetic costs, because one waits for the other in the same warps and
// another warpgroup fills in for half of it only. Both chosen once, on the GEMM M8192 N7168 K5120
// and the attention forward of d128.
constexpr double kInterference = 0.1, kDependence = 0.5;
// A warp alone on its scheduler issues every second clock at most.
constexpr double kAloneIssue = 0.5;
// Clocks, same paper: first-level cache, second-level cache, memory; then those of a wgmma until
// its wait ends after the last product, and of a barrier of a CTA.
constexpr double kL1Clocks = 40, kL2Clocks = 270, kDramClocks = 600;
constexpr double kDrainClocks = 90, kBarrierClocks = 30;
// Loads that an ordinary loop has in flight per warp.
constexpr double kLoadsInFlight = 4;
// Bytes that an SM takes from L2 in a clock.
constexpr double kL2Port = 64;
// Sectors of atomics on global memory in all slices of L2 in a nanosecond, and lanes that change
// one word.
constexpr double kAtomicSectors = 160, kAtomicLanes = 1.7;
// Launch of a kernel behind another one, then what every CTA wave costs to fill and to drain.
constexpr double kLaunchUs = 2.0, kFillUs = 1.5;

}  // namespace model

}  // namespace ptxbench::bench
