#pragma once
// Between cross_entropy.cc and its kernel. Not for users.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ptxbench::te::device {

struct CrossEntropyArgs {
  uint16_t* logits = nullptr;
  const int32_t* targets = nullptr;
  float* loss = nullptr;
  const float* device_grad_scale = nullptr;
  int* errors = nullptr;
  int64_t rows = 0, vocabulary = 0, stride = 0;
  float grad_scale = 1;
  int32_t ignore_index = -100;
  bool gradient = true;
  int threads = 1024;  // 128 or 1024
};

cudaError_t launch_cross_entropy(const CrossEntropyArgs& args, cudaStream_t stream);

}  // namespace ptxbench::te::device
