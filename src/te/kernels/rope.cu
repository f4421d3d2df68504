// Rotary embedding. A work item is eight pairs of a head (two 16-byte accesses each way), or eight
// elements of the part that is only copied; without alignment, one pair or one element.
#include "te/kernels/device.cuh"
#include "te/kernels/rope_launch.h"

namespace ptxbench::te::device {
namespace {

constexpr int kThreads = 256;

struct Pair {
  float a, b;
};
__device__ __forceinline__ Pair turn(Pair p, float c, float s) {
  return {p.a * c - p.b * s, p.b * c + p.a * s};
}

// kWidth pairs from pair `first` on; 8 with 16-byte accesses, or 1.
template <int kWidth>
__device__ __forceinline__ void rotate(const RopeArgs& a, const uint16_t* x, uint16_t* y,
                                       int64_t first, int64_t position) {
  const int64_t half = a.rotary / 2;
  const bool known = position >= 0 && position < a.positions;
  const float* cos = a.cos + position * half + first;
  const float* sin = a.sin + position * half + first;
  const int64_t at_a = a.interleaved ? 2 * first : first,
                at_b = a.interleaved ? 2 * first + kWidth : first + half;
  // With halves v[0] are the a of the pairs, v[1] the b; interleaved, 2 * kWidth elements in a row.
  float v[2][8];
  if constexpr (kWidth == 8) {
    unpack8(*reinterpret_cast<const uint4*>(x + at_a), v[0]);
    unpack8(*reinterpret_cast<const uint4*>(x + at_b), v[1]);
  } else {
    v[0][0] = bf16_float(x[at_a]), v[1][0] = bf16_float(x[at_b]);
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const float c = known ? cos[i] : __int_as_float(0x7fc00000);
    const float s = known ? (a.backward ? -sin[i] : sin[i]) : c;
    if (!a.interleaved || kWidth == 1) {
      const Pair p = turn({v[0][i], v[1][i]}, c, s);
      v[0][i] = p.a, v[1][i] = p.b;
    } else {
      float& first_of_pair = v[2 * i / 8][2 * i % 8];
      float& second_of_pair = v[(2 * i + 1) / 8][(2 * i + 1) % 8];
      const Pair p = turn({first_of_pair, second_of_pair}, c, s);
      first_of_pair = p.a, second_of_pair = p.b;
    }
  }
  if constexpr (kWidth == 8) {
    *reinterpret_cast<uint4*>(y + at_a) = pack8(v[0]);
    *reinterpret_cast<uint4*>(y + at_b) = pack8(v[1]);
  } else {
    y[at_a] = bf16_bits(v[0][0]), y[at_b] = bf16_bits(v[1][0]);
  }
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads) rope_kernel(const __grid_constant__ RopeArgs a) {
  const int64_t turning = a.rotary / 2 / kWidth, copied = (a.dim - a.rotary) / kWidth;
  const int64_t per_head = turning + copied, per_token = per_head * a.heads;
  const int64_t all = per_token * a.tokens;
  for (int64_t item = int64_t{blockIdx.x} * kThreads + threadIdx.x; item < all;
       item += int64_t{gridDim.x} * kThreads) {
    const int64_t token = item / per_token, head = item % per_token / per_head;
    const int64_t piece = item % per_head;
    const int64_t position = a.position != nullptr ? a.position[token] : token % a.sequence;
    if (item % per_token == 0 && a.errors != nullptr && (position < 0 || position >= a.positions))
      atomicAdd(a.errors, 1);
    const uint16_t* x = a.x + token * a.x_stride + head * a.dim;
    uint16_t* y = a.y + token * a.y_stride + head * a.dim;
    if (piece < turning) {
      rotate<kWidth>(a, x, y, piece * kWidth, position);
    } else if (x != y) {
      const int64_t at = a.rotary + (piece - turning) * kWidth;
      if constexpr (kWidth == 8)
        *reinterpret_cast<uint4*>(y + at) = *reinterpret_cast<const uint4*>(x + at);
      else
        y[at] = x[at];
    }
  }
}

}  // namespace

cudaError_t launch_rope(const RopeArgs& a, cudaStream_t stream) {
  const int width = a.vector ? 8 : 1;
  const int64_t items = a.tokens * a.heads * (a.rotary / 2 / width + (a.dim - a.rotary) / width);
  const int64_t blocks = (items + kThreads - 1) / kThreads;
  const auto grid = static_cast<unsigned>(blocks < (1 << 20) ? blocks : 1 << 20);
  if (a.vector)
    rope_kernel<8><<<grid, kThreads, 0, stream>>>(a);
  else
    rope_kernel<1><<<grid, kThreads, 0, stream>>>(a);
  return cudaGetLastError();
}

}  // namespace ptxbench::te::device
