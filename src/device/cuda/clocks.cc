#include "device/cuda/clocks.h"

#include <dlfcn.h>

namespace ptxbench::device::cuda {

Clocks::Clocks(const std::string& bus_id) {
  if (bus_id.empty()) return;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto start = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  const auto find = reinterpret_cast<int (*)(const char*, void**)>(
      dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
  if (start == nullptr || find == nullptr || start() != 0) return;
  if (find(bus_id.c_str(), &card_) != 0) {
    card_ = nullptr;
    return;
  }
  clock_ = reinterpret_cast<decltype(clock_)>(dlsym(library, "nvmlDeviceGetClockInfo"));
  power_ = reinterpret_cast<decltype(power_)>(dlsym(library, "nvmlDeviceGetPowerUsage"));
  throttle_ = reinterpret_cast<decltype(throttle_)>(
      dlsym(library, "nvmlDeviceGetCurrentClocksThrottleReasons"));
}

ClockSample Clocks::sample() const {
  constexpr int kSm = 1, kMemory = 2;
  ClockSample sample;
  if (card_ == nullptr) return sample;
  unsigned milliwatts = 0;
  unsigned long long reasons = 0;
  if (clock_ != nullptr) {
    clock_(card_, kSm, &sample.sm_mhz);
    clock_(card_, kMemory, &sample.memory_mhz);
  }
  if (power_ != nullptr && power_(card_, &milliwatts) == 0) sample.watts = milliwatts / 1000.0;
  if (throttle_ != nullptr && throttle_(card_, &reasons) == 0) sample.throttle_reasons = reasons;
  return sample;
}

}  // namespace ptxbench::device::cuda
