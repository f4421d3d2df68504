#pragma once
// What the hardware programs share: error exit, random matrices, an fp32 reference that uses no
// tensor core, and a comparison on the device that a NaN cannot pass.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define HW_CHECK(call)                                                                      \
  do {                                                                                      \
    const cudaError_t status_ = (call);                                                     \
    if (status_ != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
      std::exit(2);                                                                         \
    }                                                                                       \
  } while (0)

namespace hardware {

__device__ inline uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

// Standard normal, rounded to bf16; depends on seed and index only.
__global__ void fill_normal(__nv_bfloat16* out, size_t count, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    const uint64_t bits = mix(mix(seed) ^ i);
    const float u = (static_cast<uint32_t>(bits >> 40) + 1) * 0x1p-24f;
    const float v = static_cast<uint32_t>(bits & 0xFFFFFF) * 0x1p-24f;
    out[i] = __float2bfloat16(sqrtf(-2 * logf(u)) * cospif(2 * v));
  }
}

// C[m,n] = sum_k A[m,k] B[n,k] in fp32 FMA: 64x64 tile, 16x16 threads of 4x4.
__global__ void __launch_bounds__(256)
    reference_gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int m, int n, int k) {
  __shared__ float tile_a[16][65], tile_b[16][65];
  const int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < k; k0 += 16) {
    for (int i = threadIdx.x; i < 64 * 16; i += 256) {
      const int r = i / 16, kk = i % 16;
      const bool in_k = k0 + kk < k;
      tile_a[kk][r] =
          in_k && row0 + r < m ? __bfloat162float(a[size_t(row0 + r) * k + k0 + kk]) : 0.f;
      tile_b[kk][r] =
          in_k && col0 + r < n ? __bfloat162float(b[size_t(col0 + r) * k + k0 + kk]) : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 16; ++kk) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] += tile_a[kk][ty + 16 * i] * tile_b[kk][tx + 16 * j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      const int r = row0 + ty + 16 * i, q = col0 + tx + 16 * j;
      if (r < m && q < n) c[size_t(r) * n + q] = sum[i][j];
    }
  }
}

struct Difference {
  unsigned long long checked, failed;
  double error_square, reference_square;
  float worst;
};

// Half an ulp of bf16 (2^-8 relative at worst, with room for a changed rounding) plus fp32
// summation error.
__global__ void compare(const __nv_bfloat16* c, const float* reference, size_t count,
                        float absolute, Difference* out) {
  Difference mine = {};
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    const float want = reference[i], got = __bfloat162float(c[i]);
    const float error = fabsf(got - want);
    ++mine.checked;
    if (!(error <= 0.00395f * fabsf(want) + absolute)) ++mine.failed;
    mine.error_square += double(error) * error;
    mine.reference_square += double(want) * want;
  }
  atomicAdd(&out->checked, mine.checked);
  atomicAdd(&out->failed, mine.failed);
  atomicAdd(&out->error_square, mine.error_square);
  atomicAdd(&out->reference_square, mine.reference_square);
}

__global__ void count_changed(const uint32_t* words, size_t count, uint32_t expected,
                              unsigned long long* out) {
  unsigned long long changed = 0;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    changed += words[i] != expected;
  }
  if (changed != 0) atomicAdd(out, changed);
}

}  // namespace hardware
