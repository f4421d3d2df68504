#pragma once
// Between fused_cast.cc and its kernels: arguments without checks, and no heavy header. Not for
// users.

#include <cuda_runtime_api.h>

#include "te/fp8/tensor.h"
#include "te/kernels/cast_op.h"

namespace ptxbench::te::device {

struct FusedCastArgs {
  const void* in = nullptr;
  const void* grad = nullptr;
  Fp8Target out;
  int64_t rows = 0, cols = 0;
  uint32_t tile_cols = 0;
  uint32_t runs = 0;  // CTAs of a column of tiles: as many as tiles, or with dbias fewer
  float* dbias = nullptr;
  float* partial = nullptr;      // [runs][output columns]
  unsigned* counters = nullptr;  // [tile_cols], zero before and after
  const float* noop = nullptr;
  CastOp op = CastOp::cast_bf16;
  Fp8Format format = Fp8Format::e4m3;
  CastTile tile = CastTile::t64x64;  // without `vector` only this one exists
  bool vector = false;
  bool down_first = false;
};

cudaError_t launch_cast(const FusedCastArgs& args, cudaStream_t stream);
cudaError_t launch_activation(const FusedCastArgs& args, cudaStream_t stream);
cudaError_t launch_activation_backward(const FusedCastArgs& args, cudaStream_t stream);

}  // namespace ptxbench::te::device
