#pragma once
// Known values of the delayed-scaling update, for the CPU's and the kernel's: four steps with full
// tensors, a window of four samples, and the corners of the scale.

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "te/fp8/format.h"

namespace ptxbench::te::test {

// Step s: x is s + 0.25 everywhere, w s + 0.5, dy s + 0.75; hybrid, margin 2. Bits of the scales.
inline constexpr uint32_t kFourSteps[4][3] = {{0x43e00000, 0x43600000, 0x46955555},
                                              {0x42b33333, 0x42955555, 0x46000000},
                                              {0x42471c72, 0x42333333, 0x45a2e8ba},
                                              {0x4209d89e, 0x42000000, 0x456eeeef}};
inline constexpr Fp8Format kFourStepFormats[3] = {Fp8Format::e4m3, Fp8Format::e4m3,
                                                  Fp8Format::e5m2};
inline constexpr float kFourStepOffsets[3] = {0.25f, 0.5f, 0.75f};

// Window of four, e4m3, margin 0.
struct WindowStep {
  float amax, scale_max, scale_most_recent;
};
inline std::vector<WindowStep> window_steps() {
  const float inf = std::numeric_limits<float>::infinity();
  return {{1, 448, 448}, {4, 112, 112}, {0, 112, 112}, {2, 112, 224},
          {1, 112, 448}, {1, 112, 448}, {1, 224, 448}, {inf, 224, 448},
          {1, 224, 448}, {1, 224, 448}, {1, 224, 448}, {1, 448, 448}};
}

// A window of one sample, previous scale 1, margin 0.
struct Corner {
  Fp8Format format;
  float amax, scale;
};
inline std::vector<Corner> corners() {
  const float inf = std::numeric_limits<float>::infinity(),
              largest = std::numeric_limits<float>::max();
  std::vector<Corner> all;
  for (Fp8Format f : {Fp8Format::e4m3, Fp8Format::e5m2}) {
    const uint32_t tiny = f == Fp8Format::e4m3 ? 0x03600001 : 0x06e00001;
    float half_threshold;
    static_assert(sizeof tiny == sizeof half_threshold);
    __builtin_memcpy(&half_threshold, &tiny, 4);
    all.push_back({f, 0, 1});
    all.push_back({f, half_threshold, largest});
    all.push_back({f, 3, fp8_max(f) / 3});
    all.push_back({f, inf, 1});
    all.push_back({f, std::nanf(""), 1});
  }
  return all;
}

}  // namespace ptxbench::te::test
