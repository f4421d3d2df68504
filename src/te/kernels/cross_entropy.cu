// Cross-entropy: a CTA per row. The first pass keeps a running maximum and the sum of exponentials
// relative to it (Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018); the
// second reads the row again, from L2, since the rows under way fit there, and writes the gradient
// over it. A row begins wherever vocabulary and stride put it: elements before the first 16-byte
// boundary and after the last are handled one by one.
#include "te/kernels/cross_entropy_launch.h"
#include "te/kernels/device.cuh"

namespace ptxbench::te::device {
namespace {

constexpr int kUnroll = 4;
constexpr float kLog2e = 1.4426950408889634f;
__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

struct Running {
  float max, sum;  // sum of exp(x - max)
};
__device__ __forceinline__ float power(float x, float max) { return exp2f((x - max) * kLog2e); }

// An empty part has max -inf and sum 0. NaN stays in the sum.
__device__ __forceinline__ Running merge(Running a, Running b) {
  const float max = fmaxf(a.max, b.max);
  if (max == minus_infinity()) return {max, a.sum + b.sum};
  return {max, a.sum * power(a.max, max) + b.sum * power(b.max, max)};
}

__device__ __forceinline__ Running extend8(Running r, const float (&v)[8]) {
  float max = r.max;
#pragma unroll
  for (int i = 0; i < 8; ++i) max = fmaxf(max, v[i]);
  // All -inf so far: their exponentials are 0, and NaN must not arise from inf - inf.
  const float base = max == minus_infinity() ? 0 : max;
  float sum = r.sum * power(r.max, base);
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += power(v[i], base);
  return {max, sum};
}
__device__ __forceinline__ Running extend(Running r, float v) {
  const float max = fmaxf(r.max, v), base = max == minus_infinity() ? 0 : max;
  return {max, r.sum * power(r.max, base) + power(v, base)};
}

template <int kThreads>
__device__ __forceinline__ Running cta_merge(Running r) {
  __shared__ Running parts[kThreads / 32];
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    r = merge(r, {__shfl_xor_sync(~0u, r.max, d), __shfl_xor_sync(~0u, r.sum, d)});
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = r;
  __syncthreads();
  r = parts[0];
  for (int w = 1; w < kThreads / 32; ++w) r = merge(r, parts[w]);
  return r;
}

// A row as 16-byte vectors between a ragged head and tail.
struct Row {
  uint16_t* first;
  int64_t head, vectors, count;
  __device__ __forceinline__ Row(uint16_t* p, int64_t n) : first(p), count(n) {
    const int64_t to_aligned = (16 - reinterpret_cast<uintptr_t>(p) % 16) % 16 / 2;
    head = to_aligned < n ? to_aligned : n;
    vectors = (n - head) / 8;
  }
  __device__ __forceinline__ uint4* body() const { return reinterpret_cast<uint4*>(first + head); }
  // The i-th of the elements outside the vectors, fewer than 16.
  __device__ __forceinline__ int64_t rest() const { return count - vectors * 8; }
  __device__ __forceinline__ int64_t rest_at(int64_t i) const {
    return i < head ? i : i + vectors * 8;
  }
};

template <int kThreads>
__device__ __forceinline__ void fill(uint16_t* p, int64_t count, uint16_t value) {
  for (int64_t i = threadIdx.x; i < count; i += kThreads) p[i] = value;
}

template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(const __grid_constant__ CrossEntropyArgs a) {
  const int64_t row = blockIdx.x;
  uint16_t* logits = a.logits + row * a.stride;
  const int32_t target = a.targets[row];
  const bool ignored = target == a.ignore_index;
  if (ignored || target < 0 || target >= a.vocabulary) {
    const float value = ignored ? 0.0f : __int_as_float(0x7fc00000);
    if (threadIdx.x == 0) {
      a.loss[row] = value;
      if (!ignored && a.errors != nullptr) atomicAdd(a.errors, 1);
    }
    if (a.gradient) {
      fill<kThreads>(logits, a.vocabulary, ignored ? 0 : 0x7fff);
      fill<kThreads>(logits + a.vocabulary, a.stride - a.vocabulary, 0);
    }
    return;
  }
  const float at_target = bf16_float(logits[target]);  // before anybody overwrites it
  const Row r(logits, a.vocabulary);
  Running running = {minus_infinity(), 0};
  for (int64_t base = 0; base < r.vectors; base += kThreads * kUnroll) {
    uint4 raw[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const int64_t at = base + i * kThreads + threadIdx.x;
      if (at < r.vectors) raw[i] = r.body()[at];
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (base + i * kThreads + threadIdx.x >= r.vectors) break;
      float v[8];
      unpack8(raw[i], v);
      running = extend8(running, v);
    }
  }
  if (threadIdx.x < r.rest()) running = extend(running, bf16_float(logits[r.rest_at(threadIdx.x)]));
  running = cta_merge<kThreads>(running);  // its barrier: everybody has read at_target
  if (threadIdx.x == 0) a.loss[row] = logf(running.sum) + running.max - at_target;
  if (!a.gradient) return;
  float scale = a.grad_scale;
  if (a.device_grad_scale != nullptr) scale *= *a.device_grad_scale;
  const float factor = scale / running.sum;
  auto gradient = [&](float x, int64_t k) {
    const float p = power(x, running.max) * factor;
    return k == target ? p - scale : p;
  };
  for (int64_t base = 0; base < r.vectors; base += kThreads * kUnroll) {
    uint4 raw[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const int64_t at = base + i * kThreads + threadIdx.x;
      if (at < r.vectors) raw[i] = r.body()[at];
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const int64_t at = base + i * kThreads + threadIdx.x;
      if (at >= r.vectors) break;
      float v[8];
      unpack8(raw[i], v);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[j] = gradient(v[j], r.head + at * 8 + j);
      __stcs(r.body() + at, pack8(v));
    }
  }
  if (threadIdx.x < r.rest()) {
    const int64_t k = r.rest_at(threadIdx.x);
    logits[k] = bf16_bits(gradient(bf16_float(logits[k]), k));
  }
  fill<kThreads>(logits + a.vocabulary, a.stride - a.vocabulary, 0);
}

}  // namespace

cudaError_t launch_cross_entropy(const CrossEntropyArgs& a, cudaStream_t stream) {
  const auto grid = static_cast<unsigned>(a.rows);
  if (a.threads == 128)
    cross_entropy_kernel<128><<<grid, 128, 0, stream>>>(a);
  else
    cross_entropy_kernel<1024><<<grid, 1024, 0, stream>>>(a);
  return cudaGetLastError();
}

}  // namespace ptxbench::te::device
