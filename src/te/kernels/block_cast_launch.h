#pragma once
// Between block_cast.cc and its kernel. Not for users.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ptxbench::te::device {

struct BlockCastArgs {
  const uint16_t* in = nullptr;
  uint8_t* data = nullptr;
  uint8_t* transpose = nullptr;
  float* scale_inv = nullptr;
  float* transpose_scale_inv = nullptr;
  int64_t rows = 0, cols = 0;
  uint32_t tile_rows = 0, tile_cols = 0;
  float epsilon = 0;
  bool power_of_two = false, square = false, vector = false;
};

cudaError_t launch_block_cast(const BlockCastArgs& args, cudaStream_t stream);

}  // namespace ptxbench::te::device
