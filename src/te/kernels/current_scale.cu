#include "te/fp8/scaling.h"
#include "te/kernels/current_scale_launch.h"
#include "te/kernels/device.cuh"

namespace ptxbench::te::device {
namespace {

constexpr int kThreads = 512, kUnroll = 4;

__device__ __forceinline__ float scale_of(float amax, const ScaleRule& rule) {
  return current_scale(amax, rule.fp8_max, rule.epsilon, rule.power_of_two);
}

template <bool kF32>
__device__ __forceinline__ float vector_amax(const uint4& raw, float amax) {
  if constexpr (kF32) {
    const float v[4] = {__uint_as_float(raw.x), __uint_as_float(raw.y), __uint_as_float(raw.z),
                        __uint_as_float(raw.w)};
#pragma unroll
    for (int i = 0; i < 4; ++i) amax = fmaxf(amax, fabsf(v[i]));
    return amax;
  } else {
    float v[8];
    unpack8(raw, v);
    return amax8(v, amax);
  }
}

template <bool kF32>
__global__ void __launch_bounds__(kThreads) amax_kernel(const __grid_constant__ AmaxArgs a) {
  __shared__ float scratch[kThreads / 32];
  constexpr int kElement = kF32 ? 4 : 2, kPerVector = 16 / kElement;
  const auto* bytes = static_cast<const uint8_t*>(a.x);
  // Whole vectors lie between a ragged head and tail, which CTA 0 reads element by element.
  const int64_t misaligned = reinterpret_cast<uintptr_t>(bytes) % 16 / kElement;
  const int64_t to_aligned = misaligned == 0 ? 0 : kPerVector - misaligned;
  const int64_t head = to_aligned < a.count ? to_aligned : a.count;
  const int64_t vectors = (a.count - head) / kPerVector;
  const uint4* body = reinterpret_cast<const uint4*>(bytes + head * kElement);
  float amax = 0;
  for (int64_t base = int64_t{blockIdx.x} * kThreads * kUnroll; base < vectors;
       base += int64_t{gridDim.x} * kThreads * kUnroll) {
    uint4 raw[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const int64_t at = base + i * kThreads + threadIdx.x;
      raw[i] = at < vectors ? load_streaming(body + at) : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) amax = vector_amax<kF32>(raw[i], amax);
  }
  if (blockIdx.x == 0) {
    const int64_t rest = a.count - vectors * kPerVector;  // head and tail together
    if (threadIdx.x < rest) {
      const int64_t i = threadIdx.x < head ? threadIdx.x : threadIdx.x + vectors * kPerVector;
      amax = fmaxf(amax, fabsf(kF32 ? reinterpret_cast<const float*>(bytes)[i]
                                    : bf16_float(reinterpret_cast<const uint16_t*>(bytes)[i])));
    }
  }
  amax = warp_max(amax);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = amax;
  __syncthreads();
  if (threadIdx.x < 32) {
    amax = warp_max(threadIdx.x < kThreads / 32 ? scratch[threadIdx.x] : 0);
    if (threadIdx.x == 0) a.partial[blockIdx.x] = amax;
  }
  if (!last_to_arrive(a.counter, gridDim.x)) return;
  amax = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads)
    amax = fmaxf(amax, __ldcg(a.partial + i));
  amax = warp_max(amax);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = amax;
  __syncthreads();
  if (threadIdx.x < 32) {
    amax = warp_max(threadIdx.x < kThreads / 32 ? scratch[threadIdx.x] : 0);
    if (threadIdx.x == 0) {
      *a.amax = amax;
      if (a.scale != nullptr) *a.scale = scale_of(amax, a.rule);
    }
  }
}

__global__ void scale_from_amax_kernel(const float* amax, float* scale, ScaleRule rule) {
  *scale = scale_of(*amax, rule);
}

}  // namespace

cudaError_t launch_amax(const AmaxArgs& args, cudaStream_t stream) {
  const auto kernel = args.f32 ? amax_kernel<true> : amax_kernel<false>;
  kernel<<<args.blocks, kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t launch_scale_from_amax(const float* amax, float* scale, const ScaleRule& rule,
                                   cudaStream_t stream) {
  scale_from_amax_kernel<<<1, 1, 0, stream>>>(amax, scale, rule);
  return cudaGetLastError();
}

}  // namespace ptxbench::te::device
