#pragma once
// Attention in e4m3 for Hopper (sm_90a): O = e4m3(softmax(S) * descale_v V) with
// S = descale_q descale_k scale * Q K^T, and the log-sum-exp of S. Q, K, V, O are e4m3
// [heads, seq, HeadDim] (batch and head in one index), LSE fp32 [heads, seq], natural log. Device
// code.
//
// Problem: both operands of an 8-bit wgmma must have K as their fastest index. For P V that is the
// index of keys, along which V is not contiguous, and TMA does not transpose.
//
// Method: the structure of attention_forward_unspecialised.cuh. While a block's scores are being
// multiplied, all warps transpose V in shared memory: ldmatrix transposes pairs of bytes, two byte
// permutations part them, stmatrix stores what then are rows of V^T. In every 16 keys they come out
// in the order 0 1 8 9 2 3 10 11 ..., which is that of a thread's accumulators of S, so P is packed
// where it lies. V^T has two buffers; the one barrier of all threads in a block says that V^T is
// complete, that the block's K and V are read, and that the last product has read its V^T.
//
// Weights are rounded to e4m3 as 2^8 times their share of the maximum.

#include <ptxbench/ptx.cuh>
#include <ptxbench/ptx_sm80.cuh>

#include "attention_forward_unspecialised.cuh"

namespace ptxbench::sm90 {

struct Fp8AttentionArguments {
  const float *descale_q, *descale_k, *descale_v;  // one value each
  float* lse;                                      // [heads, seq]
  int heads, seq;
  float scale;
};

template <int HeadDim, int BlockN, int Warpgroups, int Stages, bool Causal>
struct Fp8AttentionConfig {
  static constexpr int kHeadDim = HeadDim, kBlockN = BlockN, kStages = Stages;
  static constexpr bool kCausal = Causal;
  static constexpr int kBlockM = 64 * Warpgroups, kThreads = 128 * Warpgroups;
  using TileQ = HeadTile<HeadDim / 2, kBlockM>;
  using TileKV = HeadTile<HeadDim / 2, BlockN>;
  using TileVT = HeadTile<BlockN / 2, HeadDim>;  // rows are columns of V
  static constexpr int kStageBytes = 2 * TileKV::kBytes;
  static constexpr int kOffsetVT = TileQ::kBytes + Stages * kStageBytes;
  static constexpr int kOffsetBarriers = kOffsetVT + 2 * TileVT::kBytes;
  static constexpr int kSharedBytes = 1024 + kOffsetBarriers + 8 * (1 + 2 * Stages);
  static_assert(kSharedBytes <= 232448, "more shared memory than a Hopper CTA has");
};

template <typename Config>
struct Fp8AttentionRing {
  uint32_t base;

  __device__ static int stage(int block) { return block % Config::kStages; }
  __device__ static uint32_t phase(int block) { return block / Config::kStages & 1; }
  __device__ uint32_t q_full() const { return base + Config::kOffsetBarriers; }
  __device__ uint32_t k_full(int block) const { return q_full() + 8 + stage(block) * 16; }
  __device__ uint32_t v_full(int block) const { return k_full(block) + 8; }
  __device__ uint32_t k(int block) const {
    return base + Config::TileQ::kBytes + stage(block) * Config::kStageBytes;
  }
  __device__ uint32_t v(int block) const { return k(block) + Config::TileKV::kBytes; }
  __device__ uint32_t v_transposed(int block) const {
    return base + Config::kOffsetVT + block % 2 * Config::TileVT::kBytes;
  }

  // By one thread, once everybody has read what lay there.
  __device__ void load(const CUtensorMap* map_k, const CUtensorMap* map_v, int block,
                       int head) const {
    using Tile = typename Config::TileKV;
    ptx::mbarrier_arrive_expect_tx(k_full(block), Tile::kBytes);
    Tile::load(k(block), map_k, k_full(block), block * Config::kBlockN, head);
    ptx::mbarrier_arrive_expect_tx(v_full(block), Tile::kBytes);
    Tile::load(v(block), map_v, v_full(block), block * Config::kBlockN, head);
  }
};

// Byte offset in a tile of the 16 bytes that hold bytes 16*unit .. of row `row`.
template <typename Tile>
__device__ __forceinline__ uint32_t unit_of(int row, int unit) {
  constexpr int kUnits = Tile::kRowBytes / 16;  // of a chunk's row
  return unit / kUnits * Tile::kChunkBytes + Tile::octet(row, unit % kUnits);
}

// V [keys, HeadDim] to V^T, 16 keys x 32 columns at a time, shared among all warps.
template <typename Config>
__device__ __forceinline__ void transpose_values(uint32_t v, uint32_t v_transposed, int warp,
                                                 int lane) {
  constexpr int kColumnGroups = Config::kHeadDim / 32, kKeyGroups = Config::kBlockN / 16;
  const int matrix = lane / 8, r = lane % 8;
  for (int i = warp; i < kColumnGroups * kKeyGroups; i += Config::kThreads / 32) {
    const int keys = i / kColumnGroups, columns = i % kColumnGroups;
    uint32_t m[4];  // keys 0-7 and 8-15 of the first 16 columns, the same of the second
    ptx::ldmatrix_x4_trans(m, v + unit_of<typename Config::TileKV>(keys * 16 + matrix % 2 * 8 + r,
                                                                   columns * 2 + matrix / 2));
    // Even and odd columns of either half.
    ptx::stmatrix_x4(v_transposed + unit_of<typename Config::TileVT>(
                                        columns * 32 + matrix / 2 * 16 + 2 * r + matrix % 2, keys),
                     __byte_perm(m[0], m[1], 0x6420), __byte_perm(m[0], m[1], 0x7531),
                     __byte_perm(m[2], m[3], 0x6420), __byte_perm(m[2], m[3], 0x7531));
  }
}

// Scales the sums, stores 16 rows of O through shared memory and the rows' LSE.
template <typename Config, int Lift>
__device__ __forceinline__ void fp8_attention_store(const float (&o)[Config::kHeadDim / 2],
                                                    const OnlineSoftmax& softmax, uint32_t staging,
                                                    const CUtensorMap* map_o,
                                                    const Fp8AttentionArguments& args, int head,
                                                    int row, int row_in_tile, int lane) {
  using TileQ = typename Config::TileQ;
  const float scale = __ldg(args.descale_v);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = softmax.sum[half];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const float by = scale / sum;
    const int r = lane / 4 + 8 * half;
    if (lane % 4 == 0 && row + r < args.seq) {
      args.lse[static_cast<int64_t>(head) * args.seq + row + r] =
          (softmax.shift[half] - Lift) * 0.693147180559945309417f + logf(sum);
    }
#pragma unroll
    for (int i = 2 * half; i < Config::kHeadDim / 2; i += 4) {
      const int column = 2 * (i & ~3) + 2 * (lane % 4);
      const uint32_t pair = ptx::pack_e4m3(o[i] * by, o[i + 1] * by, 0, 0);
      asm volatile("st.shared.u16 [%0], %1;" ::"r"(
                       staging + unit_of<TileQ>(row_in_tile + r, column / 16) + column % 16),
                   "h"(static_cast<uint16_t>(pair))
                   : "memory");
    }
  }
  ptx::fence_proxy_async();
  __syncwarp();
  if (lane == 0 && row < args.seq) {
    for (int chunk = 0; chunk < TileQ::kChunks; ++chunk) {
      ptx::tma_store_3d(map_o,
                        staging + chunk * TileQ::kChunkBytes + row_in_tile * TileQ::kRowBytes,
                        chunk * TileQ::kColumns, row, head);
    }
    ptx::bulk_commit();
    ptx::bulk_wait<0>();
  }
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    fp8_attention_forward_kernel(const __grid_constant__ CUtensorMap map_q,
                                 const __grid_constant__ CUtensorMap map_k,
                                 const __grid_constant__ CUtensorMap map_v,
                                 const __grid_constant__ CUtensorMap map_o,
                                 const Fp8AttentionArguments args) {
  constexpr int kBlockN = Config::kBlockN, kLift = 8;
  using TileQ = typename Config::TileQ;
  using TileKV = typename Config::TileKV;
  using TileVT = typename Config::TileVT;
  extern __shared__ uint8_t dynamic[];
  const Fp8AttentionRing<Config> ring{(ptx::smem_address(dynamic) + 1023) & ~1023u};
  const int tiles = (args.seq + Config::kBlockM - 1) / Config::kBlockM;
  const int head = blockIdx.x % args.heads, tile = tiles - 1 - blockIdx.x / args.heads;
  const int reach = Config::kCausal ? min(args.seq, (tile + 1) * Config::kBlockM) : args.seq;
  const int blocks = (reach + kBlockN - 1) / kBlockN;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(ring.q_full(), 1);
    for (int stage = 0; stage < Config::kStages; ++stage) {
      ptx::mbarrier_init(ring.k_full(stage), 1);
      ptx::mbarrier_init(ring.v_full(stage), 1);
    }
    ptx::fence_mbarrier_init();
    ptx::fence_proxy_async();
    ptx::mbarrier_arrive_expect_tx(ring.q_full(), TileQ::kBytes);
    TileQ::load(ring.base, &map_q, ring.q_full(), tile * Config::kBlockM, head);
    for (int block = 0; block < min(Config::kStages, blocks); ++block) {
      ring.load(&map_k, &map_v, block, head);
    }
  }
  __syncthreads();

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warpgroup = threadIdx.x / 128;
  const int row_in_tile = warp * 16, row0 = tile * Config::kBlockM + row_in_tile;
  const float factor =
      args.scale * __ldg(args.descale_q) * __ldg(args.descale_k) * 1.44269504088896340736f;
  const uint64_t q = TileQ::k_major(ring.base, warpgroup * 64);
  OnlineSoftmax softmax{{-1e30f, -1e30f}, {0, 0}};
  float o[Config::kHeadDim / 2], s[kBlockN / 2];
  uint32_t p[kBlockN / 32][4];
#pragma unroll
  for (float& value : o) value = 0;
  ptx::mbarrier_wait(ring.q_full(), 0);
  for (int block = 0; block < blocks; ++block) {
    ptx::mbarrier_wait(ring.k_full(block), ring.phase(block));
    const uint64_t k = TileKV::k_major(ring.k(block));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < TileKV::kSteps; ++step) {
      ptx::Wgmma<kBlockN>::ss_e4m3(s, q + TileQ::k_step(step), k + TileKV::k_step(step), step);
    }
    ptx::wgmma_commit();
    ptx::mbarrier_wait(ring.v_full(block), ring.phase(block));
    transpose_values<Config>(ring.v(block), ring.v_transposed(block), warp, lane);
    ptx::fence_proxy_async();
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(s);
    __syncthreads();
    if (threadIdx.x == 0 && block + Config::kStages < blocks) {
      ring.load(&map_k, &map_v, block + Config::kStages, head);
    }
    __syncwarp();
    const int last = (block + 1) * kBlockN - 1;
    if (last >= args.seq || (Config::kCausal && last > row0)) {
      mask_scores<Config>(s, block * kBlockN, row0 + lane / 4, args.seq);
    }
    soften_block<kLift>(s, o, softmax, factor);
#pragma unroll
    for (int group = 0; group < kBlockN / 16; ++group) {
      const float* w = s + 8 * group;
      p[group / 2][group % 2 * 2] = ptx::pack_e4m3(w[0], w[1], w[4], w[5]);
      p[group / 2][group % 2 * 2 + 1] = ptx::pack_e4m3(w[2], w[3], w[6], w[7]);
    }
    const uint64_t v = TileVT::k_major(ring.v_transposed(block));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kBlockN / 32; ++step) {
      ptx::Wgmma<Config::kHeadDim>::rs_e4m3(o, p[step], v + TileVT::k_step(step), 1);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(o);
  }
  // All four warps' products have read Q before one of them writes there.
  ptx::named_barrier_sync(1 + warpgroup, 128);
  fp8_attention_store<Config, kLift>(o, softmax, ring.base, &map_o, args, head, row0, row_in_tile,
                                     lane);
}

}  // namespace ptxbench::sm90
