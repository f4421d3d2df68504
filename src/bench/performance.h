#pragma once
// How long a candidate takes on a GPU, and the frontier library beside it. Milliseconds; medians.

#include <cstdint>
#include <string>
#include <vector>

namespace ptxbench::bench {

struct Performance {
  double candidate_ms = 0;  // of one replay of the whole plan, events around it
  double baseline_ms = 0;   // of the library for the same inputs; 0: none was timed
  double speedup = 0;       // baseline / candidate
  double speedup_low = 0, speedup_high = 0;  // 95 % bootstrap interval of the ratio of medians
  double candidate_end_to_end_ms = 0, baseline_end_to_end_ms = 0;  // host clock, idle GPU to idle
  double floor_ms = 0;                  // roofline: no kernel can be faster on this card
  double speed_of_light = 0;            // floor / candidate
  double empty_launch_ms = 0;           // an empty kernel between the same events
  std::string timer;                    // "cuda-events"
  std::string baseline;                 // "cuBLASLt 130000 bf16, algorithm 3 of 16 offered"
  uint64_t launches = 0, verified = 0;  // timed ones of the candidate; outputs found right
  bool implausible = false;             // faster than 0.95 of the floor
  int sm_mhz_low = 0, sm_mhz_high = 0, memory_mhz = 0;  // seen between launches; 0: not known
  double watts_high = 0;
  uint64_t throttle_reasons = 0;    // NVML's bits, all that were seen
  std::vector<std::string> causes;  // why it is no faster, most likely first
};

}  // namespace ptxbench::bench
