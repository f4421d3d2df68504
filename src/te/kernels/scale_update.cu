// A CTA owns 32 tensors (columns of the history), a warp one row of them at a time, so that
// accesses are 128 bytes wide. A row's new value is the next row's old one; the CTA therefore reads
// 1024 rows before it writes them, and the common window of 1024 samples is one round with all its
// loads in flight.
#include "te/fp8/scaling.h"
#include "te/kernels/scale_update_launch.h"

namespace ptxbench::te::device {
namespace {

constexpr int kColumns = 32, kWarps = 32, kRowsPerThread = 32;
constexpr uint32_t kRound = kWarps * kRowsPerThread;  // rows

__global__ void __launch_bounds__(kColumns* kWarps)
    scale_update_kernel(const __grid_constant__ ScaleUpdateArgs a) {
  __shared__ float largest[kWarps][kColumns + 1];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t column = blockIdx.x * kColumns + lane;
  const bool mine = column < a.tensors;
  float last = 0;
  if (mine) {
    last = a.reduced != nullptr ? a.reduced[column] : 0;
    if (last == 0) last = a.history[column];
  }
  __syncthreads();  // everybody has read row 0
  const bool roll = mine && last != 0;
  float amax = last;
  for (uint32_t base = 0; base < a.history_len; base += kRound) {
    float next[kRowsPerThread];
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      const uint32_t row = base + warp + i * kWarps;
      next[i] =
          roll && row + 1 < a.history_len ? a.history[size_t{row + 1} * a.tensors + column] : 0;
      amax = fmaxf(amax, next[i]);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      const uint32_t row = base + warp + i * kWarps;
      if (roll && row < a.history_len) {
        const float value = row == 0 ? 0 : row + 1 == a.history_len ? last : next[i];
        a.history[size_t{row} * a.tensors + column] = value;
      }
    }
  }
  largest[warp][lane] = amax;
  __syncthreads();
  if (warp != 0 || !mine) return;
  if (a.most_recent || !roll) {
    amax = roll ? last : 0;
  } else {
    for (int w = 1; w < kWarps; ++w) amax = fmaxf(amax, largest[w][lane]);
  }
  a.scale[column] = delayed_scale(amax, a.scale[column], a.scaled_max[column]);
}

}  // namespace

cudaError_t launch_scale_update(const ScaleUpdateArgs& args, cudaStream_t stream) {
  scale_update_kernel<<<(args.tensors + kColumns - 1) / kColumns, kColumns * kWarps, 0, stream>>>(
      args);
  return cudaGetLastError();
}

}  // namespace ptxbench::te::device
