#pragma once
// Clocks, power and throttling of a card through NVML, opened at run time. Read, never changed.

#include <cstdint>
#include <string>

namespace ptxbench::device::cuda {

struct ClockSample {
  unsigned sm_mhz = 0, memory_mhz = 0;  // 0: not known
  double watts = 0;
  uint64_t throttle_reasons = 0;  // nvmlClocksThrottleReasons; 0x4 is the power limit
};

class Clocks {
 public:
  explicit Clocks(const std::string& bus_id);  // without NVML every sample is zeros
  ClockSample sample() const;

 private:
  void* card_ = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*power_)(void*, unsigned*) = nullptr;
  int (*throttle_)(void*, unsigned long long*) = nullptr;
};

}  // namespace ptxbench::device::cuda
