#include "te/kernels/embedding_launch.h"
#include "te/kernels/tile.cuh"

namespace ptxbench::te::device {
namespace {

constexpr int kThreads = 256;

template <bool kVector>
__global__ void __launch_bounds__(kThreads)
    embedding_kernel(const __grid_constant__ EmbeddingArgs a) {
  const int64_t pieces = (a.cols + 7) / 8, all = pieces * a.tokens;
  for (int64_t item = int64_t{blockIdx.x} * kThreads + threadIdx.x; item < all;
       item += int64_t{gridDim.x} * kThreads) {
    const int64_t token = item / pieces, col = item % pieces * 8;
    const int left = up_to8(a.cols - col);
    const int64_t entry = a.index[token];
    const bool known = entry >= 0 && entry < a.entries;
    if (!known && col == 0 && a.errors != nullptr) atomicAdd(a.errors, 1);
    uint4 v = load8<kVector>(a.table + entry * a.cols + col, known ? left : 0);
    if (a.positions != nullptr) {
      float sum[8], more[8];
      unpack8(v, sum);
      unpack8(load8<kVector>(a.positions + token % a.sequence * a.cols + col, left), more);
#pragma unroll
      for (int i = 0; i < 8; ++i) sum[i] += more[i];
      v = pack8(sum);
    }
    if (!known) v = {0x7fff7fffu, 0x7fff7fffu, 0x7fff7fffu, 0x7fff7fffu};
    store8<kVector>(a.y + token * a.cols + col, v, left);
  }
}

// A CTA: one token (blockIdx.x) and 8 * kThreads columns (blockIdx.y).
template <bool kVector>
__global__ void __launch_bounds__(kThreads)
    embedding_backward_kernel(const __grid_constant__ EmbeddingBackwardArgs a) {
  __shared__ int matches[kThreads];
  __shared__ int warp_count[kThreads / 32];
  const int64_t mine = blockIdx.x;
  auto index_of = [&](int64_t token) -> int64_t {
    return a.index != nullptr ? a.index[token] : token % a.entries;
  };
  const int64_t entry = index_of(mine);
  if (entry < 0 || entry >= a.entries) return;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t col = (int64_t{blockIdx.y} * kThreads + threadIdx.x) * 8;
  const int left = up_to8(a.cols - col);
  if (a.index == nullptr) {
    if (mine >= a.entries) return;  // token - entries has the same index
  } else {
    for (int64_t base = 0; base < mine; base += kThreads) {
      const int64_t token = base + threadIdx.x;
      if (__syncthreads_or(token < mine && a.index[token] == entry)) return;
    }
  }
  float sum[8] = {};
  for (int64_t base = mine; base < a.tokens; base += kThreads) {
    // The tokens of this stretch with the same index, in order.
    const int64_t token = base + threadIdx.x;
    const bool match = token < a.tokens && index_of(token) == entry;
    const unsigned votes = __ballot_sync(~0u, match);
    if (lane == 0) warp_count[warp] = __popc(votes);
    __syncthreads();
    int before = 0, total = 0;
#pragma unroll
    for (int w = 0; w < kThreads / 32; ++w) {
      before += w < warp ? warp_count[w] : 0;
      total += warp_count[w];
    }
    if (match) matches[before + __popc(votes & ((1u << lane) - 1))] = threadIdx.x;
    __syncthreads();
#pragma unroll 4
    for (int i = 0; i < total; ++i) {
      float v[8];
      unpack8(load8<kVector>(a.dy + (base + matches[i]) * a.cols + col, left), v);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[j] += v[j];
    }
    __syncthreads();
  }
  float* out = a.dtable + entry * a.cols + col;
#pragma unroll
  for (int j = 0; j < 8; ++j)
    if (j < left) out[j] += sum[j];
}

}  // namespace

cudaError_t launch_embedding(const EmbeddingArgs& a, cudaStream_t stream) {
  const int64_t blocks = ((a.cols + 7) / 8 * a.tokens + kThreads - 1) / kThreads;
  const auto grid = static_cast<unsigned>(blocks < (1 << 20) ? blocks : 1 << 20);
  if (a.vector)
    embedding_kernel<true><<<grid, kThreads, 0, stream>>>(a);
  else
    embedding_kernel<false><<<grid, kThreads, 0, stream>>>(a);
  return cudaGetLastError();
}

cudaError_t launch_embedding_backward(const EmbeddingBackwardArgs& a, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(a.tokens),
                  static_cast<unsigned>((a.cols + 8 * kThreads - 1) / (8 * kThreads)));
  if (a.vector)
    embedding_backward_kernel<true><<<grid, kThreads, 0, stream>>>(a);
  else
    embedding_backward_kernel<false><<<grid, kThreads, 0, stream>>>(a);
  return cudaGetLastError();
}

}  // namespace ptxbench::te::device
