#pragma once
// Casts to FP8 in one launch, with whatever else the tensor passes through on the way:
//
//   cast_bf16, cast_f32   x                           (cast, cast+transpose, + bias gradient)
//   gelu, swiglu          activation(x)               (forward; SwiGLU: silu(gate) * up)
//   dgelu, dswiglu        grad * activation'(x)       (backward; + bias gradient)
//
// Inputs are bf16 (cast_f32: fp32), row-major, without gaps; arithmetic is fp32; the amax is that
// of the fp32 values. Gated activations read [rows][2*cols], gates first, and their backward writes
// [rows][2*cols] with one amax. Shapes are arbitrary; cols % 8 == 0, rows % 16 == 0 and 16-byte
// aligned pointers are fast. Sources: NVIDIA/TransformerEngine,
// include/transformer_engine/transpose.h and activation.h (what is fused, and in which precision).

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "te/fp8/tensor.h"
#include "te/kernels/cast_op.h"

namespace ptxbench::te {

struct FusedCast {
  CastOp op = CastOp::cast_bf16;
  Fp8Format format = Fp8Format::e4m3;
  int64_t rows = 0, cols = 0;
  const void* in = nullptr;    // [rows][cols], gated [rows][2*cols]
  const void* grad = nullptr;  // backward: gradient of the activation's output, [rows][cols]
  Fp8Target out;               // [rows][cols]; dswiglu [rows][2*cols]. data or transpose is needed
  float* dbias = nullptr;      // [output columns]: column sums in fp32; null: not wanted
  // For dbias: fused_cast_workspace() bytes, 16-byte aligned, zero before its first use; a call
  // leaves it fit for the next one of the same or a smaller shape. One call at a time may use it.
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  const float* noop = nullptr;  // device flag: 1 when the kernel starts = write nothing
};

struct FusedCastPlan {
  CastTile tile = CastTile::t64x64;
  bool vector = false;      // 16-byte accesses throughout
  bool down_first = false;  // consecutive CTAs go down a column of tiles
  uint32_t tile_rows = 0, tile_cols = 0;
  uint32_t runs = 0;  // with dbias: CTAs that share a column of tiles, 1..tile_rows
  std::string describe()
      const;  // "64x256 tiles, 128 down x 16 across, 16-byte accesses, across first"
};

// A plan with a given tile: only the numbers of tiles are filled in, and a run for each.
FusedCastPlan cut(const FusedCast& call, CastTile tile);
// As many runs a column as let at most `ctas` CTAs share all tiles.
uint32_t balanced_runs(const FusedCastPlan& plan, int64_t ctas);
// How a shape is cut, from its size, alignment and the number of multiprocessors alone.
FusedCastPlan plan_fused_cast(const FusedCast& call, int sms);
size_t fused_cast_workspace(CastOp op, int64_t rows, int64_t cols);  // bytes, for dbias

// One kernel launch on `stream`. Errors "usage" (names the argument) and "cuda".
Result<void> fused_cast(const FusedCast& call, cudaStream_t stream);
// The same with a plan of one's own, for measurements. It must suit the call's shape.
Result<void> fused_cast(const FusedCast& call, const FusedCastPlan& plan, cudaStream_t stream);

}  // namespace ptxbench::te
