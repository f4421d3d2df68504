#pragma once
// Attention in e4m3 with cp.async, ldmatrix and mma.sync: the second honest FP8 attention. Tensors
// and formulas are those of kernels/sm_90a/fp8_attention_forward.cuh. Device code; sm_89 and later.
//
// Method: that of attention_forward_mma.cuh. V stays as it is in shared memory: ldmatrix transposes
// pairs of bytes, and two byte permutations make B fragments of even and of odd columns of them.
// Their keys come in the order 0 1 8 9 2 3 10 11 .. of every 16, in which a thread's scores lie.

#include "attention_forward_mma.cuh"

namespace ptxbench::sm80 {

struct Fp8AttentionArguments {
  const uint8_t *q, *k, *v;                        // e4m3 [heads, seq, HeadDim], 16-byte aligned
  const float *descale_q, *descale_k, *descale_v;  // one value each
  uint8_t* o;                                      // like q
  float* lse;                                      // [heads, seq]
  int heads, seq;
  float scale;
};

// Weights are rounded to e4m3 as this multiple of their share of the maximum.
constexpr float kWeightScale = 256;

// o[HeadDim/8] += weights[16, keys] * V[keys, HeadDim]. o[2 i] are the even, o[2 i + 1] the odd
// columns of 16 i .. 16 i + 15.
template <int HeadDim>
__device__ __forceinline__ void accumulate_values_e4m3(float (&o)[HeadDim / 8][4],
                                                       const float (&s)[kForwardKeys / 8][4],
                                                       uint32_t v) {
  constexpr int kPitchV = kPitch<HeadDim / 2>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int step = 0; step < kForwardKeys / 32; ++step) {
    uint32_t a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // rows 0 and 8 of keys 0-15, then of keys 16-31
      const float(&left)[4] = s[4 * step + i / 2 * 2];
      const float(&right)[4] = s[4 * step + i / 2 * 2 + 1];
      const int row = i % 2 * 2;
      a[i] = ptx::pack_e4m3(left[row] * kWeightScale, left[row + 1] * kWeightScale,
                            right[row] * kWeightScale, right[row + 1] * kWeightScale);
    }
#pragma unroll
    for (int n = 0; n < HeadDim / 16; ++n) {
      uint32_t m[4];
      ptx::ldmatrix_x4_trans(m, v + (step * 32 + lane) * kPitchV + n * 16);
      ptx::mma_m16n8k32_e4m3(o[2 * n], a, __byte_perm(m[0], m[1], 0x6420),
                             __byte_perm(m[2], m[3], 0x6420));
      ptx::mma_m16n8k32_e4m3(o[2 * n + 1], a, __byte_perm(m[0], m[1], 0x7531),
                             __byte_perm(m[2], m[3], 0x7531));
    }
  }
}

template <int HeadDim, bool Causal>
__global__ void __launch_bounds__(kForwardThreads)
    fp8_attention_forward_mma_kernel(Fp8AttentionArguments args) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int kHalf = HeadDim / 2;  // tiles of 16-bit pairs
  constexpr int kTile = kTileBytes<kHalf, kForwardKeys>;
  const uint32_t tile_q = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const uint32_t ring = tile_q + kTileBytes<kHalf, kForwardQueries>;
  const int tiles = (args.seq + kForwardQueries - 1) / kForwardQueries;
  const int head_index = static_cast<int>(blockIdx.x) / tiles;
  const int tile = tiles - 1 - static_cast<int>(blockIdx.x) % tiles;
  const int64_t head = static_cast<int64_t>(head_index) * args.seq * HeadDim;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = tile * kForwardQueries + warp * 16;
  const int reach = Causal ? min(args.seq, (tile + 1) * kForwardQueries) : args.seq;
  const int blocks = (reach + kForwardKeys - 1) / kForwardKeys;
  auto pairs = [head](const uint8_t* data) {
    return reinterpret_cast<const __nv_bfloat16*>(data + head);
  };
  auto load = [&](int block) {
    const uint32_t stage = ring + block % 2 * 2 * kTile;
    load_rows<kHalf, kForwardKeys, kForwardThreads>(stage, pairs(args.k), block * kForwardKeys,
                                                    args.seq);
    load_rows<kHalf, kForwardKeys, kForwardThreads>(stage + kTile, pairs(args.v),
                                                    block * kForwardKeys, args.seq);
    ptx::cp_async_commit();
  };
  load_rows<kHalf, kForwardQueries, kForwardThreads>(tile_q, pairs(args.q), tile * kForwardQueries,
                                                     args.seq);
  load(0);
  const float scale = args.scale * __ldg(args.descale_q) * __ldg(args.descale_k);
  float o[HeadDim / 8][4] = {};
  float maximum[2] = {-1e30f, -1e30f}, sum[2] = {};
  for (int block = 0; block < blocks; ++block) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // this block is there for all, and the other stage is read
    if (block + 1 < blocks) load(block + 1);
    const uint32_t stage = ring + block % 2 * 2 * kTile;
    float s[kForwardKeys / 8][4] = {};
    multiply_rows<kHalf, kForwardKeys, true>(s, tile_q + warp * 16 * kPitch<kHalf>, stage);
    mask_block<Causal>(s, block, row, args.seq);
    soften<HeadDim>(s, o, maximum, sum, scale * kLog2E);
    accumulate_values_e4m3<HeadDim>(o, s, stage + kTile);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = row + lane / 4 + 8 * half;
    const float total = over_row(sum[half]);
    if (query >= args.seq) continue;
    const float by = __ldg(args.descale_v) / (total * kWeightScale);
    if (lane % 4 == 0) {
      args.lse[static_cast<int64_t>(head_index) * args.seq + query] =
          maximum[half] * scale + logf(total);
    }
    uint8_t* out = args.o + head + static_cast<int64_t>(query) * HeadDim + lane % 4 * 4;
#pragma unroll
    for (int n = 0; n < HeadDim / 16; ++n) {
      const float* even = o[2 * n] + 2 * half;
      const float* odd = o[2 * n + 1] + 2 * half;
      *reinterpret_cast<uint32_t*>(out + n * 16) =
          ptx::pack_e4m3(even[0] * by, odd[0] * by, even[1] * by, odd[1] * by);
    }
  }
}

template <int HeadDim, bool Causal>
cudaError_t launch_fp8_attention_mma(const Fp8AttentionArguments& args, cudaStream_t stream) {
  if (args.heads < 1 || args.seq < 1) return cudaErrorInvalidValue;
  constexpr int kShared = kForwardShared<HeadDim / 2>;
  auto kernel = fp8_attention_forward_mma_kernel<HeadDim, Causal>;
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  if (status != cudaSuccess) return status;
  const int tiles = (args.seq + kForwardQueries - 1) / kForwardQueries;
  kernel<<<tiles * args.heads, kForwardThreads, kShared, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace ptxbench::sm80
