#pragma once
// Gradient of attention for Hopper (sm_90a): dQ, dK, dV from Q, K, V, O, dO and the forward pass's
// log-sum-exp. bf16 [heads, seq, HeadDim] (batch and head in one index), LSE fp32 [heads, seq],
// natural log. Device code.
//
//   P = exp(scale Q K^T - LSE)      dV = P^T dO        delta = rowsum(dO * O)
//   dS = P * (dO V^T - delta)       dK = scale dS^T Q  dQ = scale dS K
//
// Three kernels. `attention_backward_prepare` computes delta, turns LSE to base 2, pads both to
// whole query blocks (LSE with infinity, so that rows that do not exist have no probability) and
// clears what dQ is summed in. `attention_backward_kernel` does the products.
// `attention_backward_finish` rounds dQ.
//
// Method of the main kernel. A CTA owns 128 keys, each of two consumer warpgroups 64 of them; one
// thread of warpgroup 0 streams query blocks of 64 (Q, dO, LSE, delta) through a ring with TMA.
// Scores are computed transposed, S^T = K Q^T and dP^T = V dO^T, so that P^T and dS^T lie in
// registers as the A operand of dV and dK, which stay in the accumulators. Only dS goes through
// shared memory, for dQ = dS K over all 128 keys, of which each consumer computes half of the
// columns. dQ is summed over CTAs in fp32 with bulk reductions, in the order of the accumulators'
// registers, whose place in the workspace is arbitrary. The next block's scores are issued before a
// dQ is put away.
//
// Bulk reductions of different CTAs come in any order. Deterministic: for each query block the CTAs
// take turns, in the order of their keys, by a counter in global memory. A CTA only waits for CTAs
// with a lower index, which have started before it.

#include <ptxbench/ptx.cuh>

#include "head_tile.cuh"

namespace ptxbench::sm90 {

constexpr int kBackwardQueries = 64, kBackwardKeys = 128;

// Workspace, in floats from its start. `rows` is seq rounded up to whole query blocks.
struct BackwardWorkspace {
  int64_t lse, delta, d_q, turns, end;

  __host__ __device__ BackwardWorkspace(int heads, int seq, int head_dim) {
    const int64_t blocks = (seq + kBackwardQueries - 1) / kBackwardQueries;
    const int64_t rows = heads * blocks * kBackwardQueries;
    lse = 0;
    delta = rows;
    d_q = 2 * rows;
    turns = d_q + rows * head_dim;
    end = turns + heads * blocks * 8;  // one counter a consumer warp
  }
};

struct AttentionBackwardArguments {
  float* workspace;  // BackwardWorkspace::end floats, 16-byte aligned
  int heads, seq;
  float scale;
};

template <int HeadDim, int Stages, bool Causal, bool Deterministic>
struct AttentionBackwardConfig {
  static constexpr int kHeadDim = HeadDim, kStages = Stages;
  static constexpr bool kCausal = Causal, kDeterministic = Deterministic;
  static constexpr int kQueries = kBackwardQueries, kKeys = kBackwardKeys;
  static constexpr int kConsumerWarps = 8, kThreads = 384;
  using TileQ = HeadTile<HeadDim, kQueries>;
  using TileKV = HeadTile<HeadDim, kKeys>;
  using TileS = HeadTile<kQueries, kKeys>;  // dS^T: rows are keys, columns queries
  // Columns of dQ of the first and the second consumer; a part starts where a swizzle row does, or
  // in the middle of the only one.
  static constexpr int kColumns0 = HeadDim == 96 ? 64 : HeadDim / 2;
  static constexpr int kColumns1 = HeadDim - kColumns0;
  static constexpr int kRowStats = kQueries * 4;  // bytes of a block's LSE or delta
  static constexpr int kOffsetV = TileKV::kBytes;
  static constexpr int kOffsetQ = kOffsetV + TileKV::kBytes;
  static constexpr int kOffsetDO = kOffsetQ + Stages * TileQ::kBytes;
  static constexpr int kOffsetS = kOffsetDO + Stages * TileQ::kBytes;
  static constexpr int kOffsetDQ = kOffsetS + 2 * TileS::kBytes;
  static constexpr int kOffsetStats = kOffsetDQ + kQueries * HeadDim * 4;
  static constexpr int kOffsetBarriers = kOffsetStats + 2 * Stages * kRowStats;
  static constexpr int kSharedBytes = 1024 + kOffsetBarriers + 8 * (1 + 3 * Stages);
  static_assert(kSharedBytes <= 232448, "more shared memory than a Hopper CTA has");
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
    tile.first = Config::kCausal ? tile.key_block * (Config::kKeys / Config::kQueries) : 0;
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
  const BackwardWorkspace offsets(args.heads, args.seq, Config::kHeadDim);
  ptx::mbarrier_arrive_expect_tx(ring.kv_full(), 2 * TileKV::kBytes);
  TileKV::load(ring.base, map_k, ring.kv_full(), tile.key_block * Config::kKeys, tile.head);
  TileKV::load(ring.base + Config::kOffsetV, map_v, ring.kv_full(), tile.key_block * Config::kKeys,
               tile.head);
  for (int block = tile.first; block < tile.blocks; ++block) {
    const int row = block * Config::kQueries;
    const float* stats =
        args.workspace + (static_cast<int64_t>(tile.head) * tile.blocks + block) * Config::kQueries;
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

// d_q[queries, Columns] = dS[queries, keys] * K[keys, Columns]
template <typename Config, int Columns>
__device__ __forceinline__ void issue_d_q(float (&d_q)[Columns / 2], uint32_t tile_s, uint64_t k) {
  const uint64_t a = Config::TileS::mn_major(tile_s);
#pragma unroll
  for (int step = 0; step < Config::kKeys / 16; ++step) {
    ptx::Wgmma<Columns>::template ss_bf16<1, 1>(d_q, a + Config::TileS::mn_step(step),
                                                k + Config::TileKV::mn_step(step), step);
  }
  ptx::wgmma_commit();
}

// Scores of keys after the query (causal) or past the end become -infinity.
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

// A warp's 16 rows x Columns of dQ through its own staging bytes to its own place in the workspace,
// register by register.
template <bool Deterministic, int Columns>
__device__ __forceinline__ void add_d_q(const float (&d_q)[Columns / 2], uint32_t staging,
                                        float* sums, uint32_t* turn, uint32_t my_turn, int lane) {
  if (lane == 0) ptx::bulk_wait_read<0>();
  __syncwarp();
#pragma unroll
  for (int i = 0; i < Columns / 8; ++i) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(staging + (i * 32 + lane) * 16),
                 "f"(d_q[4 * i]), "f"(d_q[4 * i + 1]), "f"(d_q[4 * i + 2]), "f"(d_q[4 * i + 3])
                 : "memory");
  }
  ptx::fence_proxy_async();
  __syncwarp();
  if (lane == 0) {
    if constexpr (Deterministic) {
      while (ptx::load_acquire_gpu(turn) != my_turn) {
      }
      ptx::fence_proxy_async_all();
    }
    ptx::bulk_reduce_add_f32(sums, staging, 16 * Columns * 4);
    ptx::bulk_commit();
    if constexpr (Deterministic) {
      ptx::bulk_wait<0>();
      ptx::fence_proxy_async_all();
      ptx::store_release_gpu(turn, my_turn + 1);
    }
  }
}

template <typename Config, int Consumer>
__device__ __forceinline__ void backward_consume(BackwardRing<Config> ring,
                                                 const CUtensorMap* map_d_k,
                                                 const CUtensorMap* map_d_v,
                                                 const AttentionBackwardArguments& args,
                                                 const BackwardTile& tile) {
  constexpr int kQueries = Config::kQueries, kKeys = Config::kKeys;
  constexpr int kColumns = Consumer == 0 ? Config::kColumns0 : Config::kColumns1;
  constexpr int kColumn0 = Consumer == 0 ? 0 : Config::kColumns0;
  using TileKV = typename Config::TileKV;
  using TileS = typename Config::TileS;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const int row = Consumer * 64 + warp * 16;  // of this warp's keys in the tile
  const int key = tile.key_block * kKeys + row + lane / 4;
  const float factor = args.scale * 1.44269504088896340736f;
  const BackwardWorkspace offsets(args.heads, args.seq, Config::kHeadDim);
  const uint32_t tile_v = ring.base + Config::kOffsetV;
  const uint64_t rows_k = TileKV::k_major(ring.base, Consumer * 64);
  const uint64_t rows_v = TileKV::k_major(tile_v, Consumer * 64);
  const uint64_t columns_k = TileKV::mn_major(ring.base, kColumn0 / TileKV::kColumns) +
                             kColumn0 % TileKV::kColumns * 2 / 16;
  const uint32_t staging =
      ring.base + Config::kOffsetDQ + (kColumn0 * kQueries + warp * 16 * kColumns) * 4;

  float d_k[Config::kHeadDim / 2], d_v[Config::kHeadDim / 2];
  ptx::mbarrier_wait(ring.kv_full(), 0);
  for (int block = tile.first; block < tile.blocks; ++block) {
    const int accumulate = block != tile.first;
    const int query = block * kQueries + 2 * (lane % 4);
    const uint32_t tile_s = ring.base + Config::kOffsetS + (block & 1) * TileS::kBytes;
    float s[kQueries / 2], d_p[kQueries / 2];
    uint32_t p[kQueries / 16][4], d_s[kQueries / 16][4];
    ptx::mbarrier_wait(ring.q_full(), ring.phase);
    ptx::wgmma_fence();
    issue_transposed<Config>(s, rows_k, ring.q());
    ptx::mbarrier_wait(ring.d_o_full(), ring.phase);
    ptx::wgmma_fence();
    issue_transposed<Config>(d_p, rows_v, ring.d_o());
    ptx::wgmma_wait<1>();  // the scores
    ptx::wgmma_pin(s);
    if ((Config::kCausal && block * kQueries < tile.key_block * kKeys + Consumer * 64 + 63) ||
        (tile.key_block + 1) * kKeys > args.seq) {
      mask_transposed<Config>(s, key, query, args.seq);
    }
#pragma unroll
    for (int i = 0; i < kQueries / 2; i += 4) {
      const float2 lse = row_stat(ring.lse(), 2 * (lane % 4) + 2 * i);
      s[i] = ptx::exp2_approx(fmaf(s[i], factor, -lse.x));
      s[i + 1] = ptx::exp2_approx(fmaf(s[i + 1], factor, -lse.y));
      s[i + 2] = ptx::exp2_approx(fmaf(s[i + 2], factor, -lse.x));
      s[i + 3] = ptx::exp2_approx(fmaf(s[i + 3], factor, -lse.y));
    }
#pragma unroll
    for (int i = 0; i < kQueries / 4; ++i) p[i / 4][i % 4] = ptx::pack_bf16(s[2 * i], s[2 * i + 1]);
    ptx::wgmma_fence();
    issue_gradient<Config>(d_v, p, ring.d_o(), accumulate);
    ptx::wgmma_wait<1>();
    ptx::wgmma_pin(d_p);
#pragma unroll
    for (int i = 0; i < kQueries / 2; i += 4) {
      const float2 delta = row_stat(ring.delta(), 2 * (lane % 4) + 2 * i);
      d_s[i / 8][i / 4 % 2 * 2] =
          ptx::pack_bf16(s[i] * (d_p[i] - delta.x), s[i + 1] * (d_p[i + 1] - delta.y));
      d_s[i / 8][i / 4 % 2 * 2 + 1] =
          ptx::pack_bf16(s[i + 2] * (d_p[i + 2] - delta.x), s[i + 3] * (d_p[i + 3] - delta.y));
    }
#pragma unroll
    for (int step = 0; step < kQueries / 16; ++step) {
      ptx::stmatrix_x4(tile_s + TileS::octet(row + (lane & 15), step * 2 + (lane >> 4)),
                       d_s[step][0], d_s[step][1], d_s[step][2], d_s[step][3]);
    }
    ptx::fence_proxy_async();
    ptx::wgmma_fence();
    issue_gradient<Config>(d_k, d_s, ring.q(), accumulate);
    // dS of both consumers is written, and the last but one block's is read.
    ptx::named_barrier_sync(1, 256);
    float d_q[kColumns / 2];
    ptx::wgmma_fence();
    issue_d_q<Config, kColumns>(d_q, tile_s, columns_k);
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(d_q);
    ptx::wgmma_pin(d_k);
    ptx::wgmma_pin(d_v);
    if (lane == 0) ptx::mbarrier_arrive(ring.empty());
    ring.advance();
    const int64_t at = static_cast<int64_t>(tile.head) * tile.blocks + block;
    float* sums = args.workspace + offsets.d_q + at * kQueries * Config::kHeadDim +
                  kColumn0 * kQueries + warp * 16 * kColumns;
    uint32_t* turn =
        reinterpret_cast<uint32_t*>(args.workspace + offsets.turns) + at * 8 + Consumer * 4 + warp;
    add_d_q<Config::kDeterministic, kColumns>(d_q, staging, sums, turn, tile.key_block, lane);
  }

  ptx::named_barrier_sync(1, 256);  // K and V are read; their places take the results
  const float ones[2] = {1, 1}, scales[2] = {args.scale, args.scale};
  stage_rows<TileKV>(d_k, scales, ring.base, row, lane);
  stage_rows<TileKV>(d_v, ones, tile_v, row, lane);
  ptx::fence_proxy_async();
  __syncwarp();
  if (lane == 0) {
    const int first = tile.key_block * kKeys + row;
    if (first < args.seq) {
      for (int chunk = 0; chunk < TileKV::kChunks; ++chunk) {
        const uint32_t offset = chunk * TileKV::kChunkBytes + row * TileKV::kRowBytes;
        const int column = chunk * TileKV::kColumns;
        ptx::tma_store_3d(map_d_k, ring.base + offset, column, first, tile.head);
        ptx::tma_store_3d(map_d_v, tile_v + offset, column, first, tile.head);
      }
    }
    ptx::bulk_commit();
    ptx::bulk_wait<0>();
  }
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    attention_backward_kernel(const __grid_constant__ CUtensorMap map_q,
                              const __grid_constant__ CUtensorMap map_k,
                              const __grid_constant__ CUtensorMap map_v,
                              const __grid_constant__ CUtensorMap map_d_o,
                              const __grid_constant__ CUtensorMap map_d_k,
                              const __grid_constant__ CUtensorMap map_d_v,
                              const AttentionBackwardArguments args) {
  extern __shared__ uint8_t dynamic[];
  const BackwardRing<Config> ring{(ptx::smem_address(dynamic) + 1023) & ~1023u};
  const BackwardTile tile = BackwardTile::of<Config>(args);
  if (threadIdx.x == 0) {
    for (int i = 0; i < 1 + 3 * Config::kStages; ++i) {
      const bool empty = i > 2 * Config::kStages;
      ptx::mbarrier_init(ring.barrier(i), empty ? Config::kConsumerWarps : 1);
    }
    ptx::fence_mbarrier_init();
    ptx::fence_proxy_async();
  }
  __syncthreads();

  if (threadIdx.x < 128) {
    ptx::register_decrease<24>();
    if (threadIdx.x < 32) {
      if (ptx::elect_one()) backward_produce(ring, &map_q, &map_k, &map_v, &map_d_o, args, tile);
      __syncwarp();
    }
  } else {
    ptx::register_increase<240>();
    if (threadIdx.x < 256) {
      backward_consume<Config, 0>(ring, &map_d_k, &map_d_v, args, tile);
    } else {
      backward_consume<Config, 1>(ring, &map_d_k, &map_d_v, args, tile);
    }
  }
}

// One warp a row of the padded sequences; the grid covers heads * rows / 8 CTAs of 256 threads.
template <int HeadDim>
__global__ void __launch_bounds__(256)
    attention_backward_prepare(const __nv_bfloat16* o, const __nv_bfloat16* d_o, const float* lse,
                               const AttentionBackwardArguments args) {
  const BackwardWorkspace offsets(args.heads, args.seq, HeadDim);
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
    if (row % kBackwardQueries < 8) {
      args.workspace[offsets.turns + row / kBackwardQueries * 8 + row % kBackwardQueries] = 0;
    }
  }
  float4* d_q = reinterpret_cast<float4*>(args.workspace + offsets.d_q + row * HeadDim);
  for (int c = lane; c < HeadDim / 4; c += 32) d_q[c] = make_float4(0, 0, 0, 0);
}

// dQ = scale * sums, rounded; one CTA of 256 threads a query block. Knows the register order of
// add_d_q.
template <typename Config>
__global__ void __launch_bounds__(256)
    attention_backward_finish(__nv_bfloat16* d_q, const AttentionBackwardArguments args) {
  constexpr int kHeadDim = Config::kHeadDim, kQueries = Config::kQueries;
  const BackwardWorkspace offsets(args.heads, args.seq, kHeadDim);
  const int blocks = (args.seq + kQueries - 1) / kQueries;
  const int head = blockIdx.x / blocks, block = blockIdx.x - head * blocks;
  const float4* sums = reinterpret_cast<const float4*>(args.workspace + offsets.d_q) +
                       static_cast<int64_t>(blockIdx.x) * kQueries * kHeadDim / 4;
  for (int i = threadIdx.x; i < kQueries * kHeadDim / 4; i += 256) {
    constexpr int kFirst = kQueries * Config::kColumns0 / 4;
    const bool second = i >= kFirst;
    const int columns = second ? Config::kColumns1 : Config::kColumns0;
    const int within = second ? i - kFirst : i;
    const int warp = within / (4 * columns), rest = within - warp * 4 * columns;
    const int lane = rest % 32;
    const int column = (second ? Config::kColumns0 : 0) + rest / 32 * 8 + 2 * (lane % 4);
    const int query = block * kQueries + warp * 16 + lane / 4;
    const float4 sum = sums[i];
    __nv_bfloat16* out = d_q + (static_cast<int64_t>(head) * args.seq + query) * kHeadDim + column;
    if (query < args.seq) {
      *reinterpret_cast<__nv_bfloat162*>(out) =
          __floats2bfloat162_rn(sum.x * args.scale, sum.y * args.scale);
    }
    if (query + 8 < args.seq) {
      *reinterpret_cast<__nv_bfloat162*>(out + 8 * kHeadDim) =
          __floats2bfloat162_rn(sum.z * args.scale, sum.w * args.scale);
    }
  }
}

}  // namespace ptxbench::sm90
