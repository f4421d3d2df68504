#pragma once
// Between rope.cc and its kernel. Not for users.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ptxbench::te::device {

struct RopeArgs {
  const uint16_t* x = nullptr;
  uint16_t* y = nullptr;
  const float* cos = nullptr;
  const float* sin = nullptr;
  const int32_t* position = nullptr;
  int* errors = nullptr;
  int64_t tokens = 0, heads = 0, dim = 0, rotary = 0, x_stride = 0, y_stride = 0;
  int64_t positions = 0, sequence = 0;
  bool interleaved = false, backward = false, vector = false;
};

cudaError_t launch_rope(const RopeArgs& args, cudaStream_t stream);

}  // namespace ptxbench::te::device
