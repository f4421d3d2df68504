#pragma once
// Between current_scale.cc and its kernels. Not for users.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ptxbench::te::device {

inline constexpr int kMostAmaxBlocks = 2048;

struct ScaleRule {
  float fp8_max = 448, epsilon = 0;
  bool power_of_two = false;
};
struct AmaxArgs {
  const void* x = nullptr;
  int64_t count = 0;
  float* amax = nullptr;
  float* scale = nullptr;
  float* partial = nullptr;  // [blocks]
  unsigned* counter = nullptr;
  int blocks = 1;
  bool f32 = false;
  ScaleRule rule;
};

cudaError_t launch_amax(const AmaxArgs& args, cudaStream_t stream);
cudaError_t launch_scale_from_amax(const float* amax, float* scale, const ScaleRule& rule,
                                   cudaStream_t stream);

}  // namespace ptxbench::te::device
