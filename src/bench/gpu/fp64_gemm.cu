// The reference on a GPU: C[m,n] = sum over k of A[m,k] B[n,k] in fp64, bf16 inputs, row-major.
// Plain fused multiply-adds in ascending k, no tensor core; one CTA of 256 threads computes
// 64 x 64, each thread 4 x 4 of it.
#include <cstdint>

constexpr int kTile = 64, kDepth = 16;

__device__ double widen(const uint16_t* matrix, int64_t row, int64_t rows, int64_t column,
                        int64_t columns) {
  if (row >= rows || column >= columns) return 0;
  return static_cast<double>(
      __uint_as_float(static_cast<uint32_t>(matrix[row * columns + column]) << 16));
}

extern "C" __global__ void __launch_bounds__(256)
    ptxbench_fp64_gemm(const uint16_t* a, const uint16_t* b, double* c, int64_t m, int64_t n,
                       int64_t k) {
  __shared__ double tile_a[kDepth][kTile + 1], tile_b[kDepth][kTile + 1];
  const int64_t row = int64_t{blockIdx.y} * kTile, column = int64_t{blockIdx.x} * kTile;
  const int x = static_cast<int>(threadIdx.x) % 16, y = static_cast<int>(threadIdx.x) / 16;
  double sum[4][4] = {};
  for (int64_t at = 0; at < k; at += kDepth) {
    for (int i = 0; i < 4; ++i) {
      tile_a[x][y + 16 * i] = widen(a, row + y + 16 * i, m, at + x, k);
      tile_b[x][y + 16 * i] = widen(b, column + y + 16 * i, n, at + x, k);
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      double left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) left[i] = tile_a[d][y + 16 * i], right[i] = tile_b[d][x + 16 * i];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = fma(left[i], right[j], sum[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      if (row + y + 16 * i < m && column + x + 16 * j < n)
        c[(row + y + 16 * i) * n + column + x + 16 * j] = sum[i][j];
}
