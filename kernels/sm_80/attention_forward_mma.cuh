#pragma once
// O = softmax(scale * Q K^T) V and its log-sum-exp (natural) with Ampere's instructions (cp.async,
// ldmatrix, mma.sync): the second honest attention. It shares nothing with
// kernels/sm_90a/attention_forward.cuh and walks the keys the other way. Device code.
//
// Method: a CTA of four warps owns 64 queries, a warp 16 of them. K and V come in blocks of 64
// keys, two stages each; a block's softmax runs between its two products.

#include "attention_tile.cuh"

namespace ptxbench::sm80 {

struct AttentionForwardArguments {
  const __nv_bfloat16 *q, *k, *v;  // [heads, seq, HeadDim], contiguous, 16-byte aligned
  __nv_bfloat16* o;                // likewise
  float* lse;                      // [heads, seq]
  int heads, seq;
  float scale;
};

constexpr int kForwardQueries = 64, kForwardKeys = 64, kForwardThreads = 128;

template <int HeadDim>
constexpr int kForwardShared =
    kTileBytes<HeadDim, kForwardQueries> + 4 * kTileBytes<HeadDim, kForwardKeys>;

// The sum over the four lanes of a row.
__device__ __forceinline__ float over_row(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// One block's online softmax: scores become weights, `o` is brought to the new maximum.
template <int HeadDim>
__device__ __forceinline__ void soften(float (&s)[kForwardKeys / 8][4], float (&o)[HeadDim / 8][4],
                                       float (&maximum)[2], float (&sum)[2], float factor) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float top = maximum[half];
#pragma unroll
    for (int n = 0; n < kForwardKeys / 8; ++n) {
      top = fmaxf(top, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
    }
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
    const float rescale = exp2f((maximum[half] - top) * factor);
    maximum[half] = top;
    sum[half] *= rescale;
#pragma unroll
    for (int n = 0; n < kForwardKeys / 8; ++n) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        s[n][i] = exp2f((s[n][i] - top) * factor);
        sum[half] += s[n][i];
      }
    }
#pragma unroll
    for (int n = 0; n < HeadDim / 8; ++n) {
      o[n][2 * half] *= rescale;
      o[n][2 * half + 1] *= rescale;
    }
  }
}

// Scores past the end, and past the row if causal, become -infinity. `row`: the warp's first.
template <bool Causal>
__device__ __forceinline__ void mask_block(float (&s)[kForwardKeys / 8][4], int block, int row,
                                           int seq) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int last = (block + 1) * kForwardKeys - 1;
  if (last < seq && !(Causal && last > row)) return;
#pragma unroll
  for (int n = 0; n < kForwardKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = block * kForwardKeys + n * 8 + lane % 4 * 2 + i % 2;
      const int query = row + lane / 4 + i / 2 * 8;
      if (key >= seq || (Causal && key > query)) s[n][i] = -INFINITY;
    }
  }
}

template <int HeadDim, bool Causal>
__global__ void __launch_bounds__(kForwardThreads)
    attention_forward_mma_kernel(AttentionForwardArguments args) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int kTile = kTileBytes<HeadDim, kForwardKeys>;
  const uint32_t tile_q = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const uint32_t ring = tile_q + kTileBytes<HeadDim, kForwardQueries>;
  const int tiles = (args.seq + kForwardQueries - 1) / kForwardQueries;
  const int head_index = static_cast<int>(blockIdx.x) / tiles;
  // The longest rows first: what is left for the end is short.
  const int tile = tiles - 1 - static_cast<int>(blockIdx.x) % tiles;
  const int64_t head = static_cast<int64_t>(head_index) * args.seq * HeadDim;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = tile * kForwardQueries + warp * 16;
  const int reach = Causal ? min(args.seq, (tile + 1) * kForwardQueries) : args.seq;
  const int blocks = (reach + kForwardKeys - 1) / kForwardKeys;

  auto load = [&](int block) {
    const uint32_t stage = ring + block % 2 * 2 * kTile;
    load_rows<HeadDim, kForwardKeys, kForwardThreads>(stage, args.k + head, block * kForwardKeys,
                                                      args.seq);
    load_rows<HeadDim, kForwardKeys, kForwardThreads>(stage + kTile, args.v + head,
                                                      block * kForwardKeys, args.seq);
    ptx::cp_async_commit();
  };
  load_rows<HeadDim, kForwardQueries, kForwardThreads>(tile_q, args.q + head,
                                                       tile * kForwardQueries, args.seq);
  load(0);
  float o[HeadDim / 8][4] = {};
  // Finite, so that a block without any key for a row leaves nothing undefined behind.
  float maximum[2] = {-1e30f, -1e30f}, sum[2] = {};
  for (int block = 0; block < blocks; ++block) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // this block is there for all, and the other stage is read
    if (block + 1 < blocks) load(block + 1);
    const uint32_t stage = ring + block % 2 * 2 * kTile;
    float s[kForwardKeys / 8][4] = {};
    multiply_rows<HeadDim, kForwardKeys>(s, tile_q + warp * 16 * kPitch<HeadDim>, stage);
    mask_block<Causal>(s, block, row, args.seq);
    soften<HeadDim>(s, o, maximum, sum, args.scale * kLog2E);
    accumulate_rows<HeadDim, kForwardKeys>(o, s, stage + kTile);
  }
  const float upper = over_row(sum[0]), lower = over_row(sum[1]);
  store_rows<HeadDim>(args.o + head, o, 1 / upper, 1 / lower, row, args.seq);
  if (lane % 4 == 0) {
    float* lse = args.lse + static_cast<int64_t>(head_index) * args.seq;
    const int query = row + lane / 4;
    if (query < args.seq) lse[query] = maximum[0] * args.scale + logf(upper);
    if (query + 8 < args.seq) lse[query + 8] = maximum[1] * args.scale + logf(lower);
  }
}

template <int HeadDim, bool Causal>
cudaError_t launch_attention_forward_mma(const AttentionForwardArguments& args,
                                         cudaStream_t stream) {
  if (args.heads < 1 || args.seq < 1) return cudaErrorInvalidValue;
  auto kernel = attention_forward_mma_kernel<HeadDim, Causal>;
  const cudaError_t status = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kForwardShared<HeadDim>);
  if (status != cudaSuccess) return status;
  const int tiles = (args.seq + kForwardQueries - 1) / kForwardQueries;
  kernel<<<tiles * args.heads, kForwardThreads, kForwardShared<HeadDim>, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace ptxbench::sm80
