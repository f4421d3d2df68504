// Attention and its gradient on a GPU from the definition, in fp64 without tensor cores; the
// formulas of bench/op/attention_math.h. Scores, probabilities and dS exist as whole matrices of
// doubles for the heads of one launch (blockIdx.z). Products are made of tiles of 64 x 64, 256
// threads, 4 x 4 elements a thread; `noise` is the variance that honest rounding gives an element.
#include <cstdint>

namespace {

constexpr int kTile = 64, kDepth = 16;
// As in attention_math.cc.
constexpr double kFloatError = 0x1p-21;

__device__ double widen(uint16_t bits) {
  return static_cast<double>(__uint_as_float(static_cast<uint32_t>(bits) << 16));
}

struct Tile {
  double a[kDepth][kTile + 1], b[kDepth][kTile + 1];
};

// Adds to `sum` what kDepth steps of the tiles give; `squares` to `square`, of the squared factors.
template <bool kSquares>
__device__ void multiply(const Tile& tile, const double (*other)[kTile + 1], double (&sum)[4][4],
                         double (&square)[4][4]) {
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll
  for (int d = 0; d < kDepth; ++d) {
    double left[4], right[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) left[i] = tile.a[d][y + 16 * i], right[i] = tile.b[d][x + 16 * i];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[i][j] = fma(left[i], right[j], sum[i][j]);
    if constexpr (kSquares) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        left[i] = other == nullptr ? left[i] * left[i] : other[d][y + 16 * i];
        right[i] *= right[i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) square[i][j] = fma(left[i], right[j], square[i][j]);
    }
  }
}

// sum = rows first.. of a times rows second.. of b, both [s,d] of 16-bit elements.
__device__ void dot_rows(Tile& tile, const uint16_t* a, const uint16_t* b, int first, int second,
                         int s, int d, double (&sum)[4][4]) {
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (int at = 0; at < d; at += kDepth) {
    for (int i = 0; i < 4; ++i) {
      const int ra = first + y + 16 * i, rb = second + y + 16 * i, c = at + x;
      tile.a[x][y + 16 * i] = ra < s && c < d ? widen(a[int64_t{ra} * d + c]) : 0;
      tile.b[x][y + 16 * i] = rb < s && c < d ? widen(b[int64_t{rb} * d + c]) : 0;
    }
    __syncthreads();
    multiply<false>(tile, nullptr, sum, sum);
    __syncthreads();
  }
}

// Sum (or maximum) over the CTA's 256 threads.
__device__ double over_block(double x, bool maximum) {
  __shared__ double parts[256];
  __syncthreads();
  parts[threadIdx.x] = x;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) {
      const double y = parts[threadIdx.x + half];
      parts[threadIdx.x] = maximum ? fmax(parts[threadIdx.x], y) : parts[threadIdx.x] + y;
    }
  }
  __syncthreads();
  return parts[0];
}

}  // namespace

extern "C" {

// scores [heads,s,s] = scale Q K^T, or, where `lse` is given, exp of that less lse[row]; masked
// elements are zeros then. Grid (columns, rows, heads) of tiles; tiles that are masked as a whole
// are left alone.
__global__ void __launch_bounds__(256)
    ptxbench_attention_scores(const uint16_t* q, const uint16_t* k, const float* lse,
                              double* scores, int s, int d, int causal, double scale) {
  __shared__ Tile tile;
  const int row = blockIdx.y * kTile, column = blockIdx.x * kTile;
  if (causal && column > row + kTile - 1) return;
  const int64_t head = blockIdx.z;
  double sum[4][4] = {};
  dot_rows(tile, q + head * s * d, k + head * s * d, row, column, s, d, sum);
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int r = row + y + 16 * i, c = column + x + 16 * j;
      if (r >= s || c >= s) continue;
      double value = scale * sum[i][j];
      if (lse != nullptr) value = causal && c > r ? 0 : exp(value - lse[head * s + r]);
      scores[(head * s + r) * s + c] = value;
    }
}

// Scores to probabilities in place, zeros where masked; lse [heads,s]. Grid (s, heads). Where
// `noise` is given, it gets what rounding the probabilities costs: `variance` of their squares, or
// that of numbers `unit` of the row's largest apart.
__global__ void __launch_bounds__(256)
    ptxbench_attention_softmax(double* scores, double* noise, double* lse, int s, int causal,
                               double variance, double unit) {
  const int row = blockIdx.x;
  const int64_t at = int64_t{blockIdx.y} * s + row;
  double* p = scores + at * s;
  const int keys = causal ? row + 1 : s;
  const int end = causal ? min(s, (row / kTile + 1) * kTile) : s;
  double top = -INFINITY, sum = 0;
  for (int j = threadIdx.x; j < keys; j += 256) top = fmax(top, p[j]);
  top = over_block(top, true);
  for (int j = threadIdx.x; j < keys; j += 256) sum += p[j] = exp(p[j] - top);
  sum = over_block(sum, false);
  for (int j = threadIdx.x; j < end; j += 256) {
    p[j] = j < keys ? p[j] / sum : 0;
    if (noise == nullptr) continue;
    const double least = unit / sum;  // the largest is 1 / sum
    noise[at * s + j] = p[j] > 0 ? fmax(variance * p[j] * p[j], least * least / 12) : 0;
  }
  if (threadIdx.x == 0) lse[at] = top + log(sum);
}

// delta [heads,s] = rowsum(dO o O). Grid (s, heads).
__global__ void __launch_bounds__(256)
    ptxbench_attention_delta(const uint16_t* o, const uint16_t* d_o, double* delta, int s, int d) {
  const int64_t at = int64_t{blockIdx.y} * s + blockIdx.x;
  double sum = 0;
  for (int c = threadIdx.x; c < d; c += 256) sum += widen(o[at * d + c]) * widen(d_o[at * d + c]);
  sum = over_block(sum, false);
  if (threadIdx.x == 0) delta[at] = sum;
}

// ds = P o (dO V^T - delta) and its noise from rounding (`variance`) and cancellation. Tiles as for
// scores.
__global__ void __launch_bounds__(256)
    ptxbench_attention_ds(const uint16_t* d_o, const uint16_t* v, const double* p,
                          const double* delta, double* ds, double* noise, int s, int d, int causal,
                          double variance) {
  __shared__ Tile tile;
  const int row = blockIdx.y * kTile, column = blockIdx.x * kTile;
  if (causal && column > row + kTile - 1) return;
  const int64_t head = blockIdx.z;
  double sum[4][4] = {};
  dot_rows(tile, d_o + head * s * d, v + head * s * d, row, column, s, d, sum);
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int r = row + y + 16 * i, c = column + x + 16 * j;
      if (r >= s || c >= s) continue;
      const int64_t at = (head * s + r) * s + c;
      const double size = delta[head * s + r];
      const double cancelled = kFloatError * p[at] * (fabs(sum[i][j]) + fabs(size));
      const double value = p[at] * (sum[i][j] - size);
      ds[at] = value;
      noise[at] = variance * value * value + cancelled * cancelled;
    }
}

// out [heads,s,d] = factor L R (transposed: L^T R), L [heads,s,s], R [heads,s,d];
// noise = factor^2 left_scale (N or L^2) R^2 + the larger of rounding out^2 and least. Grid (tiles
// of d, tiles of s, heads).
__global__ void __launch_bounds__(256)
    ptxbench_attention_product(const double* left, const double* left_noise, const uint16_t* right,
                               double* out, double* noise, int s, int d, int causal, int transposed,
                               double factor, double left_scale, double rounding, double least) {
  __shared__ Tile tile;
  __shared__ double other[kDepth][kTile + 1];
  const int row = blockIdx.y * kTile, column = blockIdx.x * kTile;
  const int64_t head = blockIdx.z;
  left += head * s * s, right += head * s * d;
  if (left_noise != nullptr) left_noise += head * s * s;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const int begin = causal && transposed ? row : 0;
  const int end = causal && !transposed ? min(s, row + kTile) : s;
  double sum[4][4] = {}, square[4][4] = {};
  for (int at = begin; at < end; at += kDepth) {
    for (int i = 0; i < 4; ++i) {
      // Neighbouring threads read neighbouring addresses in both orders.
      const int element = threadIdx.x + 256 * i;
      const int step = transposed ? element / kTile : element % kDepth;
      const int r = transposed ? element % kTile : element / kDepth;
      const bool inside = row + r < s && at + step < end;
      const int64_t from =
          transposed ? int64_t{at + step} * s + row + r : int64_t{row + r} * s + at + step;
      tile.a[step][r] = inside ? left[from] : 0;
      if (left_noise != nullptr) other[step][r] = inside ? left_noise[from] : 0;
      const int depth = element / kTile, c = element % kTile;
      tile.b[depth][c] = at + depth < end && column + c < d
                             ? widen(right[int64_t{at + depth} * d + column + c])
                             : 0;
    }
    __syncthreads();
    multiply<true>(tile, left_noise != nullptr ? other : nullptr, sum, square);
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int r = row + y + 16 * i, c = column + x + 16 * j;
      if (r >= s || c >= d) continue;
      const int64_t at = (head * s + r) * d + c;
      const double value = factor * sum[i][j];
      out[at] = value;
      noise[at] =
          factor * factor * left_scale * square[i][j] + fmax(rounding * value * value, least);
    }
}

}  // extern "C"
