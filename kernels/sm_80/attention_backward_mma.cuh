#pragma once
// Gradient of attention with Ampere's instructions: the second honest one, written differently from
// kernels/sm_90a/attention_backward.cuh. Two kernels, each with a full sum in registers, so nothing
// is added up in memory and two runs give the same bits; the price is that scores and dP are
// computed twice. Device code.
//
// dQ: a CTA of four warps owns 64 queries and walks the keys; it also computes delta = rowsum(dO *
// O) and writes it for the other kernel. dK, dV: a CTA owns 64 keys and walks blocks of 32 queries
// with transposed scores.

#include "attention_tile.cuh"

namespace ptxbench::sm80 {

struct AttentionBackwardArguments {
  const __nv_bfloat16 *q, *k, *v, *o, *d_o;  // [heads, seq, HeadDim], contiguous, 16-byte aligned
  const float* lse;                          // [heads, seq], natural log
  __nv_bfloat16 *d_q, *d_k, *d_v;            // like q
  float* delta;                              // workspace [heads, seq]
  int heads, seq;
  float scale;
};

constexpr int kBackwardRows = 64, kBackwardThreads = 128;
constexpr int kWalkedKeys = 64, kWalkedQueries = 32;

template <int HeadDim, int Walked>
constexpr int kBackwardShared =
    2 * kTileBytes<HeadDim, kBackwardRows> + 4 * kTileBytes<HeadDim, Walked>;

// The two tensors that a CTA keeps (64 rows each) and the two that it walks, in two stages.
template <int HeadDim, int Walked>
struct BackwardTiles {
  uint32_t kept0, kept1, ring;
  static constexpr int kTile = kTileBytes<HeadDim, Walked>;

  __device__ explicit BackwardTiles(const void* shared)
      : kept0(static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
        kept1(kept0 + kTileBytes<HeadDim, kBackwardRows>),
        ring(kept1 + kTileBytes<HeadDim, kBackwardRows>) {}
  __device__ uint32_t walked0(int block) const { return ring + block % 2 * 2 * kTile; }
  __device__ uint32_t walked1(int block) const { return walked0(block) + kTile; }
  __device__ void keep(const __nv_bfloat16* a, const __nv_bfloat16* b, int row, int rows) const {
    load_rows<HeadDim, kBackwardRows, kBackwardThreads>(kept0, a, row, rows);
    load_rows<HeadDim, kBackwardRows, kBackwardThreads>(kept1, b, row, rows);
  }
  __device__ void load(const __nv_bfloat16* a, const __nv_bfloat16* b, int block, int rows) const {
    load_rows<HeadDim, Walked, kBackwardThreads>(walked0(block), a, block * Walked, rows);
    load_rows<HeadDim, Walked, kBackwardThreads>(walked1(block), b, block * Walked, rows);
    ptx::cp_async_commit();
  }
};

// delta of a warp's 16 rows, for the lanes that hold each; written once.
template <int HeadDim>
__device__ __forceinline__ void row_deltas(const AttentionBackwardArguments& args, int head_index,
                                           int row, float (&delta)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = row + lane / 4 + 8 * half;
    float sum = 0;
    if (query < args.seq) {
      const int64_t at = (static_cast<int64_t>(head_index) * args.seq + query) * HeadDim;
      for (int c = lane % 4 * 2; c < HeadDim; c += 8) {
        const float2 a =
            __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(args.o + at + c));
        const float2 b =
            __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(args.d_o + at + c));
        sum += a.x * b.x + a.y * b.y;
      }
    }
    sum += __shfl_xor_sync(~0u, sum, 1);
    delta[half] = sum + __shfl_xor_sync(~0u, sum, 2);
    if (lane % 4 == 0 && query < args.seq) {
      args.delta[static_cast<int64_t>(head_index) * args.seq + query] = delta[half];
    }
  }
}

template <int HeadDim, bool Causal>
__global__ void __launch_bounds__(kBackwardThreads)
    attention_d_q_mma_kernel(AttentionBackwardArguments args) {
  extern __shared__ __align__(128) unsigned char shared[];
  const BackwardTiles<HeadDim, kWalkedKeys> tiles(shared);
  const int count = (args.seq + kBackwardRows - 1) / kBackwardRows;
  const int head_index = static_cast<int>(blockIdx.x) / count;
  const int tile = count - 1 - static_cast<int>(blockIdx.x) % count;
  const int64_t head = static_cast<int64_t>(head_index) * args.seq * HeadDim;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = tile * kBackwardRows + warp * 16;
  const int reach = Causal ? min(args.seq, (tile + 1) * kBackwardRows) : args.seq;
  const int blocks = (reach + kWalkedKeys - 1) / kWalkedKeys;
  const uint32_t warp_rows = warp * 16 * kPitch<HeadDim>;
  const float factor = args.scale * kLog2E;

  tiles.keep(args.q + head, args.d_o + head, tile * kBackwardRows, args.seq);
  tiles.load(args.k + head, args.v + head, 0, args.seq);
  float delta[2], lse[2];
  row_deltas<HeadDim>(args, head_index, row, delta);
  for (int half = 0; half < 2; ++half) {
    const int query = row + lane / 4 + 8 * half;
    lse[half] = query < args.seq
                    ? args.lse[static_cast<int64_t>(head_index) * args.seq + query] * kLog2E
                    : 0.f;
  }
  float d_q[HeadDim / 8][4] = {};
  for (int block = 0; block < blocks; ++block) {
    ptx::cp_async_wait<0>();
    __syncthreads();
    if (block + 1 < blocks) tiles.load(args.k + head, args.v + head, block + 1, args.seq);
    float s[kWalkedKeys / 8][4] = {}, d_p[kWalkedKeys / 8][4] = {};
    multiply_rows<HeadDim, kWalkedKeys>(s, tiles.kept0 + warp_rows, tiles.walked0(block));
    multiply_rows<HeadDim, kWalkedKeys>(d_p, tiles.kept1 + warp_rows, tiles.walked1(block));
#pragma unroll
    for (int n = 0; n < kWalkedKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = block * kWalkedKeys + n * 8 + lane % 4 * 2 + i % 2;
        const int query = row + lane / 4 + i / 2 * 8;
        const bool counts = key < args.seq && (!Causal || key <= query);
        const float p = counts ? exp2f(s[n][i] * factor - lse[i / 2]) : 0.f;
        s[n][i] = p * (d_p[n][i] - delta[i / 2]);
      }
    }
    accumulate_rows<HeadDim, kWalkedKeys>(d_q, s, tiles.walked0(block));
  }
  store_rows<HeadDim>(args.d_q + head, d_q, args.scale, args.scale, row, args.seq);
}

template <int HeadDim, bool Causal>
__global__ void __launch_bounds__(kBackwardThreads)
    attention_d_kv_mma_kernel(AttentionBackwardArguments args) {
  extern __shared__ __align__(128) unsigned char shared[];
  const BackwardTiles<HeadDim, kWalkedQueries> tiles(shared);
  const int count = (args.seq + kBackwardRows - 1) / kBackwardRows;
  const int head_index = static_cast<int>(blockIdx.x) / count;
  const int tile = static_cast<int>(blockIdx.x) % count;
  const int64_t head = static_cast<int64_t>(head_index) * args.seq * HeadDim;
  const int64_t rows = static_cast<int64_t>(head_index) * args.seq;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = tile * kBackwardRows + warp * 16;  // of keys
  const int first = Causal ? tile * kBackwardRows / kWalkedQueries : 0;
  const int blocks = (args.seq + kWalkedQueries - 1) / kWalkedQueries;
  const uint32_t warp_rows = warp * 16 * kPitch<HeadDim>;
  const float factor = args.scale * kLog2E;

  tiles.keep(args.k + head, args.v + head, tile * kBackwardRows, args.seq);
  tiles.load(args.q + head, args.d_o + head, first, args.seq);
  float d_k[HeadDim / 8][4] = {}, d_v[HeadDim / 8][4] = {};
  for (int block = first; block < blocks; ++block) {
    ptx::cp_async_wait<0>();
    __syncthreads();
    if (block + 1 < blocks) tiles.load(args.q + head, args.d_o + head, block + 1, args.seq);
    float s[kWalkedQueries / 8][4] = {}, d_p[kWalkedQueries / 8][4] = {};
    multiply_rows<HeadDim, kWalkedQueries>(s, tiles.kept0 + warp_rows, tiles.walked0(block));
    multiply_rows<HeadDim, kWalkedQueries>(d_p, tiles.kept1 + warp_rows, tiles.walked1(block));
#pragma unroll
    for (int n = 0; n < kWalkedQueries / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int query = block * kWalkedQueries + n * 8 + lane % 4 * 2 + i % 2;
        const int key = row + lane / 4 + i / 2 * 8;
        const bool counts = query < args.seq && key < args.seq && (!Causal || key <= query);
        const int64_t at = rows + min(query, args.seq - 1);
        const float p = counts ? exp2f(s[n][i] * factor - __ldg(args.lse + at) * kLog2E) : 0.f;
        s[n][i] = p;
        d_p[n][i] = p * (d_p[n][i] - __ldg(args.delta + at));
      }
    }
    accumulate_rows<HeadDim, kWalkedQueries>(d_v, s, tiles.walked1(block));
    accumulate_rows<HeadDim, kWalkedQueries>(d_k, d_p, tiles.walked0(block));
  }
  store_rows<HeadDim>(args.d_k + head, d_k, args.scale, args.scale, row, args.seq);
  store_rows<HeadDim>(args.d_v + head, d_v, 1.f, 1.f, row, args.seq);
}

template <int HeadDim, bool Causal>
cudaError_t launch_attention_backward_mma(const AttentionBackwardArguments& args,
                                          cudaStream_t stream) {
  if (args.heads < 1 || args.seq < 1) return cudaErrorInvalidValue;
  auto d_q = attention_d_q_mma_kernel<HeadDim, Causal>;
  auto d_kv = attention_d_kv_mma_kernel<HeadDim, Causal>;
  constexpr int kSharedQ = kBackwardShared<HeadDim, kWalkedKeys>;
  constexpr int kSharedKV = kBackwardShared<HeadDim, kWalkedQueries>;
  cudaError_t status =
      cudaFuncSetAttribute(d_q, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedQ);
  if (status != cudaSuccess) return status;
  status = cudaFuncSetAttribute(d_kv, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedKV);
  if (status != cudaSuccess) return status;
  const int ctas = (args.seq + kBackwardRows - 1) / kBackwardRows * args.heads;
  d_q<<<ctas, kBackwardThreads, kSharedQ, stream>>>(args);
  d_kv<<<ctas, kBackwardThreads, kSharedKV, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace ptxbench::sm80
