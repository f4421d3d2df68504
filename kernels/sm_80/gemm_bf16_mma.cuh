#pragma once
// C[M,N] = A[M,K] * B[N,K]^T in bf16 with fp32 accumulation, with Ampere's instructions (cp.async,
// ldmatrix, mma.sync). Device code.
//
// It is the second honest GEMM: what a task calls an honest error must not be one kernel's habit,
// so this one shares nothing with kernels/sm_90a/gemm_bf16.cuh and adds in another order.
//
// Method: a CTA of eight warps owns a 128x128 tile and streams 64-wide K steps through a ring of
// kStages stages. Each step is split along K between two slices of four warps: slice 0 multiplies
// columns 0..31 of the step, slice 1 columns 32..63, each warp a 64x64 quarter of the tile. So a
// warp reads its A and B fragments once for 64x64 results (the 64x32 of an eight-way split would
// read half as much again), and the tile's sum is the sum of two chains. The slices exchange half
// of their accumulators through the drained ring, add, and store one half each.
//
// Rows are 128 bytes; the 16-byte chunk c of row r lies at c ^ (r % 8), so that the eight rows of
// an ldmatrix touch all banks. Ragged M, N and K: chunks outside are filled with zeros by cp.async.

#include <cuda_bf16.h>

#include <ptxbench/ptx_sm80.cuh>

namespace ptxbench::sm80 {

struct GemmArguments {
  const __nv_bfloat16* a;  // [m, k], row-major, 16-byte aligned
  const __nv_bfloat16* b;  // [n, k], row-major, 16-byte aligned
  __nv_bfloat16* c;        // [m, n], row-major, 4-byte aligned
  int m, n, k;             // k a multiple of 8, n even
};

struct GemmTile {
  static constexpr int kM = 128, kN = 128, kK = 64;
  static constexpr int kStages = 4, kThreads = 256, kSlices = 2;
  static constexpr int kChunks = kK * 2 / 16;  // 16-byte chunks of a row
  static constexpr int kBytesA = kM * kK * 2, kBytesB = kN * kK * 2;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  static constexpr int kSharedBytes = kStages * kStageBytes;
  static constexpr int kGroupM = 8;  // row tiles walked before the next column: keeps B in L2
};
// The exchange holds half of every warp's 64x64 accumulators.
static_assert(GemmTile::kSharedBytes >= 8 * 32 * 64 * 4);

__device__ __forceinline__ uint32_t swizzled(int row, int chunk) {
  return static_cast<uint32_t>(row * GemmTile::kK * 2 + ((chunk ^ (row % 8)) * 16));
}

// `kRows` rows of K step `k0` of a [rows, k] matrix, from row `row0` on, into `stage`.
template <int kRows>
__device__ __forceinline__ void load_step(uint32_t stage, const __nv_bfloat16* matrix, int row0,
                                          int rows, int k0, int k) {
  constexpr int kCopies = kRows * GemmTile::kChunks / GemmTile::kThreads;
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {
    const int index = i * GemmTile::kThreads + static_cast<int>(threadIdx.x);
    const int row = index / GemmTile::kChunks, chunk = index % GemmTile::kChunks;
    const int column = k0 + chunk * 8;
    const bool inside = row0 + row < rows && column < k;
    const __nv_bfloat16* source =
        inside ? matrix + static_cast<int64_t>(row0 + row) * k + column : matrix;
    ptx::cp_async_16(stage + swizzled(row, chunk), source, inside ? 16 : 0);
  }
}

// This warp's 64x64 part of one K step: two of the step's four 16-wide columns.
__device__ __forceinline__ void multiply_step(float (&sum)[4][8][4], uint32_t stage, int warp_row,
                                              int warp_column, int slice) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t stage_b = stage + GemmTile::kBytesA;
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    const int chunk = (slice * 2 + step) * 2;
    uint32_t a[4][4], b[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // Matrices in the order of mma's A registers: rows 0-7, rows 8-15, then the next 8 columns.
      ptx::ldmatrix_x4(a[i],
                       stage + swizzled(warp_row * 64 + i * 16 + lane % 16, chunk + lane / 16));
      // Two n-blocks of 8: for each, columns 0-7 and 8-15 of K.
      const int row = warp_column * 64 + i * 16 + lane / 16 * 8 + lane % 8;
      ptx::ldmatrix_x4(b[i], stage_b + swizzled(row, chunk + lane / 8 % 2));
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j)
        ptx::mma_m16n8k16_bf16(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }
}

// Row and column tile of this CTA: kGroupM row tiles down, then one column tile on.
__device__ __forceinline__ void place_tile(int tiles_m, int tiles_n, int* tile_m, int* tile_n) {
  const int block = static_cast<int>(blockIdx.x);
  const int group = block / (GemmTile::kGroupM * tiles_n);
  const int first = group * GemmTile::kGroupM;
  const int height = min(GemmTile::kGroupM, tiles_m - first);
  const int within = block - first * tiles_n;
  *tile_m = first + within % height;
  *tile_n = within / height;
}

// Block i (of two) of the upper or lower half. Selected value by value: a computed index, or a
// select of references, would put the accumulators into local memory.
__device__ __forceinline__ float4 half_of(const float (&sum)[4][8][4], int half, int i, int j) {
  const float(&upper)[4] = sum[i][j];
  const float(&lower)[4] = sum[2 + i][j];
  return half == 0 ? make_float4(upper[0], upper[1], upper[2], upper[3])
                   : make_float4(lower[0], lower[1], lower[2], lower[3]);
}

// Adds the other slice's sums to this slice's half (two of four 16-row blocks) and stores it.
__device__ __forceinline__ void combine_and_store(const float (&sum)[4][8][4], float4* exchange,
                                                  const GemmArguments& args, int row0, int column0,
                                                  int warp, int slice) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int other = warp ^ 4;  // the warp of the other slice on the same quarter
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      exchange[(warp * 16 + i * 8 + j) * 32 + lane] = half_of(sum, 1 - slice, i, j);
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float4 kept = half_of(sum, slice, i, j);
      const float4 added = exchange[(other * 16 + i * 8 + j) * 32 + lane];
      const int row = row0 + slice * 32 + i * 16 + lane / 4;
      const int column = column0 + j * 8 + lane % 4 * 2;
      if (column >= args.n) continue;
      __nv_bfloat16* c = args.c + static_cast<int64_t>(row) * args.n + column;
      if (row < args.m)
        *reinterpret_cast<__nv_bfloat162*>(c) =
            __floats2bfloat162_rn(kept.x + added.x, kept.y + added.y);
      if (row + 8 < args.m)
        *reinterpret_cast<__nv_bfloat162*>(c + static_cast<int64_t>(args.n) * 8) =
            __floats2bfloat162_rn(kept.z + added.z, kept.w + added.w);
    }
  }
}

__global__ void __launch_bounds__(GemmTile::kThreads, 1) gemm_bf16_mma_kernel(GemmArguments args) {
  extern __shared__ __align__(128) unsigned char shared[];
  const uint32_t ring = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int tiles_m = (args.m + GemmTile::kM - 1) / GemmTile::kM;
  const int tiles_n = (args.n + GemmTile::kN - 1) / GemmTile::kN;
  int tile_m, tile_n;
  place_tile(tiles_m, tiles_n, &tile_m, &tile_n);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int slice = warp / 4, warp_row = warp / 2 % 2, warp_column = warp % 2;
  const int steps = (args.k + GemmTile::kK - 1) / GemmTile::kK;

  auto load = [&](int step) {
    const uint32_t stage = ring + step % GemmTile::kStages * GemmTile::kStageBytes;
    const int k0 = step * GemmTile::kK;
    load_step<GemmTile::kM>(stage, args.a, tile_m * GemmTile::kM, args.m, k0, args.k);
    load_step<GemmTile::kN>(stage + GemmTile::kBytesA, args.b, tile_n * GemmTile::kN, args.n, k0,
                            args.k);
  };
  for (int step = 0; step < GemmTile::kStages - 1; ++step) {
    if (step < steps) load(step);
    ptx::cp_async_commit();
  }
  float sum[4][8][4] = {};
  for (int step = 0; step < steps; ++step) {
    ptx::cp_async_wait<GemmTile::kStages - 2>();
    __syncthreads();  // step's copies of all threads have landed, and step - 1 is multiplied
    if (step + GemmTile::kStages - 1 < steps) load(step + GemmTile::kStages - 1);
    ptx::cp_async_commit();  // also when empty: the wait above counts groups
    multiply_step(sum, ring + step % GemmTile::kStages * GemmTile::kStageBytes, warp_row,
                  warp_column, slice);
  }
  __syncthreads();  // the ring becomes the exchange
  combine_and_store(sum, reinterpret_cast<float4*>(shared), args,
                    tile_m * GemmTile::kM + warp_row * 64, tile_n * GemmTile::kN + warp_column * 64,
                    warp, slice);
}

// k a multiple of 8, n even, any m >= 1; a and b 16-byte aligned.
inline cudaError_t launch_gemm_bf16_mma(const GemmArguments& args, cudaStream_t stream) {
  if (args.m < 1 || args.n < 1 || args.k < 1 || args.k % 8 != 0 || args.n % 2 != 0)
    return cudaErrorInvalidValue;
  const cudaError_t status = cudaFuncSetAttribute(
      gemm_bf16_mma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, GemmTile::kSharedBytes);
  if (status != cudaSuccess) return status;
  const int tiles =
      ((args.m + GemmTile::kM - 1) / GemmTile::kM) * ((args.n + GemmTile::kN - 1) / GemmTile::kN);
  gemm_bf16_mma_kernel<<<tiles, GemmTile::kThreads, GemmTile::kSharedBytes, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace ptxbench::sm80
