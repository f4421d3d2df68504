#pragma once
// Between scale_update.cc and its kernel. Not for users.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ptxbench::te::device {

struct ScaleUpdateArgs {
  float* scale = nullptr;             // [tensors]
  float* history = nullptr;           // [history_len][tensors]
  const float* scaled_max = nullptr;  // [tensors]
  const float* reduced = nullptr;     // [tensors] or null
  uint32_t tensors = 0, history_len = 0;
  bool most_recent = false;
};

cudaError_t launch_scale_update(const ScaleUpdateArgs& args, cudaStream_t stream);

}  // namespace ptxbench::te::device
