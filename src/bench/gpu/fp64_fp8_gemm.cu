// The reference of the block-scaled FP8 GEMM on a GPU: D and the variance of honest arithmetic, as
// bench/op/fp8_gemm_math.cc defines them, in fp64 without tensor cores. One CTA of 256 threads
// computes 64 x 64, each thread 4 x 4 of it.
#include <cstdint>

namespace {

constexpr int kTile = 64, kDepth = 16, kBlock = 128;
constexpr double kCut = 0x1p-13;

__device__ double widen(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if ((bits & 0x7f) == 0x7f) return NAN;
  const double size =
      exponent == 0 ? ldexp(double(mantissa), -9) : ldexp(double(8 + mantissa), exponent - 10);
  return bits & 0x80 ? -size : size;
}

__device__ double block_variance(double sum, double squares) {
  if (squares == 0) return 0;
  const double sum2 = sum * sum, mean = squares / kBlock;
  const double unit2 = kCut * kCut * fmax(16 * mean, sum2 / 4);
  const double prevailing2 = fmin(sum2 / mean, double(kBlock) * kBlock);
  return unit2 * (kBlock / 3.0 + prevailing2 / 4);
}

}  // namespace

// a [m,k], b [n,k] e4m3; scale_a [m,k/128], scale_b [n/scale_b_rows rounded up,k/128]; d, noise
// [m,n]. `rounding`: variance of the relative error of rounding to the output's type.
extern "C" __global__ void __launch_bounds__(256)
    ptxbench_fp64_fp8_gemm(const uint8_t* a, const float* scale_a, const uint8_t* b,
                           const float* scale_b, double* d, double* noise, int64_t m, int64_t n,
                           int64_t k, int64_t scale_b_rows, double rounding) {
  __shared__ double tile_a[kDepth][kTile + 1], tile_b[kDepth][kTile + 1], values[256];
  values[threadIdx.x] = widen(static_cast<uint8_t>(threadIdx.x));
  __syncthreads();
  const int64_t row = int64_t{blockIdx.y} * kTile, column = int64_t{blockIdx.x} * kTile;
  const int x = static_cast<int>(threadIdx.x) % 16, y = static_cast<int>(threadIdx.x) / 16;
  const int64_t blocks = k / kBlock;
  double result[4][4] = {}, variance[4][4] = {};
  for (int64_t block = 0; block < blocks; ++block) {
    double sum[4][4] = {}, squares[4][4] = {};
    for (int64_t at = block * kBlock; at < (block + 1) * kBlock; at += kDepth) {
      for (int i = 0; i < 4; ++i) {
        const int64_t ra = row + y + 16 * i, rb = column + y + 16 * i;
        tile_a[x][y + 16 * i] = ra < m ? values[a[ra * k + at + x]] : 0;
        tile_b[x][y + 16 * i] = rb < n ? values[b[rb * k + at + x]] : 0;
      }
      __syncthreads();
#pragma unroll
      for (int s = 0; s < kDepth; ++s) {
        double left[4], right[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          left[i] = tile_a[s][y + 16 * i], right[i] = tile_b[s][x + 16 * i];
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const double product = left[i] * right[j];  // exact
            sum[i][j] += product;
            squares[i][j] = fma(product, product, squares[i][j]);
          }
      }
      __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        const int64_t r = row + y + 16 * i, c = column + x + 16 * j;
        if (r >= m || c >= n) continue;
        const double scale =
            double(scale_a[r * blocks + block]) * scale_b[c / scale_b_rows * blocks + block];
        result[i][j] += scale * sum[i][j];
        variance[i][j] += scale * scale * block_variance(sum[i][j], squares[i][j]);
      }
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int64_t r = row + y + 16 * i, c = column + x + 16 * j;
      if (r >= m || c >= n) continue;
      d[r * n + c] = result[i][j];
      noise[r * n + c] = variance[i][j] + rounding * result[i][j] * result[i][j];
    }
}
