#pragma once
// Gradient of attention for Hopper (sm_90a): dQ, dK, dV from Q, K, V, O, dO and the forward pass's
// log-sum-exp. bf16 [heads, seq, HeadDim] (batch and head in one index), LSE fp32 [heads, seq],
// natural log. Device code. Formulas: attention_backward_parts.cuh.
//
// Three kernels. `attention_backward_prepare` computes delta, turns LSE to base 2 and clears what
// dQ is summed in. `attention_backward_kernel` does the five products. `attention_backward_finish`
// rounds dQ.
//
// Method of the main kernel. A CTA owns 128 keys, each of two consumer warpgroups 64 of them; one
// thread of warpgroup 0 streams query blocks of 64 or 128 (Q, dO, LSE, delta) through a ring with
// TMA. Only dS goes through shared memory, for dQ = dS K over all 128 keys, of which each consumer
// computes half: of the columns in a block of 64 queries, of the queries in one of 128. dQ is
// summed over CTAs in fp32 with bulk reductions, in the order of the accumulators' registers, whose
// place in the workspace is arbitrary. The next block's scores are issued before a dQ is awaited
// and put away.
//
// Bulk reductions of different CTAs come in any order, so two runs may differ in the last bits of
// dQ; attention_backward_split.cuh does not.

#include "attention_backward_parts.cuh"

namespace ptxbench::sm90 {

// Ahead: whether a block's scores are multiplied while the last block's dQ is put away; head
// dimension 128 and blocks of 128 queries leave no registers for that.
template <int HeadDim, int Queries, int Stages, bool Causal,
          bool Ahead = HeadDim <= 96 && Queries == 64>
struct AttentionBackwardConfig {
  static_assert(Queries == 64 || Queries == 128);
  static constexpr int kHeadDim = HeadDim, kStages = Stages;
  static constexpr bool kCausal = Causal, kAhead = Ahead;
  static constexpr int kQueries = Queries, kKeys = 128;
  static constexpr int kConsumerWarps = 8, kThreads = 384;
  using TileQ = HeadTile<HeadDim, kQueries>;
  using TileKV = HeadTile<HeadDim, kKeys>;
  using TileS = HeadTile<kQueries, kKeys>;  // dS^T: rows are keys, columns queries
  // Columns of dQ of the first and the second consumer, in blocks of 64 queries; a part starts
  // where a swizzle row does, or in the middle of the only one.
  static constexpr bool kSplitsQueries = Queries == 128;
  static constexpr int kColumns0 = kSplitsQueries ? HeadDim : HeadDim == 96 ? 64 : HeadDim / 2;
  static constexpr int kColumns1 = kSplitsQueries ? HeadDim : HeadDim - kColumns0;
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

// d_q[64 queries, Columns] = dS[64 queries, keys] * K[keys, Columns], dS from descriptor `d_s`
template <typename Config, int Columns>
__device__ __forceinline__ void issue_d_q(float (&d_q)[Columns / 2], uint64_t d_s, uint64_t k) {
#pragma unroll
  for (int step = 0; step < Config::kKeys / 16; ++step) {
    ptx::Wgmma<Columns>::template ss_bf16<1, 1>(d_q, d_s + Config::TileS::mn_step(step),
                                                k + Config::TileKV::mn_step(step), step);
  }
  ptx::wgmma_commit();
}

// A warp's 16 rows x Columns of dQ through its own staging bytes to its own place in the workspace,
// register by register.
template <int Columns>
__device__ __forceinline__ void add_d_q(const float (&d_q)[Columns / 2], uint32_t staging,
                                        float* sums, int lane) {
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
    ptx::bulk_reduce_add_f32(sums, staging, 16 * Columns * 4);
    ptx::bulk_commit();
  }
}

template <typename Config, int Consumer>
__device__ __forceinline__ void backward_consume(BackwardRing<Config> ring,
                                                 const CUtensorMap* map_d_k,
                                                 const CUtensorMap* map_d_v,
                                                 const AttentionBackwardArguments& args,
                                                 const BackwardTile& tile) {
  constexpr int kQueries = Config::kQueries, kKeys = Config::kKeys;
  constexpr bool kSplits = Config::kSplitsQueries;
  constexpr int kColumns = Consumer == 0 ? Config::kColumns0 : Config::kColumns1;
  constexpr int kColumn0 = Consumer == 0 || kSplits ? 0 : Config::kColumns0;
  // First of this consumer's sums of a block: by queries or by columns.
  constexpr int kSum0 = kSplits ? Consumer * kSumRows * kColumns : kColumn0 * kSumRows;
  using TileKV = typename Config::TileKV;
  using TileS = typename Config::TileS;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const int row = Consumer * 64 + warp * 16;  // of this warp's keys in the tile
  const int first_key = tile.key_block * kKeys + Consumer * 64;
  const float factor = args.scale * 1.44269504088896340736f;
  const BackwardWorkspace offsets(args.heads, args.seq, Config::kHeadDim, true);
  const uint32_t tile_v = ring.base + Config::kOffsetV;
  const uint64_t rows_k = TileKV::k_major(ring.base, Consumer * 64);
  const uint64_t rows_v = TileKV::k_major(tile_v, Consumer * 64);
  const uint64_t columns_k = TileKV::mn_major(ring.base, kColumn0 / TileKV::kColumns) +
                             kColumn0 % TileKV::kColumns * 2 / 16;
  const int sum_of_warp = kSum0 + warp * 16 * kColumns;
  const uint32_t staging = ring.base + Config::kOffsetDQ + sum_of_warp * 4;
  const int64_t padded_row = static_cast<int64_t>(tile.head) * backward_padded(args.seq);

  float d_k[Config::kHeadDim / 2], d_v[Config::kHeadDim / 2];
  float s[kQueries / 2], d_p[kQueries / 2], d_q[kColumns / 2];
  clear(d_k), clear(d_v), clear(s), clear(d_p), clear(d_q);
  auto issue_scores = [&] {
    ptx::mbarrier_wait(ring.q_full(), ring.phase);
    ptx::wgmma_fence();
    issue_transposed<Config>(s, rows_k, ring.q());
  };
  ptx::mbarrier_wait(ring.kv_full(), 0);
  if constexpr (Config::kAhead) {
    issue_scores();
    ptx::wgmma_wait<0>();
  }
  // The assembler gives up pipelining where scores are in flight from one round to the next.
  auto step = [&](auto more, int block) {
    const int accumulate = block != tile.first;
    const uint32_t tile_s = ring.base + Config::kOffsetS + (block & 1) * TileS::kBytes;
    uint32_t p[kQueries / 16][4], d_s[kQueries / 16][4];
    if constexpr (!Config::kAhead) issue_scores();
    ptx::mbarrier_wait(ring.d_o_full(), ring.phase);
    ptx::wgmma_fence();
    issue_transposed<Config>(d_p, rows_v, ring.d_o());
    if constexpr (!Config::kAhead) ptx::wgmma_wait<1>();
    ptx::wgmma_pin(s);
    if (needs_mask<Config>(first_key, block, args.seq)) {
      mask_transposed<Config>(s, first_key + warp * 16 + lane / 4,
                              block * kQueries + 2 * (lane % 4), args.seq);
    }
    transposed_weights(s, p, ring.lse(), factor, lane);
    ptx::wgmma_fence();
    issue_gradient<Config>(d_v, p, ring.d_o(), accumulate);
    ptx::wgmma_wait<1>();
    ptx::wgmma_pin(d_p);
    transposed_score_gradients(d_s, s, d_p, ring.delta(), lane);
#pragma unroll
    for (int step = 0; step < kQueries / 16; ++step) {
      const int chunk = step * 16 / TileS::kColumns, octet = step * 2 % (TileS::kColumns / 8);
      ptx::stmatrix_x4(tile_s + chunk * TileS::kChunkBytes +
                           TileS::octet(row + (lane & 15), octet + (lane >> 4)),
                       d_s[step][0], d_s[step][1], d_s[step][2], d_s[step][3]);
    }
    ptx::fence_proxy_async();
    ptx::wgmma_fence();
    issue_gradient<Config>(d_k, d_s, ring.q(), accumulate);
    ptx::wgmma_wait<1>();  // dV, whose weights need not be kept any longer
    ptx::wgmma_pin(d_v);
    // dS of both consumers is written, and the last but one block's is read.
    ptx::named_barrier_sync(1, 256);
    ptx::wgmma_fence();
    issue_d_q<Config, kColumns>(d_q, TileS::mn_major(tile_s, kSplits ? Consumer : 0), columns_k);
    const uint32_t empty = ring.empty();
    ring.advance();
    if constexpr (Config::kAhead && decltype(more)::value) {
      issue_scores();
      ptx::wgmma_wait<1>();
    } else {
      ptx::wgmma_wait<0>();
    }
    ptx::wgmma_pin(d_q);
    ptx::wgmma_pin(d_k);
    if (lane == 0) ptx::mbarrier_arrive(empty);
    const int64_t first = padded_row + block * kQueries;
    float* sums = args.workspace + offsets.d_q + first * Config::kHeadDim + sum_of_warp;
    add_d_q<kColumns>(d_q, staging, sums, lane);
    if constexpr (Config::kAhead && decltype(more)::value) ptx::wgmma_wait<0>();
  };
  int block = tile.first;
  for (; block + 1 < tile.blocks; ++block) step(std::true_type{}, block);
  step(std::false_type{}, block);

  ptx::named_barrier_sync(1, 256);  // K and V are read; their places take the results
  store_key_gradients<Config>(d_k, d_v, ring.base, tile_v, map_d_k, map_d_v, args, tile, row, lane);
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
    start_backward_ring(ring, Config::kConsumerWarps);
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

// dQ = scale * sums, rounded; one CTA of 256 threads a block of kSumRows. Knows the register order
// of add_d_q.
template <typename Config>
__global__ void __launch_bounds__(256)
    attention_backward_finish(__nv_bfloat16* d_q, const AttentionBackwardArguments args) {
  constexpr int kHeadDim = Config::kHeadDim;
  const BackwardWorkspace offsets(args.heads, args.seq, kHeadDim, true);
  const int blocks = backward_padded(args.seq) / kSumRows;
  const int head = blockIdx.x / blocks, block = blockIdx.x - head * blocks;
  const float4* sums = reinterpret_cast<const float4*>(args.workspace + offsets.d_q) +
                       static_cast<int64_t>(blockIdx.x) * kSumRows * kHeadDim / 4;
  for (int i = threadIdx.x; i < kSumRows * kHeadDim / 4; i += 256) {
    constexpr int kFirst = kSumRows * Config::kColumns0 / 4;
    const bool second = i >= kFirst;
    const int columns = second ? Config::kColumns1 : Config::kColumns0;
    const int within = second ? i - kFirst : i;
    const int warp = within / (4 * columns), rest = within - warp * 4 * columns;
    const int lane = rest % 32;
    const int column = (second ? Config::kColumns0 : 0) + rest / 32 * 8 + 2 * (lane % 4);
    const int query = block * kSumRows + warp * 16 + lane / 4;
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
