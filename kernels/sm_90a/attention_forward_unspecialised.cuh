#pragma once
// O = softmax(scale * Q K^T) V and its log-sum-exp for Hopper, the second way: no warpgroup is set
// apart for copies. Same tensors as attention_forward.cuh. Device code.
//
// Method: a CTA owns one tile of queries of one head, 64 for each of its warpgroups, which all
// multiply. One thread of the first warpgroup asks TMA for a later block of K and V while its own
// scores are being multiplied, so nobody's registers are cut and no CTA stays for a second tile.
// Within a warpgroup a block is the online softmax of the textbook: scores, the rows' new maximum,
// everything so far brought to it, weights, product with V, one after the other. What a warpgroup
// leaves idle the others fill: three of a CTA, or two in each of two CTAs of an SM.
//
// Blocks are walked from the first to the last. Causal CTAs start with the longest tiles.

#include "attention_forward.cuh"

namespace ptxbench::sm90 {

// Ctas: that share an SM.
template <int HeadDim, int BlockN, int Warpgroups, int Stages, int Ctas, bool Causal>
struct UnspecialisedForwardConfig {
  static constexpr int kHeadDim = HeadDim, kBlockN = BlockN, kStages = Stages, kCtas = Ctas;
  static constexpr bool kCausal = Causal;
  static constexpr bool kSharesQ = true;  // O is staged where Q was
  static constexpr int kBlockM = 64 * Warpgroups, kThreads = 128 * Warpgroups;
  using TileQ = HeadTile<HeadDim, kBlockM>;
  using TileKV = HeadTile<HeadDim, BlockN>;
  static constexpr int kStageBytes = 2 * TileKV::kBytes;
  static constexpr int kOffsetBarriers = TileQ::kBytes + Stages * kStageBytes;
  static constexpr int kSharedBytes = 1024 + kOffsetBarriers + 8 * (1 + 3 * Stages);
  static_assert(Ctas * (kSharedBytes + 1024) <= 233472, "more shared memory than an SM has");
};

// Blocks of K and V, in a ring. A block is `full` twice, K before V, and `empty` once.
template <typename Config>
struct UnspecialisedRing {
  uint32_t base;

  __device__ static int stage(int block) { return block % Config::kStages; }
  __device__ static uint32_t phase(int block) { return block / Config::kStages & 1; }
  __device__ uint32_t q_full() const { return base + Config::kOffsetBarriers; }
  __device__ uint32_t k_full(int block) const { return q_full() + 8 + stage(block) * 24; }
  __device__ uint32_t v_full(int block) const { return k_full(block) + 8; }
  __device__ uint32_t empty(int block) const { return k_full(block) + 16; }
  __device__ uint32_t k(int block) const {
    return base + Config::TileQ::kBytes + stage(block) * Config::kStageBytes;
  }
  __device__ uint32_t v(int block) const { return k(block) + Config::TileKV::kBytes; }

  // By one thread.
  __device__ void load(const CUtensorMap* map_k, const CUtensorMap* map_v, int block,
                       int head) const {
    using Tile = typename Config::TileKV;
    ptx::mbarrier_wait(empty(block), phase(block) ^ 1);
    ptx::mbarrier_arrive_expect_tx(k_full(block), Tile::kBytes);
    Tile::load(k(block), map_k, k_full(block), block * Config::kBlockN, head);
    ptx::mbarrier_arrive_expect_tx(v_full(block), Tile::kBytes);
    Tile::load(v(block), map_v, v_full(block), block * Config::kBlockN, head);
  }
};

// Scores become weights relative to the rows' maximum so far, times 2^Lift; `o` and the sums are
// brought to it.
template <int Lift = 0, int Count, int CountO>
__device__ __forceinline__ void soften_block(float (&s)[Count], float (&o)[CountO],
                                             OnlineSoftmax& softmax, float factor) {
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float top = s[2 * row];
#pragma unroll
    for (int i = 2 * row; i < Count; i += 4) top = fmaxf(top, fmaxf(s[i], s[i + 1]));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
    top = fmaxf(softmax.shift[row], top * factor);
    const float by = ptx::exp2_approx(softmax.shift[row] - top);
    softmax.shift[row] = top;
    float sum = 0;
#pragma unroll
    for (int i = 2 * row; i < Count; i += 4) {
      s[i] = ptx::exp2_approx(fmaf(s[i], factor, Lift - top));
      s[i + 1] = ptx::exp2_approx(fmaf(s[i + 1], factor, Lift - top));
      sum += s[i] + s[i + 1];
    }
    softmax.sum[row] = fmaf(softmax.sum[row], by, sum);
#pragma unroll
    for (int i = 2 * row; i < CountO; i += 4) {
      o[i] *= by;
      o[i + 1] *= by;
    }
  }
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kCtas)
    attention_forward_unspecialised_kernel(const __grid_constant__ CUtensorMap map_q,
                                           const __grid_constant__ CUtensorMap map_k,
                                           const __grid_constant__ CUtensorMap map_v,
                                           const __grid_constant__ CUtensorMap map_o,
                                           const AttentionForwardArguments args) {
  constexpr int kBlockN = Config::kBlockN;
  extern __shared__ uint8_t dynamic[];
  const UnspecialisedRing<Config> ring{(ptx::smem_address(dynamic) + 1023) & ~1023u};
  const int tiles = (args.seq + Config::kBlockM - 1) / Config::kBlockM;
  const int head = blockIdx.x % args.heads, tile = tiles - 1 - blockIdx.x / args.heads;
  const int reach = Config::kCausal ? min(args.seq, (tile + 1) * Config::kBlockM) : args.seq;
  const int blocks = (reach + kBlockN - 1) / kBlockN;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(ring.q_full(), 1);
    for (int stage = 0; stage < Config::kStages; ++stage) {
      ptx::mbarrier_init(ring.k_full(stage), 1);
      ptx::mbarrier_init(ring.v_full(stage), 1);
      ptx::mbarrier_init(ring.empty(stage), Config::kThreads / 32);
    }
    ptx::fence_mbarrier_init();
    ptx::fence_proxy_async();
    ptx::mbarrier_arrive_expect_tx(ring.q_full(), Config::TileQ::kBytes);
    Config::TileQ::load(ring.base, &map_q, ring.q_full(), tile * Config::kBlockM, head);
    for (int block = 0; block < min(Config::kStages - 1, blocks); ++block) {
      ring.load(&map_k, &map_v, block, head);
    }
  }
  __syncthreads();

  const int lane = threadIdx.x % 32, warpgroup = threadIdx.x / 128;
  const int row_in_tile = threadIdx.x / 32 * 16;
  const int row0 = tile * Config::kBlockM + row_in_tile;
  const float factor = args.scale * 1.44269504088896340736f;
  const uint64_t q = Config::TileQ::k_major(ring.base, warpgroup * 64);
  // Finite, so that a block without any key for a row leaves nothing undefined behind.
  OnlineSoftmax softmax{{-1e30f, -1e30f}, {0, 0}};
  float o[Config::kHeadDim / 2], s[kBlockN / 2];
  uint32_t p[kBlockN / 16][4];
#pragma unroll
  for (float& value : o) value = 0;
  ptx::mbarrier_wait(ring.q_full(), 0);
  for (int block = 0; block < blocks; ++block) {
    ptx::mbarrier_wait(ring.k_full(block), ring.phase(block));
    ptx::wgmma_fence();
    issue_scores<Config>(s, q, ring.k(block));
    const int later = block + Config::kStages - 1;  // lies where the last block did
    if (threadIdx.x == 0 && later < blocks) ring.load(&map_k, &map_v, later, head);
    __syncwarp();
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(s);
    const int last = (block + 1) * kBlockN - 1;
    if (last >= args.seq || (Config::kCausal && last > row0)) {
      mask_scores<Config>(s, block * kBlockN, row0 + lane / 4, args.seq);
    }
    soften_block(s, o, softmax, factor);
    pack_probabilities<kBlockN>(s, p);
    ptx::mbarrier_wait(ring.v_full(block), ring.phase(block));
    ptx::wgmma_fence();
    issue_output<Config>(o, p, ring.v(block), 1);
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(o);
    if (lane == 0) ptx::mbarrier_arrive(ring.empty(block));
  }
  // All four warps' products have read Q before one of them writes there.
  ptx::named_barrier_sync(1 + warpgroup, 128);
  attention_store<Config>(o, softmax, ring.base, &map_o, args, head, row0, row_in_tile, lane);
  if (lane == 0) ptx::bulk_wait<0>();
}

}  // namespace ptxbench::sm90
