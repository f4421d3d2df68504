// A CTA owns one 128x128 tile (tile.cuh), which is one square block, or 128 strips in either
// direction.
#include "te/fp8/scaling.h"
#include "te/kernels/block_cast_launch.h"
#include "te/kernels/tile.cuh"

namespace ptxbench::te::device {
namespace {

using T = Tile<256, 16>;
constexpr int kWarps = T::kThreads / 32;

// What columns and squares reduce through; the transposed tile follows in its own memory.
struct Scratch {
  float columns[kWarps][T::kCols];
  float scale[T::kCols];
};

__device__ __forceinline__ float scale_of(float amax, const BlockCastArgs& a) {
  return current_scale(amax, kE4m3Max, a.epsilon, a.power_of_two);
}

template <bool kVector>
__device__ __forceinline__ void quantize_rows(const uint4 (&raw)[8], const float (&scale)[8],
                                              const BlockCastArgs& a, int64_t row, int64_t col,
                                              uint2 (&q)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float v[8];
    unpack8(raw[i], v);
    q[i] = quantize8<Fp8Format::e4m3>(v, scale[i]);
    if (a.data != nullptr && row + i < a.rows)
      store8<kVector>(a.data + (row + i) * a.cols + col, q[i], up_to8(a.cols - col));
  }
}

template <bool kVector>
__device__ void strips(const uint4 (&raw)[8], const BlockCastArgs& a, Scratch& scratch,
                       uint8_t* tile, int64_t row0, int64_t col0) {
  const int tx = threadIdx.x % T::kTx, ty = threadIdx.x / T::kTx, warp = threadIdx.x / 32;
  const int64_t row = row0 + ty * 8, col = col0 + tx * 8;
  float row_amax[8], column_amax[8] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float v[8];
    unpack8(raw[i], v);
    row_amax[i] = amax8(v, 0);
#pragma unroll
    for (int j = 0; j < 8; ++j) column_amax[j] = fmaxf(column_amax[j], fabsf(v[j]));
  }
  uint2 q[8];
  if (a.data != nullptr) {
    float scale[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int d = 8; d > 0; d /= 2)
        row_amax[i] = fmaxf(row_amax[i], __shfl_xor_sync(~0u, row_amax[i], d));
      scale[i] = scale_of(row_amax[i], a);
      if (tx == 0 && row + i < a.rows)
        a.scale_inv[(row + i) * a.tile_cols + col0 / T::kCols] = __frcp_rn(scale[i]);
    }
    quantize_rows<kVector>(raw, scale, a, row, col, q);
  }
  if (a.transpose == nullptr) return;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    column_amax[j] = fmaxf(column_amax[j], __shfl_xor_sync(~0u, column_amax[j], 16));
    if (threadIdx.x % 32 < T::kTx) scratch.columns[warp][tx * 8 + j] = column_amax[j];
  }
  __syncthreads();
  if (threadIdx.x < T::kCols) {
    float amax = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) amax = fmaxf(amax, scratch.columns[w][threadIdx.x]);
    const float scale = scale_of(amax, a);
    scratch.scale[threadIdx.x] = scale;
    if (col0 + threadIdx.x < a.cols)
      a.transpose_scale_inv[(col0 + threadIdx.x) * a.tile_rows + row0 / T::kRows] =
          __frcp_rn(scale);
  }
  __syncthreads();
  float scale[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) scale[j] = scratch.scale[tx * 8 + j];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float v[8];
    unpack8(raw[i], v);
#pragma unroll
    for (int j = 0; j < 8; ++j) v[j] *= scale[j];
    q[i] = quantize8<Fp8Format::e4m3>(v, 1.0f);
  }
  store_transposed<T, kVector>(q, tile, a.transpose, row0, col0, a.rows, a.cols);
}

template <bool kVector>
__device__ void square(const uint4 (&raw)[8], const BlockCastArgs& a, Scratch& scratch,
                       uint8_t* tile, int64_t row0, int64_t col0) {
  const int tx = threadIdx.x % T::kTx, ty = threadIdx.x / T::kTx, warp = threadIdx.x / 32;
  float amax = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float v[8];
    unpack8(raw[i], v);
    amax = amax8(v, amax);
  }
  amax = warp_max(amax);
  if (threadIdx.x % 32 == 0) scratch.scale[warp] = amax;
  __syncthreads();
  amax = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) amax = fmaxf(amax, scratch.scale[w]);
  const float s = scale_of(amax, a);
  const float scale[8] = {s, s, s, s, s, s, s, s};
  const int64_t r = row0 / T::kRows, c = col0 / T::kCols;
  if (threadIdx.x == 0) {
    if (a.data != nullptr) a.scale_inv[r * a.tile_cols + c] = __frcp_rn(s);
    if (a.transpose != nullptr) a.transpose_scale_inv[c * a.tile_rows + r] = __frcp_rn(s);
  }
  uint2 q[8];
  quantize_rows<kVector>(raw, scale, a, row0 + ty * 8, col0 + tx * 8, q);
  if (a.transpose != nullptr)
    store_transposed<T, kVector>(q, tile, a.transpose, row0, col0, a.rows, a.cols);
}

template <bool kSquare, bool kVector>
__global__ void __launch_bounds__(T::kThreads, 3)
    block_cast_kernel(const __grid_constant__ BlockCastArgs a) {
  __shared__ __align__(16) uint8_t tile[T::kSharedBytes];
  __shared__ Scratch scratch;
  const int64_t row0 = int64_t{blockIdx.x / a.tile_cols} * T::kRows,
                col0 = int64_t{blockIdx.x % a.tile_cols} * T::kCols;
  const int64_t row = row0 + threadIdx.x / T::kTx * 8, col = col0 + threadIdx.x % T::kTx * 8;
  uint4 raw[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    raw[i] = load8<kVector>(a.in + (row + i) * a.cols + col,
                            row + i < a.rows ? up_to8(a.cols - col) : 0);
  if constexpr (kSquare)
    square<kVector>(raw, a, scratch, tile, row0, col0);
  else
    strips<kVector>(raw, a, scratch, tile, row0, col0);
}

}  // namespace

cudaError_t launch_block_cast(const BlockCastArgs& a, cudaStream_t stream) {
  const auto kernel =
      a.square ? (a.vector ? block_cast_kernel<true, true> : block_cast_kernel<true, false>)
               : (a.vector ? block_cast_kernel<false, true> : block_cast_kernel<false, false>);
  kernel<<<a.tile_rows * a.tile_cols, T::kThreads, 0, stream>>>(a);
  return cudaGetLastError();
}

}  // namespace ptxbench::te::device
