// Whole kernels in the way that CUDA libraries write them, each checked against plain host code.
// usage: patterns [RESULT [FAULT]]; FAULT leaves out one synchronisation ("none", or see Fault).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>

#include "../../../examples/programs/check.h"

enum Fault {
  kNone,
  kReduceSync,
  kReduceFence,
  kScanFence,
  kHistogramSync,
  kStencilSync,
  kGemmReuse
};
const char* const kFaults[] = {"none",           "reduce-sync",  "reduce-fence", "scan-fence",
                               "histogram-sync", "stencil-sync", "gemm-reuse"};

// ------------------------------------------------------------ reduction, finished by the last
// block

__device__ float warp_sum(float x) {
  for (int d = 16; d > 0; d /= 2) x += __shfl_down_sync(~0u, x, d);
  return x;
}

__device__ float block_sum(float x, float* scratch, bool synchronise) {
  x = warp_sum(x);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
  if (synchronise) __syncthreads();
  float all = threadIdx.x < blockDim.x / 32 ? scratch[threadIdx.x] : 0;
  if (threadIdx.x < 32) all = warp_sum(all);
  __syncthreads();
  return all;  // of thread 0
}

__global__ void reduce(const float* x, int n, float* partial, unsigned* ticket, float* out,
                       Fault fault) {
  __shared__ float scratch[32];
  __shared__ bool last;
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += x[i];
  sum = block_sum(sum, scratch, fault != kReduceSync);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    if (fault != kReduceFence) __threadfence();
    last = atomicAdd(ticket, 1) == gridDim.x - 1;
    if (fault != kReduceFence) __threadfence();
  }
  __syncthreads();
  if (!last) return;
  sum = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum += partial[i];
  sum = block_sum(sum, scratch, true);
  if (threadIdx.x == 0) *out = sum;
}

// ------------------------------------------------------- inclusive scan, single pass with
// look-back

struct Status {
  unsigned flag;  // 0: nothing yet, 1: own sum, 2: sum of everything up to here
  int sum, all;
};

__global__ void scan(const int* x, int n, Status* status, unsigned* counter, int* out,
                     Fault fault) {
  __shared__ int warps[8], before;
  __shared__ unsigned tile;
  if (threadIdx.x == 0) tile = atomicAdd(counter, 1);
  __syncthreads();
  const unsigned at = tile * blockDim.x + threadIdx.x, lane = threadIdx.x % 32,
                 warp = threadIdx.x / 32;
  int sum = at < n ? x[at] : 0;
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(~0u, sum, d);
    if (lane >= d) sum += other;
  }
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  for (unsigned w = 0; w < warp; ++w) sum += warps[w];
  if (threadIdx.x == blockDim.x - 1) {
    volatile Status* s = status;
    s[tile].sum = sum;
    if (fault != kScanFence) __threadfence();
    s[tile].flag = 1;
    int prefix = 0;
    for (int t = static_cast<int>(tile) - 1; t >= 0; --t) {
      unsigned flag;
      while ((flag = s[t].flag) == 0) {
      }
      if (fault != kScanFence) __threadfence();
      prefix += flag == 2 ? status[t].all : status[t].sum;
      if (flag == 2) break;
    }
    status[tile].all = prefix + sum;
    if (fault != kScanFence) __threadfence();
    s[tile].flag = 2;
    before = prefix;
  }
  __syncthreads();
  if (at < n) out[at] = before + sum;
}

// ------------------------------------------------------------------------- histogram, shared
// atomics

__global__ void histogram(const int* x, int n, unsigned* out, Fault fault) {
  __shared__ unsigned bins[64];
  for (unsigned b = threadIdx.x; b < 64; b += blockDim.x) bins[b] = 0;
  if (fault != kHistogramSync) __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[x[i] & 63], 1u);
  __syncthreads();
  for (unsigned b = threadIdx.x; b < 64; b += blockDim.x) atomicAdd(&out[b], bins[b]);
}

// ----------------------------------------------------------------------------- 5-point stencil,
// 2-D

constexpr int kTile = 16;

__global__ void stencil(const float* in, float* out, int width, int height, Fault fault) {
  __shared__ float tile[kTile + 2][kTile + 2];
  const int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  for (int j = threadIdx.y; j < kTile + 2; j += kTile)
    for (int i = threadIdx.x; i < kTile + 2; i += kTile) {
      const int gx = blockIdx.x * kTile + i - 1, gy = blockIdx.y * kTile + j - 1;
      const bool inside = gx >= 0 && gx < width && gy >= 0 && gy < height;
      tile[j][i] = inside ? in[gy * width + gx] : 0;
    }
  if (fault != kStencilSync) __syncthreads();
  if (x >= width || y >= height) return;
  const int i = threadIdx.x + 1, j = threadIdx.y + 1;
  out[y * width + x] = 0.5f * tile[j][i] +
                       0.125f * (tile[j][i - 1] + tile[j][i + 1] + tile[j - 1][i] + tile[j + 1][i]);
}

// ----------------------------------------------------------- softmax and layer norm, a block per
// row

__global__ void softmax(const float* in, float* out, int columns) {
  __shared__ float scratch[32], shared_value;
  const float* row = in + static_cast<size_t>(blockIdx.x) * columns;
  float most = -INFINITY;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) most = fmaxf(most, row[c]);
  for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = most;
  __syncthreads();
  most = scratch[0];
  for (unsigned w = 1; w < blockDim.x / 32; ++w) most = fmaxf(most, scratch[w]);
  __syncthreads();
  float sum = 0;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(row[c] - most);
  sum = block_sum(sum, scratch, true);
  if (threadIdx.x == 0) shared_value = sum;
  __syncthreads();
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    out[static_cast<size_t>(blockIdx.x) * columns + c] = expf(row[c] - most) / shared_value;
}

struct Welford {
  float mean, m2, count;
};

__device__ Welford merged(Welford a, Welford b) {
  const float count = a.count + b.count;
  if (count == 0) return a;
  const float delta = b.mean - a.mean;
  return {a.mean + delta * b.count / count, a.m2 + b.m2 + delta * delta * a.count * b.count / count,
          count};
}

__global__ void layer_norm(const float* in, float* out, int columns) {
  __shared__ Welford of_warp[32];
  const float* row = in + static_cast<size_t>(blockIdx.x) * columns;
  Welford own = {0, 0, 0};
  for (int c = threadIdx.x; c < columns; c += blockDim.x) own = merged(own, {row[c], 0, 1});
  for (int d = 16; d > 0; d /= 2)
    own = merged(own, {__shfl_xor_sync(~0u, own.mean, d), __shfl_xor_sync(~0u, own.m2, d),
                       __shfl_xor_sync(~0u, own.count, d)});
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = own;
  __syncthreads();
  Welford all = of_warp[0];
  for (unsigned w = 1; w < blockDim.x / 32; ++w) all = merged(all, of_warp[w]);
  const float scale = rsqrtf(all.m2 / all.count + 1e-5f);
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    out[static_cast<size_t>(blockIdx.x) * columns + c] = (row[c] - all.mean) * scale;
}

// --------------------------------------------- GEMM: two stages of cp.async, a 4x4 block per
// thread

constexpr int kBlock = 64, kStep = 16;

__device__ void copy16(float* to, const float* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
}

__global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k, Fault fault) {
  __shared__ alignas(16) float sa[2][kBlock][kStep], sb[2][kStep][kBlock];
  const int row = blockIdx.y * kBlock, column = blockIdx.x * kBlock, t = threadIdx.x;
  auto load = [&](int stage, int at) {
    copy16(&sa[stage][t / 4][t % 4 * 4], &a[static_cast<size_t>(row + t / 4) * k + at + t % 4 * 4]);
    copy16(&sb[stage][t / 16][t % 16 * 4],
           &b[static_cast<size_t>(at + t / 16) * n + column + t % 16 * 4]);
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  float sum[4][4] = {};
  load(0, 0);
  for (int at = 0, stage = 0; at < k; at += kStep, stage ^= 1) {
    if (at + kStep < k) {
      load(stage ^ 1, at + kStep);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    for (int kk = 0; kk < kStep; ++kk)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
          sum[i][j] += sa[stage][t / 16 * 4 + i][kk] * sb[stage][kk][t % 16 * 4 + j];
    if (fault != kGemmReuse) __syncthreads();  // the next round's copies overwrite this stage
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      c[static_cast<size_t>(row + t / 16 * 4 + i) * n + column + t % 16 * 4 + j] = sum[i][j];
}

// ------------------------------------------- attention: a warp per query, keys through shared
// memory

constexpr int kHead = 32, kKeys = 32;

__global__ void attention(const float* q, const float* k, const float* v, float* out, int length) {
  __shared__ float keys[kKeys][kHead + 1], values[kKeys][kHead + 1];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32,
            query = blockIdx.x * (blockDim.x / 32) + warp;
  float most = -INFINITY, sum = 0, result = 0;  // lane: dimension of the result
  for (int first = 0; first < length; first += kKeys) {
    __syncthreads();
    for (int i = threadIdx.x; i < kKeys * kHead; i += blockDim.x) {
      const bool inside = first + i / kHead < length;
      keys[i / kHead][i % kHead] = inside ? k[first * kHead + i] : 0;
      values[i / kHead][i % kHead] = inside ? v[first * kHead + i] : 0;
    }
    __syncthreads();
    if (query >= length) continue;
    float score = 0;
    for (int d = 0; d < kHead; ++d) score += q[query * kHead + d] * keys[lane][d];
    if (first + lane >= length) score = -INFINITY;
    float top = score;
    for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
    top = fmaxf(top, most);
    const float p = expf(score - top), old = expf(most - top);
    most = top;
    sum = sum * old + p;
    result *= old;
    for (int i = 0; i < kKeys; ++i) result += __shfl_sync(~0u, p, i) * values[i][lane];
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (query < length) out[query * kHead + lane] = result / sum;
}

// ---------------------------------------------------------------------------------------- the
// checks

std::vector<float> results;
size_t wrong = 0;

void compare(const char* name, const std::vector<float>& got, const std::vector<double>& expected,
             double tolerance) {
  size_t bad = 0;
  for (size_t i = 0; i < got.size(); ++i) bad += !(std::fabs(got[i] - expected[i]) <= tolerance);
  if (bad) std::fprintf(stderr, "%s: %zu of %zu wrong\n", name, bad, got.size());
  wrong += bad;
  results.insert(results.end(), got.begin(), got.end());
}

template <class T>
T* zeros(size_t n) {
  T* p = nullptr;
  CHECK(cudaMalloc(&p, n * sizeof(T)));
  CHECK(cudaMemset(p, 0, n * sizeof(T)));
  return p;
}

std::vector<float> values(size_t n, uint32_t stream) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i)
    v[i] = static_cast<float>(static_cast<int>(mixed(static_cast<uint32_t>(i), stream) % 65) - 32) /
           16;
  return v;
}

void check_reduce(Fault fault) {
  const std::vector<float> x = values(10007, 1);
  float *partial = zeros<float>(24), *out = zeros<float>(1);
  reduce<<<24, 128>>>(to_device(x), 10007, partial, zeros<unsigned>(1), out, fault);
  compare("reduce", to_host(out, 1), {std::accumulate(x.begin(), x.end(), 0.0)}, 1e-2);
}

void check_scan(Fault fault) {
  std::vector<int> x(5003);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<int>(mixed(static_cast<uint32_t>(i), 2) % 9);
  int* out = zeros<int>(x.size());
  scan<<<20, 256>>>(to_device(x), 5003, zeros<Status>(20), zeros<unsigned>(1), out, fault);
  const std::vector<int> got = to_host(out, x.size());
  std::vector<double> expected(x.size());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) expected[i] = sum += x[i];
  compare("scan", {got.begin(), got.end()}, expected, 0);
}

void check_histogram(Fault fault) {
  std::vector<int> x(6000);
  std::vector<double> expected(64);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<int>(mixed(static_cast<uint32_t>(i), 3) >> 8);
    expected[x[i] & 63] += 1;
  }
  unsigned* out = zeros<unsigned>(64);
  histogram<<<5, 128>>>(to_device(x), 6000, out, fault);
  const std::vector<unsigned> got = to_host(out, 64);
  compare("histogram", {got.begin(), got.end()}, expected, 0);
}

void check_stencil(Fault fault) {
  const int width = 45, height = 37;
  const std::vector<float> in = values(width * height, 4);
  float* out = zeros<float>(in.size());
  stencil<<<dim3(3, 3), dim3(kTile, kTile)>>>(to_device(in), out, width, height, fault);
  std::vector<double> expected(in.size());
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      auto at = [&](int i, int j) {
        return i < 0 || i >= width || j < 0 || j >= height ? 0.0 : in[j * width + i];
      };
      expected[y * width + x] =
          at(x, y) / 2 + (at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1)) / 8;
    }
  compare("stencil", to_host(out, in.size()), expected, 1e-5);
}

void check_rows() {
  const int rows = 9, columns = 333;
  const std::vector<float> in = values(rows * columns, 5);
  float *soft = zeros<float>(in.size()), *norm = zeros<float>(in.size());
  softmax<<<rows, 128>>>(to_device(in), soft, columns);
  layer_norm<<<rows, 128>>>(to_device(in), norm, columns);
  std::vector<double> soft_expected(in.size()), norm_expected(in.size());
  for (int r = 0; r < rows; ++r) {
    double sum = 0, mean = 0, variance = 0;
    for (int c = 0; c < columns; ++c) sum += std::exp(double{in[r * columns + c]});
    for (int c = 0; c < columns; ++c) mean += in[r * columns + c] / double{columns};
    for (int c = 0; c < columns; ++c)
      variance += (in[r * columns + c] - mean) * (in[r * columns + c] - mean) / columns;
    for (int c = 0; c < columns; ++c) {
      soft_expected[r * columns + c] = std::exp(double{in[r * columns + c]}) / sum;
      norm_expected[r * columns + c] = (in[r * columns + c] - mean) / std::sqrt(variance + 1e-5);
    }
  }
  compare("softmax", to_host(soft, in.size()), soft_expected, 1e-5);
  compare("layer_norm", to_host(norm, in.size()), norm_expected, 1e-4);
}

void check_gemm(Fault fault) {
  const int m = 128, n = 64, k = 80;
  const std::vector<float> a = values(m * k, 6), b = values(k * n, 7);
  float* c = zeros<float>(m * n);
  gemm<<<dim3(n / kBlock, m / kBlock), 256>>>(to_device(a), to_device(b), c, m, n, k, fault);
  std::vector<double> expected(m * n);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      for (int x = 0; x < k; ++x) expected[i * n + j] += double{a[i * k + x]} * b[x * n + j];
  compare("gemm", to_host(c, m * n), expected, 1e-3);
}

void check_attention() {
  const int length = 75;
  const std::vector<float> q = values(length * kHead, 8), k = values(length * kHead, 9),
                           v = values(length * kHead, 10);
  float* out = zeros<float>(q.size());
  attention<<<(length + 3) / 4, 128>>>(to_device(q), to_device(k), to_device(v), out, length);
  std::vector<double> expected(q.size());
  for (int i = 0; i < length; ++i) {
    std::vector<double> score(length);
    for (int j = 0; j < length; ++j)
      for (int d = 0; d < kHead; ++d) score[j] += double{q[i * kHead + d]} * k[j * kHead + d];
    const double most = *std::max_element(score.begin(), score.end());
    double sum = 0;
    for (double& s : score) sum += s = std::exp(s - most);
    for (int j = 0; j < length; ++j)
      for (int d = 0; d < kHead; ++d) expected[i * kHead + d] += score[j] / sum * v[j * kHead + d];
  }
  compare("attention", to_host(out, q.size()), expected, 1e-4);
}

int main(int argc, char** argv) {
  Fault fault = kNone;
  for (int f = 0; argc > 2 && f < 7; ++f)
    if (!std::strcmp(argv[2], kFaults[f])) fault = static_cast<Fault>(f);
  check_reduce(fault);
  check_scan(fault);
  check_histogram(fault);
  check_stencil(fault);
  check_rows();
  check_gemm(fault);
  check_attention();
  return finish(argc, argv, "patterns", results, fault == kNone ? wrong : 0);
}
