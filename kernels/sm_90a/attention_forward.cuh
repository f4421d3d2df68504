#pragma once
// O = softmax(scale * Q K^T) V and its log-sum-exp, for Hopper (sm_90a). Q, K, V, O are bf16
// [heads, seq, HeadDim] (batch and head in one index), LSE is fp32 [heads, seq], natural log.
// Device code.
//
// Problem: with head dimension 128 the tensor cores need 8 cycles for what one exponential costs
// the special-function unit 1/16 of a cycle a lane, so exponentials take half as long as the
// products: they must run beside them, never between them.
//
// Method (the online softmax; overlap as in FlashAttention-3, arXiv:2407.08608). Persistent CTAs.
// One thread of warpgroup 0 streams Q tiles and a ring of K and V tiles with TMA; every other
// warpgroup owns 64 rows of Q. For each block of keys a consumer issues S = Q K^T of the next block
// and O += P V of the last one together, and computes the softmax of the next while P V still
// runs. P never leaves the registers: the accumulator layout of S is the A operand of P V.
// Consumers pass a token around (named barriers) that allows them to issue products, so that one
// computes exponentials while the other's products run.
//
// O is only rescaled when a maximum has grown by more than a factor of 2^8 (as FlashAttention-4
// does).
//
// Blocks are walked from the last to the first: those that need a mask (end of the sequence, the
// diagonal) come first. A causal CTA takes query tiles in pairs, the longest with the shortest, so
// that all have the same work.

#include <ptxbench/ptx.cuh>

#include "head_tile.cuh"

namespace ptxbench::sm90 {

struct AttentionForwardArguments {
  float* lse;  // [heads, seq]
  int heads;   // batch * heads
  int seq;
  float scale;  // of Q K^T
};

// Consumers: warpgroups of 64 query rows. Stages: depth of the rings of K and of V.
// Token: whether consumers take turns in issuing products.
template <int HeadDim, int BlockN, int Consumers, int Stages, bool Causal, bool Token = true>
struct AttentionForwardConfig {
  static constexpr bool kToken = Token;
  static constexpr int kHeadDim = HeadDim, kBlockN = BlockN, kConsumers = Consumers;
  static constexpr int kStages = Stages;
  static constexpr bool kCausal = Causal;
  static constexpr int kBlockM = 64 * Consumers;
  static constexpr int kThreads = 128 * (Consumers + 1);
  static constexpr int kConsumerRegisters = Consumers == 2 ? 240 : 160;
  static constexpr int kProducerRegisters = Consumers == 2 ? 24 : 32;
  using TileQ = HeadTile<HeadDim, kBlockM>;
  using TileKV = HeadTile<HeadDim, BlockN>;
  static constexpr int kOffsetK = TileQ::kBytes;
  static constexpr int kOffsetV = kOffsetK + Stages * TileKV::kBytes;
  static constexpr int kEndKV = kOffsetV + Stages * TileKV::kBytes;
  static constexpr int kBarrierBytes = 8 * (2 + 4 * Stages);
  static constexpr int kMaxShared = 232448;
  // O is staged where Q was if there is no room beside it; then the next Q waits for the store.
  static constexpr bool kSharesQ = 1024 + kEndKV + TileQ::kBytes + kBarrierBytes > kMaxShared;
  static constexpr int kOffsetO = kSharesQ ? 0 : kEndKV;
  static constexpr int kOffsetBarriers = kEndKV + (kSharesQ ? 0 : TileQ::kBytes);
  static constexpr int kSharedBytes = 1024 + kOffsetBarriers + kBarrierBytes;
  static_assert(kSharedBytes <= kMaxShared, "more shared memory than a Hopper CTA has");
};

// Addresses of one of the two rings (K or V), and where in it this thread is.
template <typename Config>
struct AttentionRing {
  uint32_t tiles, barriers;
  int stage = 0;
  uint32_t phase = 0;

  __device__ uint32_t tile() const { return tiles + stage * Config::TileKV::kBytes; }
  __device__ uint32_t full() const { return barriers + stage * 8; }
  __device__ uint32_t empty() const { return barriers + (Config::kStages + stage) * 8; }
  __device__ void advance() {
    if (++stage == Config::kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

template <typename Config>
struct AttentionShared {
  uint32_t base;

  __device__ uint32_t q_full() const { return base + Config::kOffsetBarriers; }
  __device__ uint32_t q_empty() const { return q_full() + 8; }
  __device__ AttentionRing<Config> k() const {
    return {base + Config::kOffsetK, base + Config::kOffsetBarriers + 16};
  }
  __device__ AttentionRing<Config> v() const {
    return {base + Config::kOffsetV, base + Config::kOffsetBarriers + 16 + 2 * Config::kStages * 8};
  }
};

// Calls visit(head, query tile, number of key blocks) for each tile of this CTA.
template <typename Config, typename Visit>
__device__ __forceinline__ void visit_query_tiles(const AttentionForwardArguments& args,
                                                  Visit visit) {
  const int tiles = (args.seq + Config::kBlockM - 1) / Config::kBlockM;
  const int blocks = (args.seq + Config::kBlockN - 1) / Config::kBlockN;
  const int units = Config::kCausal ? (tiles + 1) / 2 : tiles;  // of one head
  for (int unit = blockIdx.x; unit < units * args.heads; unit += gridDim.x) {
    const int head = unit / units, first = unit - head * units;
    if constexpr (!Config::kCausal) {
      visit(head, first, blocks);
    } else {
      for (int half = 0; half < 2; ++half) {
        const int tile = half == 0 ? tiles - 1 - first : first;
        if (half == 1 && tile >= tiles - 1 - first) break;  // the middle tile has no partner
        const int reach = ((tile + 1) * Config::kBlockM + Config::kBlockN - 1) / Config::kBlockN;
        visit(head, tile, min(blocks, reach));
      }
    }
  }
}

template <typename Config>
__device__ __forceinline__ void attention_produce(const AttentionShared<Config>& shared,
                                                  const CUtensorMap* map_q,
                                                  const CUtensorMap* map_k,
                                                  const CUtensorMap* map_v,
                                                  const AttentionForwardArguments& args) {
  using TileQ = typename Config::TileQ;
  using TileKV = typename Config::TileKV;
  auto k = shared.k(), v = shared.v();
  uint32_t q_phase = 0;
  auto load = [](auto& ring, const CUtensorMap* map, int block, int head) {
    ptx::mbarrier_wait(ring.empty(), ring.phase ^ 1);
    ptx::mbarrier_arrive_expect_tx(ring.full(), TileKV::kBytes);
    TileKV::load(ring.tile(), map, ring.full(), block * Config::kBlockN, head);
    ring.advance();
  };
  visit_query_tiles<Config>(args, [&](int head, int tile, int blocks) {
    ptx::mbarrier_wait(shared.q_empty(), q_phase ^ 1);
    q_phase ^= 1;
    ptx::mbarrier_arrive_expect_tx(shared.q_full(), TileQ::kBytes);
    TileQ::load(shared.base, map_q, shared.q_full(), tile * Config::kBlockM, head);
    load(k, map_k, blocks - 1, head);
    for (int block = blocks - 1; block > 0; --block) {
      load(k, map_k, block - 1, head);
      load(v, map_v, block, head);
    }
    load(v, map_v, 0, head);
  });
}

// Running softmax of this thread's two rows. Weights are exp2(factor * s - shift); the shift is a
// recent maximum, and `sum` is this lane's share of the row's weights.
struct OnlineSoftmax {
  float shift[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};

  // How far weights may exceed 1, as a power of two, before everything is brought to a new shift:
  // exact either way, and a bf16 weight of 2^8 is as precise as one of 1. Most blocks then need no
  // rescaling of O.
  static constexpr float kSlack = 8;

  // Turns scores into weights. True if earlier results must be multiplied by `rescale` (the same
  // answer for the whole warp). A row without any score yet has shift 0.
  template <int Count>
  __device__ __forceinline__ bool update(float (&s)[Count], float factor, float (&rescale)[2]) {
    float top[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      top[row] = s[2 * row];
#pragma unroll
      for (int i = 0; i < Count; i += 4) {
        top[row] = fmaxf(top[row], fmaxf(s[i + 2 * row], s[i + 2 * row + 1]));
      }
      top[row] = fmaxf(top[row], __shfl_xor_sync(~0u, top[row], 1));
      top[row] = fmaxf(top[row], __shfl_xor_sync(~0u, top[row], 2));
      top[row] *= factor;
    }
    const bool moves = __any_sync(~0u, top[0] > shift[0] + kSlack || top[1] > shift[1] + kSlack);
    if (moves) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const float to = fmaxf(shift[row], top[row]);
        rescale[row] = to == -INFINITY ? 1.f : ptx::exp2_approx(shift[row] - to);
        shift[row] = to;
        sum[row] *= rescale[row];
      }
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float by = shift[row] == -INFINITY ? 0.f : shift[row];
      float added = 0;
#pragma unroll
      for (int i = 0; i < Count; i += 4) {
        float &even = s[i + 2 * row], &odd = s[i + 2 * row + 1];
        even = ptx::exp2_approx(fmaf(even, factor, -by));
        odd = ptx::exp2_approx(fmaf(odd, factor, -by));
        added += even + odd;
      }
      sum[row] += added;
    }
    return moves;
  }
};

// Scores that do not count become -infinity: columns past `seq`, and past the row if causal.
template <typename Config>
__device__ __forceinline__ void mask_scores(float (&s)[Config::kBlockN / 2], int column0, int row,
                                            int seq) {
  const int column = column0 + 2 * (threadIdx.x % 4);
  const int upper = Config::kCausal ? min(row, seq - 1) : seq - 1;
  const int lower = Config::kCausal ? min(row + 8, seq - 1) : seq - 1;
#pragma unroll
  for (int i = 0; i < Config::kBlockN / 2; ++i) {
    if (column + 8 * (i >> 2) + (i & 1) > ((i >> 1) & 1 ? lower : upper)) s[i] = -INFINITY;
  }
}

// The probabilities as the A operand of P V: kBlockN / 16 steps of four registers.
template <int BlockN>
__device__ __forceinline__ void pack_probabilities(const float (&s)[BlockN / 2],
                                                   uint32_t (&p)[BlockN / 16][4]) {
#pragma unroll
  for (int i = 0; i < BlockN / 4; ++i) p[i / 4][i % 4] = ptx::pack_bf16(s[2 * i], s[2 * i + 1]);
}

// Who may issue products. Consumer i waits on barrier 1 + i, for itself and its predecessor.
template <int Consumers, bool Enabled>
struct IssueToken {
  int consumer;
  __device__ void start() const {
    if (Enabled && consumer == Consumers - 1) ptx::named_barrier_arrive(1, 256);
  }
  __device__ void take() const {
    if constexpr (Enabled) ptx::named_barrier_sync(1 + consumer, 256);
  }
  __device__ void pass() const {
    if constexpr (Enabled) {
      ptx::named_barrier_arrive(1 + (consumer == Consumers - 1 ? 0 : consumer + 1), 256);
    }
  }
  __device__ void finish() const {
    if (consumer == 0) take();  // the last token, so that no barrier is left half full
  }
};

template <typename Config>
__device__ __forceinline__ void issue_scores(float (&s)[Config::kBlockN / 2], uint64_t q,
                                             uint32_t tile_k) {
  using TileKV = typename Config::TileKV;
  const uint64_t k = TileKV::k_major(tile_k);
#pragma unroll
  for (int step = 0; step < TileKV::kSteps; ++step) {
    ptx::Wgmma<Config::kBlockN>::template ss_bf16<0, 0>(s, q + Config::TileQ::k_step(step),
                                                        k + TileKV::k_step(step), step);
  }
  ptx::wgmma_commit();
}

template <typename Config>
__device__ __forceinline__ void issue_output(float (&o)[Config::kHeadDim / 2],
                                             const uint32_t (&p)[Config::kBlockN / 16][4],
                                             uint32_t tile_v, int accumulate) {
  using TileKV = typename Config::TileKV;
  const uint64_t v = TileKV::mn_major(tile_v);
#pragma unroll
  for (int step = 0; step < Config::kBlockN / 16; ++step) {
    ptx::Wgmma<Config::kHeadDim>::template rs_bf16<1>(o, p[step], v + TileKV::mn_step(step),
                                                      accumulate | step);
  }
  ptx::wgmma_commit();
}

// Divides by the row sums, stores 16 rows of O through shared memory and the rows' LSE.
template <typename Config>
__device__ __forceinline__ void attention_store(const float (&o)[Config::kHeadDim / 2],
                                                OnlineSoftmax& softmax, uint32_t staging,
                                                const CUtensorMap* map_o,
                                                const AttentionForwardArguments& args, int head,
                                                int row, int row_in_tile, int lane) {
  using TileQ = typename Config::TileQ;
  float inverse[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = softmax.sum[half];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    inverse[half] = 1.f / sum;
    const int r = row + lane / 4 + 8 * half;
    if (lane % 4 == 0 && r < args.seq) {
      args.lse[static_cast<int64_t>(head) * args.seq + r] =
          softmax.shift[half] * 0.693147180559945309417f + logf(sum);
    }
  }
  if constexpr (!Config::kSharesQ) {
    if (lane == 0) ptx::bulk_wait_read<0>();  // the last tile's store has read the staging rows
    __syncwarp();
  }
  stage_rows<TileQ>(o, inverse, staging, row_in_tile, lane);
  ptx::fence_proxy_async();
  __syncwarp();
  if (lane == 0) {
    if (row < args.seq) {
      for (int chunk = 0; chunk < TileQ::kChunks; ++chunk) {
        ptx::tma_store_3d(map_o,
                          staging + chunk * TileQ::kChunkBytes + row_in_tile * TileQ::kRowBytes,
                          chunk * TileQ::kColumns, row, head);
      }
    }
    ptx::bulk_commit();
    if constexpr (Config::kSharesQ) ptx::bulk_wait_read<0>();
  }
}

template <typename Config>
__device__ __forceinline__ void attention_consume(const AttentionShared<Config>& shared,
                                                  const CUtensorMap* map_o,
                                                  const AttentionForwardArguments& args) {
  constexpr int kBlockN = Config::kBlockN;
  const int lane = threadIdx.x % 32;
  const int consumer = threadIdx.x / 128 - 1;
  const int row_of_warp = consumer * 64 + threadIdx.x / 32 % 4 * 16;
  const float factor = args.scale * 1.44269504088896340736f;
  const uint64_t q = Config::TileQ::k_major(shared.base, consumer * 64);
  const IssueToken<Config::kConsumers, Config::kToken> token{consumer};
  auto k = shared.k(), v = shared.v();
  uint32_t q_phase = 0;
  auto release = [lane](uint32_t barrier) {
    if (lane == 0) ptx::mbarrier_arrive(barrier);
  };
  float o[Config::kHeadDim / 2], s[kBlockN / 2];
  uint32_t p[kBlockN / 16][4];
  token.start();

  visit_query_tiles<Config>(args, [&](int head, int tile, int blocks) {
    const int row0 = tile * Config::kBlockM + row_of_warp;
    OnlineSoftmax softmax;
    float rescale[2];
    ptx::mbarrier_wait(shared.q_full(), q_phase);
    q_phase ^= 1;
    ptx::mbarrier_wait(k.full(), k.phase);
    ptx::wgmma_fence();
    issue_scores<Config>(s, q, k.tile());
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(s);
    release(k.empty());
    k.advance();
    mask_scores<Config>(s, (blocks - 1) * kBlockN, row0 + lane / 4, args.seq);
    softmax.update(s, factor, rescale);
    pack_probabilities<kBlockN>(s, p);

    for (int block = blocks - 2; block >= 0; --block) {
      ptx::mbarrier_wait(k.full(), k.phase);
      token.take();
      ptx::wgmma_fence();
      issue_scores<Config>(s, q, k.tile());
      ptx::mbarrier_wait(v.full(), v.phase);
      ptx::wgmma_fence();
      issue_output<Config>(o, p, v.tile(), block != blocks - 2);
      token.pass();
      ptx::wgmma_wait<1>();
      ptx::wgmma_pin(s);
      release(k.empty());
      k.advance();
      if (Config::kCausal && (block + 1) * kBlockN > tile * Config::kBlockM + consumer * 64) {
        mask_scores<Config>(s, block * kBlockN, row0 + lane / 4, args.seq);
      }
      const bool moves = softmax.update(s, factor, rescale);
      ptx::wgmma_wait<0>();
      ptx::wgmma_pin(o);
      release(v.empty());
      v.advance();
      if (moves) {
#pragma unroll
        for (int i = 0; i < Config::kHeadDim / 2; ++i) o[i] *= rescale[i >> 1 & 1];
      }
      pack_probabilities<kBlockN>(s, p);
    }

    if constexpr (!Config::kSharesQ) release(shared.q_empty());
    ptx::mbarrier_wait(v.full(), v.phase);
    ptx::wgmma_fence();
    issue_output<Config>(o, p, v.tile(), blocks > 1);
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(o);
    release(v.empty());
    v.advance();
    if constexpr (Config::kSharesQ) {
      // All four warps' products have read Q before one of them writes there.
      ptx::named_barrier_sync(1 + Config::kConsumers + consumer, 128);
    }
    attention_store<Config>(o, softmax, shared.base + Config::kOffsetO, map_o, args, head, row0,
                            row_of_warp, lane);
    if constexpr (Config::kSharesQ) release(shared.q_empty());
  });
  token.finish();
  if (lane == 0) ptx::bulk_wait<0>();
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    attention_forward_kernel(const __grid_constant__ CUtensorMap map_q,
                             const __grid_constant__ CUtensorMap map_k,
                             const __grid_constant__ CUtensorMap map_v,
                             const __grid_constant__ CUtensorMap map_o,
                             const AttentionForwardArguments args) {
  extern __shared__ uint8_t dynamic[];
  const AttentionShared<Config> shared{(ptx::smem_address(dynamic) + 1023) & ~1023u};
  if (threadIdx.x == 0) {
    for (const CUtensorMap* map : {&map_q, &map_k, &map_v, &map_o}) {
      ptx::tma_prefetch_descriptor(map);
    }
    constexpr int kWarps = 4 * Config::kConsumers;
    ptx::mbarrier_init(shared.q_full(), 1);
    ptx::mbarrier_init(shared.q_empty(), kWarps);
    for (auto ring : {shared.k(), shared.v()}) {
      for (int stage = 0; stage < Config::kStages; ++stage, ring.advance()) {
        ptx::mbarrier_init(ring.full(), 1);
        ptx::mbarrier_init(ring.empty(), kWarps);
      }
    }
    ptx::fence_mbarrier_init();
    ptx::fence_proxy_async();
  }
  __syncthreads();

  if (threadIdx.x < 128) {
    ptx::register_decrease<Config::kProducerRegisters>();
    if (threadIdx.x < 32) {
      if (ptx::elect_one()) attention_produce<Config>(shared, &map_q, &map_k, &map_v, args);
      __syncwarp();
    }
  } else {
    ptx::register_increase<Config::kConsumerRegisters>();
    attention_consume<Config>(shared, &map_o, args);
  }
}

}  // namespace ptxbench::sm90
