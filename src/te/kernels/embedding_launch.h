#pragma once
// Between embedding.cc and its kernels. Not for users.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ptxbench::te::device {

struct EmbeddingArgs {
  const int32_t* index = nullptr;
  const uint16_t* table = nullptr;
  const uint16_t* positions = nullptr;
  uint16_t* y = nullptr;
  int* errors = nullptr;
  int64_t tokens = 0, cols = 0, entries = 0, sequence = 1;
  bool vector = false;
};
struct EmbeddingBackwardArgs {
  const int32_t* index = nullptr;
  const uint16_t* dy = nullptr;
  float* dtable = nullptr;
  int64_t tokens = 0, cols = 0, entries = 0;
  bool vector = false;
};

cudaError_t launch_embedding(const EmbeddingArgs& args, cudaStream_t stream);
cudaError_t launch_embedding_backward(const EmbeddingBackwardArgs& args, cudaStream_t stream);

}  // namespace ptxbench::te::device
