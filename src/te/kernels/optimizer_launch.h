#pragma once
// Between optimizer.cc and its kernels. Not for users.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ptxbench::te::device {

inline constexpr int kChunk = 8192;  // elements a CTA takes at a time
inline constexpr int kOptimizerThreads = 256;

struct TensorEntry {
  const void* grad = nullptr;
  float* master = nullptr;
  uint16_t* param = nullptr;
  int16_t* remainder = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  int64_t count = 0;
  int64_t first_chunk = 0;
  bool vector = false;  // every pointer is aligned for four elements
};

struct TensorTable {
  const TensorEntry* entries = nullptr;  // device memory
  int tensors = 0;
  int64_t chunks = 0;
  int blocks = 0;
  bool grads_f32 = false, remainder = false, bf16_copy = false;
};

struct AdamWArgs {
  float lr = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  float correction1 = 1, correction2 = 1;  // 1 / (1 - beta^t)
  const float* factor = nullptr;
  const float* lr_step = nullptr;
};

cudaError_t launch_adamw(const TensorTable& table, const AdamWArgs& args, cudaStream_t stream);
// partial: [blocks] doubles, then one zero counter.
cudaError_t launch_grad_norm(const TensorTable& table, float max_norm, double* partial,
                             unsigned* counter, float* norm, float* factor, cudaStream_t stream);

}  // namespace ptxbench::te::device
