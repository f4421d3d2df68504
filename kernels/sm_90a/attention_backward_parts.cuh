#pragma once
// What the two gradients of attention for Hopper share (attention_backward.cuh,
// attention_backward_split.cuh): the workspace, the kernel that prepares it, the ring of query
// blocks that a CTA of keys walks, and the steps of its consumers. Device code.
//
//   P = exp(scale Q K^T - LSE)      dV = P^T dO        delta = rowsum(dO * O)
//   dS = P * (dO V^T - delta)       dK = scale dS^T Q  dQ = scale dS K
//
// A CTA that owns keys computes scores transposed, S^T = K Q^T and dP^T = V dO^T, so that P^T and
// dS^T lie in registers as the A operand of dV and dK, which stay in the accumulators.

#include <ptxbench/ptx.cuh>

#include "head_tile.cuh"

namespace ptxbench::sm90 {

// Rows of a head are padded to a multiple of kBackwardPad; sums of dQ lie in blocks of kSumRows.
constexpr int kBackwardPad = 128, kSumRows = 64;

__host__ __device__ constexpr int backward_padded(int seq) {
  return (seq + kBackwardPad - 1) / kBackwardPad * kBackwardPad;
}

// Workspace, in floats from its start; each array over the padded rows of all heads.
struct BackwardWorkspace {
  int64_t lse, delta, d_q, end;

  // sums: with room for dQ, where it is added up in memory.
  __host__ __device__ BackwardWorkspace(int heads, int seq, int head_dim, bool sums) {
    const int64_t rows = static_cast<int64_t>(heads) * backward_padded(seq);
    lse = 0;
    delta = rows;
    d_q = 2 * rows;
    end = sums ? d_q + rows * head_dim : d_q;
  }
};

struct AttentionBackwardArguments {
  float* workspace;  // BackwardWorkspace::end floats, 16-byte aligned
  int heads, seq;
  float scale;
};

template <typename Config>
struct BackwardRing {
  uint32_t base;
  int stage = 0;
  uint32_t phase = 0;

  __device__ uint32_t barrier(int index) const {
    return base + Config::kOffsetBarriers + index * 8;
  }
  __device__ uint32_t kv_full() const { return barrier(0); }
  __device__ uint32_t q_full() const { return barrier(1 + stage); }
  __device__ uint32_t d_o_full() const { return barrier(1 + Config::kStages + stage); }
  __device__ uint32_t empty() const { return barrier(1 + 2 * Config::kStages + stage); }
  __device__ uint32_t q() const { return base + Config::kOffsetQ + stage * Config::TileQ::kBytes; }
  __device__ uint32_t d_o() const {
    return base + Config::kOffsetDO + stage * Config::TileQ::kBytes;
  }
  __device__ uint32_t lse() const {
    return base + Config::kOffsetStats + stage * 2 * Config::kRowStats;
  }
  __device__ uint32_t delta() const { return lse() + Config::kRowStats; }
  __device__ void advance() {
    if (++stage == Config::kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// What a CTA works on.
struct BackwardTile {
  int head, key_block, first, blocks;  // query blocks first .. blocks-1 of the head's

  template <typename Config>
  __device__ static BackwardTile of(const AttentionBackwardArguments& args) {
    const int key_blocks = (args.seq + Config::kKeys - 1) / Config::kKeys;
    BackwardTile tile;
    tile.head = blockIdx.x / key_blocks;
    tile.key_block = blockIdx.x - tile.head * key_blocks;
    tile.first = Config::kCausal ? tile.key_block * Config::kKeys / Config::kQueries : 0;
    tile.blocks = (args.seq + Config::kQueries - 1) / Config::kQueries;
    return tile;
  }
};

template <typename Config>
__device__ __forceinline__ void backward_produce(BackwardRing<Config> ring,
                                                 const CUtensorMap* map_q, const CUtensorMap* map_k,
                                                 const CUtensorMap* map_v,
                                                 const CUtensorMap* map_d_o,
                                                 const AttentionBackwardArguments& args,
                                                 const BackwardTile& tile) {
  using TileQ = typename Config::TileQ;
  using TileKV = typename Config::TileKV;
  const BackwardWorkspace offsets(args.heads, args.seq, Config::kHeadDim, false);
  ptx::mbarrier_arrive_expect_tx(ring.kv_full(), 2 * TileKV::kBytes);
  TileKV::load(ring.base, map_k, ring.kv_full(), tile.key_block * Config::kKeys, tile.head);
  TileKV::load(ring.base + Config::kOffsetV, map_v, ring.kv_full(), tile.key_block * Config::kKeys,
               tile.head);
  for (int block = tile.first; block < tile.blocks; ++block) {
    const int row = block * Config::kQueries;
    const float* stats =
        args.workspace + static_cast<int64_t>(tile.head) * backward_padded(args.seq) + row;
    ptx::mbarrier_wait(ring.empty(), ring.phase ^ 1);
    ptx::mbarrier_arrive_expect_tx(ring.q_full(), TileQ::kBytes + Config::kRowStats);
    TileQ::load(ring.q(), map_q, ring.q_full(), row, tile.head);
    ptx::bulk_load(ring.lse(), stats + offsets.lse, Config::kRowStats, ring.q_full());
    ptx::mbarrier_arrive_expect_tx(ring.d_o_full(), TileQ::kBytes + Config::kRowStats);
    TileQ::load(ring.d_o(), map_d_o, ring.d_o_full(), row, tile.head);
    ptx::bulk_load(ring.delta(), stats + offsets.delta, Config::kRowStats, ring.d_o_full());
    ring.advance();
  }
}

// d^T[64 keys, queries] = rows[64, HeadDim] * block[queries, HeadDim]^T
template <typename Config>
__device__ __forceinline__ void issue_transposed(float (&d)[Config::kQueries / 2], uint64_t rows,
                                                 uint32_t block) {
  const uint64_t b = Config::TileQ::k_major(block);
#pragma unroll
  for (int step = 0; step < Config::TileQ::kSteps; ++step) {
    ptx::Wgmma<Config::kQueries>::template ss_bf16<0, 0>(d, rows + Config::TileKV::k_step(step),
                                                         b + Config::TileQ::k_step(step), step);
  }
  ptx::wgmma_commit();
}

// sums[64 keys, HeadDim] += weights[64, queries] * block[queries, HeadDim]
template <typename Config>
__device__ __forceinline__ void issue_gradient(float (&sums)[Config::kHeadDim / 2],
                                               const uint32_t (&weights)[Config::kQueries / 16][4],
                                               uint32_t block, int accumulate) {
  const uint64_t b = Config::TileQ::mn_major(block);
#pragma unroll
  for (int step = 0; step < Config::kQueries / 16; ++step) {
    ptx::Wgmma<Config::kHeadDim>::template rs_bf16<1>(
        sums, weights[step], b + Config::TileQ::mn_step(step), accumulate | step);
  }
  ptx::wgmma_commit();
}

// Accumulators must have a value before the first products that stay in flight: what the compiler
// puts into them later would break the pipeline apart.
template <int Count>
__device__ __forceinline__ void clear(float (&sums)[Count]) {
#pragma unroll
  for (float& sum : sums) sum = 0;
  ptx::wgmma_pin(sums);  // here, not behind the fence
}

// Scores of keys after the query (causal) or past the end become -infinity. `key` and `query` are
// those of this thread's first score.
template <typename Config>
__device__ __forceinline__ void mask_transposed(float (&s)[Config::kQueries / 2], int key,
                                                int query, int seq) {
#pragma unroll
  for (int i = 0; i < Config::kQueries / 2; ++i) {
    const int k = key + 8 * (i >> 1 & 1);
    const bool after = Config::kCausal && k > query + 8 * (i >> 2) + (i & 1);
    if (after || k >= seq) s[i] = -INFINITY;
  }
}

// Per query: two neighbouring values for each 8 columns of a transposed block.
__device__ __forceinline__ float2 row_stat(uint32_t array, int column) {
  float2 value;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
               : "=f"(value.x), "=f"(value.y)
               : "r"(array + column * 4)
               : "memory");
  return value;
}

// Transposed scores become weights, given each query's log-sum-exp (base 2) in shared memory; their
// bf16 is the A operand of dV.
template <int Count>
__device__ __forceinline__ void transposed_weights(float (&s)[Count], uint32_t (&p)[Count / 8][4],
                                                   uint32_t lse, float factor, int lane) {
#pragma unroll
  for (int i = 0; i < Count; i += 4) {
    const float2 stat = row_stat(lse, 2 * (lane % 4) + 2 * i);
    s[i] = ptx::exp2_approx(fmaf(s[i], factor, -stat.x));
    s[i + 1] = ptx::exp2_approx(fmaf(s[i + 1], factor, -stat.y));
    s[i + 2] = ptx::exp2_approx(fmaf(s[i + 2], factor, -stat.x));
    s[i + 3] = ptx::exp2_approx(fmaf(s[i + 3], factor, -stat.y));
    p[i / 8][i / 4 % 2 * 2] = ptx::pack_bf16(s[i], s[i + 1]);
    p[i / 8][i / 4 % 2 * 2 + 1] = ptx::pack_bf16(s[i + 2], s[i + 3]);
  }
}

// dS^T in bf16, the A operand of dK.
template <int Count>
__device__ __forceinline__ void transposed_score_gradients(uint32_t (&d_s)[Count / 8][4],
                                                           const float (&p)[Count],
                                                           const float (&d_p)[Count],
                                                           uint32_t delta, int lane) {
#pragma unroll
  for (int i = 0; i < Count; i += 4) {
    const float2 stat = row_stat(delta, 2 * (lane % 4) + 2 * i);
    d_s[i / 8][i / 4 % 2 * 2] =
        ptx::pack_bf16(p[i] * (d_p[i] - stat.x), p[i + 1] * (d_p[i + 1] - stat.y));
    d_s[i / 8][i / 4 % 2 * 2 + 1] =
        ptx::pack_bf16(p[i + 2] * (d_p[i + 2] - stat.x), p[i + 3] * (d_p[i + 3] - stat.y));
  }
}

// Whether a consumer's block of scores has some that do not count: `rows` keys from `first_key`.
template <typename Config>
__device__ __forceinline__ bool needs_mask(int first_key, int block, int seq) {
  return (Config::kCausal && block * Config::kQueries < first_key + 63) || first_key + 64 > seq;
}

// A warp's 16 rows of dK (scaled) and dV, through the places of K and V, which nobody reads any
// more. `row` in the tile.
template <typename Config>
__device__ __forceinline__ void store_key_gradients(
    const float (&d_k)[Config::kHeadDim / 2], const float (&d_v)[Config::kHeadDim / 2],
    uint32_t tile_k, uint32_t tile_v, const CUtensorMap* map_d_k, const CUtensorMap* map_d_v,
    const AttentionBackwardArguments& args, const BackwardTile& tile, int row, int lane) {
  using TileKV = typename Config::TileKV;
  const float ones[2] = {1, 1}, scales[2] = {args.scale, args.scale};
  stage_rows<TileKV>(d_k, scales, tile_k, row, lane);
  stage_rows<TileKV>(d_v, ones, tile_v, row, lane);
  ptx::fence_proxy_async();
  __syncwarp();
  if (lane == 0) {
    const int first = tile.key_block * Config::kKeys + row;
    if (first < args.seq) {
      for (int chunk = 0; chunk < TileKV::kChunks; ++chunk) {
        const uint32_t offset = chunk * TileKV::kChunkBytes + row * TileKV::kRowBytes;
        const int column = chunk * TileKV::kColumns;
        ptx::tma_store_3d(map_d_k, tile_k + offset, column, first, tile.head);
        ptx::tma_store_3d(map_d_v, tile_v + offset, column, first, tile.head);
      }
    }
    ptx::bulk_commit();
    ptx::bulk_wait<0>();
  }
}

// By one thread: the barriers of a ring, each block released by `warps` warps.
template <typename Config>
__device__ __forceinline__ void start_backward_ring(const BackwardRing<Config>& ring, int warps) {
  for (int i = 0; i < 1 + 3 * Config::kStages; ++i) {
    ptx::mbarrier_init(ring.barrier(i), i > 2 * Config::kStages ? warps : 1);
  }
  ptx::fence_mbarrier_init();
  ptx::fence_proxy_async();
}

// Computes delta, turns LSE to base 2, pads both (LSE with infinity, so that rows that do not exist
// have no probability) and, with Sums, clears what dQ is summed in. One warp a row of the padded
// sequences: heads * rows / 8 CTAs of 256 threads.
template <int HeadDim, bool Sums>
__global__ void __launch_bounds__(256)
    attention_backward_prepare(const __nv_bfloat16* o, const __nv_bfloat16* d_o, const float* lse,
                               const AttentionBackwardArguments args) {
  const BackwardWorkspace offsets(args.heads, args.seq, HeadDim, Sums);
  const int lane = threadIdx.x % 32;
  const int64_t row = blockIdx.x * int64_t{8} + threadIdx.x / 32;
  const int64_t rows = offsets.delta / args.heads;  // of one head
  const int64_t head = row / rows;
  const int query = static_cast<int>(row - head * rows);
  float sum = 0;
  const bool exists = query < args.seq;
  if (exists) {
    const int64_t start = (head * args.seq + query) * HeadDim;
    for (int c = lane * 2; c < HeadDim; c += 64) {
      const float2 a = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(o + start + c));
      const float2 b =
          __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(d_o + start + c));
      sum += a.x * b.x + a.y * b.y;
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  if (lane == 0) {
    args.workspace[offsets.delta + row] = sum;
    args.workspace[offsets.lse + row] =
        exists ? lse[head * args.seq + query] * 1.44269504088896340736f : INFINITY;
  }
  if constexpr (!Sums) return;
  float4* d_q = reinterpret_cast<float4*>(args.workspace + offsets.d_q + row * HeadDim);
  for (int c = lane; c < HeadDim / 4; c += 32) d_q[c] = make_float4(0, 0, 0, 0);
}

}  // namespace ptxbench::sm90
