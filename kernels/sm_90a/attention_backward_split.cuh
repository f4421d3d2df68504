#pragma once
// The gradient of attention for Hopper, the second way: one kernel for dK and dV, another for dQ.
// Same tensors as attention_backward.cuh, formulas in attention_backward_parts.cuh. Device code.
//
// Scores are computed twice, seven products instead of five; in return nothing is summed in memory,
// no dS goes through shared memory, consumers never wait for each other, and two runs give the same
// bits.
//
// Both kernels: one thread of warpgroup 0 copies with TMA, every other warpgroup owns 64 rows and
// keeps its results in accumulators. Each issues the next block's two products of scores behind
// this block's last gradient product, so that the tensor cores have work while weights are
// computed.
//
// Keys: rows are keys; blocks of queries go by; S^T = K Q^T (attention_backward_parts.cuh).
// Queries: rows are queries; blocks of keys go by; S = Q K^T, and dS in registers is the A operand
// of dQ = dS K. LSE and delta of a row stay in registers.

#include <type_traits>

#include "attention_backward_parts.cuh"
#include "attention_forward.cuh"

namespace ptxbench::sm90 {

// Registers of a consumer's and the producer's threads.
template <int Consumers>
struct SplitRegisters {
  static constexpr int kConsumer = Consumers == 2 ? 240 : 160;
  static constexpr int kProducer = Consumers == 2 ? 24 : 32;
};

template <int HeadDim, int Queries, int Consumers, int Stages, bool Causal>
struct BackwardKeysConfig {
  static constexpr int kHeadDim = HeadDim, kStages = Stages, kConsumers = Consumers;
  static constexpr bool kCausal = Causal;
  static constexpr int kQueries = Queries, kKeys = 64 * Consumers;
  static constexpr int kThreads = 128 * (Consumers + 1);
  using TileQ = HeadTile<HeadDim, kQueries>;
  using TileKV = HeadTile<HeadDim, kKeys>;
  static constexpr int kRowStats = kQueries * 4;
  static constexpr int kOffsetV = TileKV::kBytes;
  static constexpr int kOffsetQ = kOffsetV + TileKV::kBytes;
  static constexpr int kOffsetDO = kOffsetQ + Stages * TileQ::kBytes;
  static constexpr int kOffsetStats = kOffsetDO + Stages * TileQ::kBytes;
  static constexpr int kOffsetBarriers = kOffsetStats + 2 * Stages * kRowStats;
  static constexpr int kSharedBytes = 1024 + kOffsetBarriers + 8 * (1 + 3 * Stages);
  static_assert(kSharedBytes <= 232448, "more shared memory than a Hopper CTA has");
};

template <typename Config>
__device__ __forceinline__ void backward_consume_keys(BackwardRing<Config> ring,
                                                      const CUtensorMap* map_d_k,
                                                      const CUtensorMap* map_d_v,
                                                      const AttentionBackwardArguments& args,
                                                      const BackwardTile& tile) {
  constexpr int kQueries = Config::kQueries;
  using TileKV = typename Config::TileKV;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const int consumer = threadIdx.x / 128 - 1;
  const int first_key = tile.key_block * Config::kKeys + consumer * 64;
  const float factor = args.scale * 1.44269504088896340736f;
  const uint32_t tile_v = ring.base + Config::kOffsetV;
  const uint64_t rows_k = TileKV::k_major(ring.base, consumer * 64);
  const uint64_t rows_v = TileKV::k_major(tile_v, consumer * 64);
  float d_k[Config::kHeadDim / 2], d_v[Config::kHeadDim / 2];
  float s[kQueries / 2], d_p[kQueries / 2];
  uint32_t p[kQueries / 16][4], d_s[kQueries / 16][4];
  auto issue_s = [&] {
    ptx::mbarrier_wait(ring.q_full(), ring.phase);
    ptx::wgmma_fence();
    issue_transposed<Config>(s, rows_k, ring.q());
  };
  clear(d_k), clear(d_v), clear(s), clear(d_p);
  ptx::mbarrier_wait(ring.kv_full(), 0);
  issue_s();
  ptx::wgmma_wait<0>();
  // The assembler gives up pipelining where scores are in flight from one round to the next.
  auto step = [&](auto more, int block) {
    const int accumulate = block != tile.first;
    ptx::wgmma_pin(s);
    ptx::mbarrier_wait(ring.d_o_full(), ring.phase);
    ptx::wgmma_fence();
    issue_transposed<Config>(d_p, rows_v, ring.d_o());
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
    ptx::wgmma_fence();
    issue_gradient<Config>(d_k, d_s, ring.q(), accumulate);
    const uint32_t empty = ring.empty();
    ring.advance();
    if constexpr (decltype(more)::value) {
      issue_s();
      ptx::wgmma_wait<1>();
      ptx::wgmma_pin(d_k);
      ptx::wgmma_pin(d_v);
      if (lane == 0) ptx::mbarrier_arrive(empty);
    }
    ptx::wgmma_wait<0>();
  };
  int block = tile.first;
  for (; block + 1 < tile.blocks; ++block) step(std::true_type{}, block);
  step(std::false_type{}, block);
  ptx::wgmma_pin(d_k);
  ptx::wgmma_pin(d_v);
  // All four warps' products have read their rows of K and V before one of them writes there.
  ptx::named_barrier_sync(1 + consumer, 128);
  store_key_gradients<Config>(d_k, d_v, ring.base, tile_v, map_d_k, map_d_v, args, tile,
                              consumer * 64 + warp * 16, lane);
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    attention_backward_keys_kernel(const __grid_constant__ CUtensorMap map_q,
                                   const __grid_constant__ CUtensorMap map_k,
                                   const __grid_constant__ CUtensorMap map_v,
                                   const __grid_constant__ CUtensorMap map_d_o,
                                   const __grid_constant__ CUtensorMap map_d_k,
                                   const __grid_constant__ CUtensorMap map_d_v,
                                   const AttentionBackwardArguments args) {
  extern __shared__ uint8_t dynamic[];
  const BackwardRing<Config> ring{(ptx::smem_address(dynamic) + 1023) & ~1023u};
  const BackwardTile tile = BackwardTile::of<Config>(args);
  if (threadIdx.x == 0) start_backward_ring(ring, 4 * Config::kConsumers);
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::register_decrease<SplitRegisters<Config::kConsumers>::kProducer>();
    if (threadIdx.x < 32) {
      if (ptx::elect_one()) backward_produce(ring, &map_q, &map_k, &map_v, &map_d_o, args, tile);
      __syncwarp();
    }
  } else {
    ptx::register_increase<SplitRegisters<Config::kConsumers>::kConsumer>();
    backward_consume_keys<Config>(ring, &map_d_k, &map_d_v, args, tile);
  }
}

template <int HeadDim, int BlockN, int Consumers, int Stages, bool Causal>
struct BackwardQueriesConfig {
  static constexpr int kHeadDim = HeadDim, kBlockN = BlockN, kStages = Stages;
  static constexpr int kConsumers = Consumers, kThreads = 128 * (Consumers + 1);
  static constexpr bool kCausal = Causal;
  static constexpr int kBlockM = 64 * Consumers;
  using TileQ = HeadTile<HeadDim, kBlockM>;
  using TileKV = HeadTile<HeadDim, BlockN>;
  static constexpr int kOffsetDO = TileQ::kBytes;
  static constexpr int kOffsetK = 2 * TileQ::kBytes;
  static constexpr int kOffsetV = kOffsetK + Stages * TileKV::kBytes;
  static constexpr int kOffsetBarriers = kOffsetV + Stages * TileKV::kBytes;
  static constexpr int kSharedBytes = 1024 + kOffsetBarriers + 8 * (1 + 3 * Stages);
  static_assert(kSharedBytes <= 232448, "more shared memory than a Hopper CTA has");
};

// Where the ring of K and V blocks stands. A stage has K and V, `full` one after the other.
template <typename Config>
struct QueriesRing {
  uint32_t base;
  int stage = 0;
  uint32_t phase = 0;

  __device__ uint32_t q_full() const { return base + Config::kOffsetBarriers; }
  __device__ uint32_t k_full() const { return q_full() + 8 + stage * 24; }
  __device__ uint32_t v_full() const { return k_full() + 8; }
  __device__ uint32_t empty() const { return k_full() + 16; }
  __device__ uint32_t k() const { return base + Config::kOffsetK + stage * Config::TileKV::kBytes; }
  __device__ uint32_t v() const { return base + Config::kOffsetV + stage * Config::TileKV::kBytes; }
  __device__ void advance() {
    if (++stage == Config::kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// What a CTA works on: the longest tiles of all heads come first.
struct QueriesTile {
  int head, tile, blocks;

  template <typename Config>
  __device__ static QueriesTile of(const AttentionBackwardArguments& args) {
    const int tiles = (args.seq + Config::kBlockM - 1) / Config::kBlockM;
    QueriesTile result;
    result.head = blockIdx.x % args.heads;
    result.tile = tiles - 1 - static_cast<int>(blockIdx.x) / args.heads;
    const int reach =
        Config::kCausal ? min(args.seq, (result.tile + 1) * Config::kBlockM) : args.seq;
    result.blocks = (reach + Config::kBlockN - 1) / Config::kBlockN;
    return result;
  }
};

template <typename Config>
__device__ __forceinline__ void backward_produce_keys(
    QueriesRing<Config> ring, const CUtensorMap* map_q, const CUtensorMap* map_k,
    const CUtensorMap* map_v, const CUtensorMap* map_d_o, const QueriesTile& tile) {
  using TileQ = typename Config::TileQ;
  using TileKV = typename Config::TileKV;
  ptx::mbarrier_arrive_expect_tx(ring.q_full(), 2 * TileQ::kBytes);
  TileQ::load(ring.base, map_q, ring.q_full(), tile.tile * Config::kBlockM, tile.head);
  TileQ::load(ring.base + Config::kOffsetDO, map_d_o, ring.q_full(), tile.tile * Config::kBlockM,
              tile.head);
  for (int block = 0; block < tile.blocks; ++block) {
    ptx::mbarrier_wait(ring.empty(), ring.phase ^ 1);
    ptx::mbarrier_arrive_expect_tx(ring.k_full(), TileKV::kBytes);
    TileKV::load(ring.k(), map_k, ring.k_full(), block * Config::kBlockN, tile.head);
    ptx::mbarrier_arrive_expect_tx(ring.v_full(), TileKV::kBytes);
    TileKV::load(ring.v(), map_v, ring.v_full(), block * Config::kBlockN, tile.head);
    ring.advance();
  }
}

// Scores become dS in bf16, the A operand of dQ. `lse` (base 2) and `delta` of this thread's rows.
template <int Count>
__device__ __forceinline__ void score_gradients(uint32_t (&d_s)[Count / 8][4],
                                                const float (&s)[Count], const float (&d_p)[Count],
                                                const float (&lse)[2], const float (&delta)[2],
                                                float factor) {
#pragma unroll
  for (int i = 0; i < Count; i += 2) {
    const int row = i >> 1 & 1;
    const float even = ptx::exp2_approx(fmaf(s[i], factor, -lse[row]));
    const float odd = ptx::exp2_approx(fmaf(s[i + 1], factor, -lse[row]));
    d_s[i / 8][i / 2 % 4] =
        ptx::pack_bf16(even * (d_p[i] - delta[row]), odd * (d_p[i + 1] - delta[row]));
  }
}

template <typename Config>
__device__ __forceinline__ void backward_consume_queries(QueriesRing<Config> ring,
                                                         const CUtensorMap* map_d_q,
                                                         const AttentionBackwardArguments& args,
                                                         const QueriesTile& tile) {
  constexpr int kBlockN = Config::kBlockN;
  using TileQ = typename Config::TileQ;
  using TileKV = typename Config::TileKV;
  const int lane = threadIdx.x % 32, consumer = threadIdx.x / 128 - 1;
  const int row_in_tile = consumer * 64 + threadIdx.x / 32 % 4 * 16;
  const int row0 = tile.tile * Config::kBlockM + row_in_tile;
  const float factor = args.scale * 1.44269504088896340736f;
  const uint64_t rows_q = TileQ::k_major(ring.base, consumer * 64);
  const uint64_t rows_d_o = TileQ::k_major(ring.base + Config::kOffsetDO, consumer * 64);
  const BackwardWorkspace offsets(args.heads, args.seq, Config::kHeadDim, false);
  float lse[2], delta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = min(row0 + lane / 4 + 8 * half, backward_padded(args.seq) - 1);
    const int64_t at = static_cast<int64_t>(tile.head) * backward_padded(args.seq) + row;
    lse[half] = args.workspace[offsets.lse + at];
    delta[half] = args.workspace[offsets.delta + at];
  }
  float d_q[Config::kHeadDim / 2], s[kBlockN / 2], d_p[kBlockN / 2];
  uint32_t d_s[kBlockN / 16][4];
  auto issue_rows = [](float(&d)[kBlockN / 2], uint64_t rows, uint32_t block) {
    const uint64_t b = TileKV::k_major(block);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < TileKV::kSteps; ++step) {
      ptx::Wgmma<kBlockN>::template ss_bf16<0, 0>(d, rows + TileQ::k_step(step),
                                                  b + TileKV::k_step(step), step);
    }
  };
  auto issue = [&](const QueriesRing<Config>& at) {
    ptx::mbarrier_wait(at.k_full(), at.phase);
    issue_rows(s, rows_q, at.k());
    ptx::mbarrier_wait(at.v_full(), at.phase);
    issue_rows(d_p, rows_d_o, at.v());
    ptx::wgmma_commit();
  };
  clear(d_q), clear(s), clear(d_p);
  ptx::mbarrier_wait(ring.q_full(), 0);
  issue(ring);
  auto step = [&](auto more, int block) {
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(s);
    ptx::wgmma_pin(d_p);
    const int last = (block + 1) * kBlockN - 1;
    if (last >= args.seq || (Config::kCausal && last > row0)) {
      mask_scores<Config>(s, block * kBlockN, row0 + lane / 4, args.seq);
    }
    score_gradients(d_s, s, d_p, lse, delta, factor);
    const uint64_t k = TileKV::mn_major(ring.k());
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kBlockN / 16; ++step) {
      ptx::Wgmma<Config::kHeadDim>::template rs_bf16<1>(d_q, d_s[step], k + TileKV::mn_step(step),
                                                        block | step);
    }
    ptx::wgmma_commit();
    const uint32_t empty = ring.empty();
    ring.advance();
    if constexpr (decltype(more)::value) {
      issue(ring);
      ptx::wgmma_wait<1>();
    } else {
      ptx::wgmma_wait<0>();
    }
    ptx::wgmma_pin(d_q);
    if (lane == 0) ptx::mbarrier_arrive(empty);
  };
  int block = 0;
  for (; block + 1 < tile.blocks; ++block) step(std::true_type{}, block);
  step(std::false_type{}, block);
  // All four warps' products have read Q before one of them writes there.
  ptx::named_barrier_sync(1 + consumer, 128);
  const float scales[2] = {args.scale, args.scale};
  stage_rows<TileQ>(d_q, scales, ring.base, row_in_tile, lane);
  ptx::fence_proxy_async();
  __syncwarp();
  if (lane == 0 && row0 < args.seq) {
    for (int chunk = 0; chunk < TileQ::kChunks; ++chunk) {
      ptx::tma_store_3d(map_d_q,
                        ring.base + chunk * TileQ::kChunkBytes + row_in_tile * TileQ::kRowBytes,
                        chunk * TileQ::kColumns, row0, tile.head);
    }
    ptx::bulk_commit();
    ptx::bulk_wait<0>();
  }
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    attention_backward_queries_kernel(const __grid_constant__ CUtensorMap map_q,
                                      const __grid_constant__ CUtensorMap map_k,
                                      const __grid_constant__ CUtensorMap map_v,
                                      const __grid_constant__ CUtensorMap map_d_o,
                                      const __grid_constant__ CUtensorMap map_d_q,
                                      const AttentionBackwardArguments args) {
  extern __shared__ uint8_t dynamic[];
  const QueriesRing<Config> ring{(ptx::smem_address(dynamic) + 1023) & ~1023u};
  const QueriesTile tile = QueriesTile::of<Config>(args);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(ring.q_full(), 1);
    QueriesRing<Config> each = ring;
    for (int stage = 0; stage < Config::kStages; ++stage, each.advance()) {
      ptx::mbarrier_init(each.k_full(), 1);
      ptx::mbarrier_init(each.v_full(), 1);
      ptx::mbarrier_init(each.empty(), 4 * Config::kConsumers);
    }
    ptx::fence_mbarrier_init();
    ptx::fence_proxy_async();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::register_decrease<SplitRegisters<Config::kConsumers>::kProducer>();
    if (threadIdx.x < 32) {
      if (ptx::elect_one()) backward_produce_keys(ring, &map_q, &map_k, &map_v, &map_d_o, tile);
      __syncwarp();
    }
  } else {
    ptx::register_increase<SplitRegisters<Config::kConsumers>::kConsumer>();
    backward_consume_queries(ring, &map_d_q, args, tile);
  }
}

}  // namespace ptxbench::sm90
