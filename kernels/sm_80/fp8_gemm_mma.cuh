#pragma once
// D[M,N] = (A * SF_A) (B * SF_B)^T with cp.async, ldmatrix and mma.sync: the second honest
// block-scaled FP8 GEMM, which shares nothing with kernels/sm_90a/fp8_gemm.cuh. A[M,K], B[N,K]
// e4m3, SF_A fp32 [M, K/128], SF_B fp32 [ceil(N/128), K/128] or, with ScaleRowsB, [N, K/128], D
// bf16; K a multiple of 128. Device code; sm_89 and later.
//
// Method: a CTA of eight warps owns 128x128 of D and streams K blocks of 128 through a ring of
// three stages; a warp multiplies 64x32 of it into fresh accumulators, one block at a time, and
// adds them, scaled, to its sums. Scales of the block are read where they are used. Rows are 128
// bytes; the 16-byte chunk c of row r lies at c ^ (r % 8).

#include <cuda_bf16.h>

#include <cstdint>

#include <ptxbench/ptx_sm80.cuh>

namespace ptxbench::sm80 {

struct Fp8GemmArguments {
  const uint8_t *a, *b;  // e4m3, 16-byte aligned
  const float *scale_a, *scale_b;
  __nv_bfloat16* d;  // 4-byte aligned
  int m, n, k;       // n even
};

struct Fp8Tile {
  static constexpr int kRows = 128, kBlock = 128;  // of A and of B; bytes of K
  static constexpr int kStages = 3, kThreads = 256;
  static constexpr int kBytes = kRows * kBlock;  // of one operand
  static constexpr int kSharedBytes = kStages * 2 * kBytes;

  __device__ static uint32_t at(int row, int chunk) {
    return static_cast<uint32_t>(row * kBlock + ((chunk ^ (row % 8)) * 16));
  }
  // Rows row0 .. row0+127 of K block `block`, zeros past the last row.
  __device__ static void load(uint32_t stage, const uint8_t* matrix, int row0, int rows, int block,
                              int k) {
#pragma unroll
    for (int i = 0; i < kBytes / 16 / kThreads; ++i) {
      const int index = i * kThreads + static_cast<int>(threadIdx.x);
      const int row = index / 8, chunk = index % 8;
      const bool inside = row0 + row < rows;
      const uint8_t* source =
          inside ? matrix + static_cast<int64_t>(row0 + row) * k + block * kBlock + chunk * 16
                 : matrix;
      ptx::cp_async_16(stage + at(row, chunk), source, inside ? 16 : 0);
    }
  }
};

// A warp's 64x32 of one K block, summed alone.
__device__ __forceinline__ void multiply_block(float (&part)[4][4][4], uint32_t stage, int warp_row,
                                               int warp_column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < 64; ++i) part[i / 16][i / 4 % 4][i % 4] = 0;
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    uint32_t a[4][4], b[2][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      ptx::ldmatrix_x4(
          a[i], stage + Fp8Tile::at(warp_row * 64 + i * 16 + lane % 16, step * 2 + lane / 16));
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int row = warp_column * 32 + j * 16 + lane / 16 * 8 + lane % 8;
      ptx::ldmatrix_x4(b[j], stage + Fp8Tile::kBytes + Fp8Tile::at(row, step * 2 + lane / 8 % 2));
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        ptx::mma_m16n8k32_e4m3(part[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
  }
}

template <bool ScaleRowsB>
__global__ void __launch_bounds__(Fp8Tile::kThreads, 1) fp8_gemm_mma_kernel(Fp8GemmArguments args) {
  extern __shared__ __align__(128) unsigned char shared[];
  const uint32_t ring = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / 4, warp_column = warp % 4;
  const int row0 = static_cast<int>(blockIdx.x) * Fp8Tile::kRows;
  const int column0 = static_cast<int>(blockIdx.y) * Fp8Tile::kRows;
  const int blocks = args.k / Fp8Tile::kBlock;
  auto load = [&](int block) {
    const uint32_t stage = ring + block % Fp8Tile::kStages * 2 * Fp8Tile::kBytes;
    Fp8Tile::load(stage, args.a, row0, args.m, block, args.k);
    Fp8Tile::load(stage + Fp8Tile::kBytes, args.b, column0, args.n, block, args.k);
  };
  for (int block = 0; block < Fp8Tile::kStages - 1; ++block) {
    if (block < blocks) load(block);
    ptx::cp_async_commit();
  }
  float sum[4][4][4] = {}, part[4][4][4];
  for (int block = 0; block < blocks; ++block) {
    ptx::cp_async_wait<Fp8Tile::kStages - 2>();
    __syncthreads();  // this block is there for all, and the last one is read
    if (block + Fp8Tile::kStages - 1 < blocks) load(block + Fp8Tile::kStages - 1);
    ptx::cp_async_commit();  // also when empty: the wait above counts groups
    multiply_block(part, ring + block % Fp8Tile::kStages * 2 * Fp8Tile::kBytes, warp_row,
                   warp_column);
    float scale_b[4][2];  // of this thread's columns
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int column = column0 + warp_column * 32 + i / 2 * 8 + lane % 4 * 2 + i % 2;
      const int row_b = ScaleRowsB ? min(column, args.n - 1) : static_cast<int>(blockIdx.y);
      scale_b[i / 2][i % 2] = __ldg(args.scale_b + static_cast<int64_t>(row_b) * blocks + block);
    }
#pragma unroll
    for (int half = 0; half < 8; ++half) {  // rows 8 * half + lane / 4
      const int row = min(row0 + warp_row * 64 + half * 8 + lane / 4, args.m - 1);
      const float scale_a = __ldg(args.scale_a + static_cast<int64_t>(row) * blocks + block);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int i = half % 2 * 2; i < half % 2 * 2 + 2; ++i) {
          sum[half / 2][j][i] =
              fmaf(part[half / 2][j][i], scale_a * scale_b[j][i % 2], sum[half / 2][j][i]);
        }
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 8; ++half) {
    const int row = row0 + warp_row * 64 + half * 8 + lane / 4;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int column = column0 + warp_column * 32 + j * 8 + lane % 4 * 2;
      if (row >= args.m || column >= args.n) continue;
      const float(&s)[4] = sum[half / 2][j];
      *reinterpret_cast<__nv_bfloat162*>(args.d + static_cast<int64_t>(row) * args.n + column) =
          half % 2 == 0 ? __floats2bfloat162_rn(s[0], s[1]) : __floats2bfloat162_rn(s[2], s[3]);
    }
  }
}

template <bool ScaleRowsB>
cudaError_t launch_fp8_gemm_mma(const Fp8GemmArguments& args, cudaStream_t stream) {
  if (args.m < 1 || args.n < 1 || args.k < 128 || args.k % 128 != 0 || args.n % 2 != 0)
    return cudaErrorInvalidValue;
  auto kernel = fp8_gemm_mma_kernel<ScaleRowsB>;
  const cudaError_t status = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Fp8Tile::kSharedBytes);
  if (status != cudaSuccess) return status;
  const dim3 grid((args.m + 127) / 128, (args.n + 127) / 128);
  kernel<<<grid, Fp8Tile::kThreads, Fp8Tile::kSharedBytes, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace ptxbench::sm80
