// Least-significant-digit radix sort of 32-bit keys: per pass a histogram of each block, a scan
// over digits and blocks, and a stable scatter.
#include <algorithm>

#include "check.h"

constexpr int kBits = 4, kDigits = 1 << kBits, kThreads = 128, kPerThread = 4;
constexpr int kPerBlock = kThreads * kPerThread;

__device__ int digit_of(uint32_t key, int shift) { return key >> shift & (kDigits - 1); }

// counts[digit * blocks + block]
__global__ void histogram(const uint32_t* keys, int n, int shift, uint32_t* counts) {
  __shared__ uint32_t local[kDigits];
  if (threadIdx.x < kDigits) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = 0; i < kPerThread; ++i) {
    const int at = blockIdx.x * kPerBlock + i * kThreads + threadIdx.x;
    if (at < n) atomicAdd(&local[digit_of(keys[at], shift)], 1u);
  }
  __syncthreads();
  if (threadIdx.x < kDigits) counts[threadIdx.x * gridDim.x + blockIdx.x] = local[threadIdx.x];
}

// Exclusive prefix sum in place, one block, any length.
__global__ void scan(uint32_t* values, int n) {
  __shared__ uint32_t warp_sums[32];
  uint32_t carry = 0;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int base = 0; base < n; base += blockDim.x) {
    const int at = base + threadIdx.x;
    const uint32_t own = at < n ? values[at] : 0;
    uint32_t sum = own;
    for (int d = 1; d < 32; d *= 2) {
      const uint32_t below = __shfl_up_sync(~0u, sum, d);
      if (lane >= d) sum += below;
    }
    if (lane == 31) warp_sums[warp] = sum;
    __syncthreads();
    uint32_t before = carry, total = 0;
    for (int w = 0; w < warps; ++w) {
      if (w < warp) before += warp_sums[w];
      total += warp_sums[w];
    }
    if (at < n) values[at] = before + sum - own;
    carry += total;
    __syncthreads();
  }
}

// A thread's keys are neighbours, and threads are ranked in order: equal digits keep their order.
__global__ void scatter(const uint32_t* keys, int n, int shift, const uint32_t* offsets,
                        uint32_t* out) {
  __shared__ uint32_t rank[kDigits][kThreads];
  uint32_t counts[kDigits] = {};
  const int first = blockIdx.x * kPerBlock + threadIdx.x * kPerThread;
  for (int i = 0; i < kPerThread; ++i)
    if (first + i < n) ++counts[digit_of(keys[first + i], shift)];
  for (int d = 0; d < kDigits; ++d) rank[d][threadIdx.x] = counts[d];
  __syncthreads();
  if (threadIdx.x < kDigits) {
    uint32_t sum = 0;
    for (int t = 0; t < kThreads; ++t) {
      const uint32_t count = rank[threadIdx.x][t];
      rank[threadIdx.x][t] = sum;
      sum += count;
    }
  }
  __syncthreads();
  for (int i = 0; i < kPerThread; ++i) {
    if (first + i >= n) break;
    const uint32_t key = keys[first + i];
    const int d = digit_of(key, shift);
    out[offsets[d * gridDim.x + blockIdx.x] + rank[d][threadIdx.x]++] = key;
  }
}

int main(int argc, char** argv) {
  constexpr int n = 10007;
  std::vector<uint32_t> keys(n);
  for (int i = 0; i < n; ++i) keys[i] = i % 3 ? mixed(i, 3) : mixed(i, 3) % 64;  // many equal ones
  const int blocks = (n + kPerBlock - 1) / kPerBlock;
  uint32_t *from = to_device(keys), *to = nullptr, *counts = nullptr;
  CHECK(cudaMalloc(&to, n * sizeof(uint32_t)));
  CHECK(cudaMalloc(&counts, kDigits * blocks * sizeof(uint32_t)));
  for (int shift = 0; shift < 32; shift += kBits) {
    histogram<<<blocks, kThreads>>>(from, n, shift, counts);
    scan<<<1, 256>>>(counts, kDigits * blocks);
    scatter<<<blocks, kThreads>>>(from, n, shift, counts, to);
    CHECK(cudaGetLastError());
    std::swap(from, to);
  }
  CHECK(cudaDeviceSynchronize());
  const std::vector<uint32_t> result = to_host(from, n);
  std::sort(keys.begin(), keys.end());
  size_t wrong = 0;
  for (int i = 0; i < n; ++i) wrong += result[i] != keys[i];
  return finish(argc, argv, "radix_sort", result, wrong);
}
