#pragma once
// What the kernels share on the device: 16-byte accesses, bf16 and FP8 conversion, reductions.
// bf16 is handled as bits, so that no CUDA header besides the runtime's own is compiled.

#include <cstdint>

#include "te/fp8/format.h"

namespace ptxbench::te::device {

// ---- global memory ----

// Data that is read once: past L1, not kept.
__device__ __forceinline__ uint4 load_streaming(const void* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

// Asks L2 for the line of an address. PTX ISA, prefetch.
__device__ __forceinline__ void prefetch_line(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

// ---- conversion ----

__device__ __forceinline__ float bf16_low(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float bf16_high(uint32_t pair) {
  return __uint_as_float(pair & 0xffff0000u);
}
__device__ __forceinline__ float bf16_float(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}
__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
__device__ __forceinline__ uint16_t bf16_bits(float v) {
  return static_cast<uint16_t>(pack_bf16(v, 0));
}

// Eight bf16 in 16 bytes.
__device__ __forceinline__ void unpack8(const uint4& raw, float (&v)[8]) {
  v[0] = bf16_low(raw.x), v[1] = bf16_high(raw.x);
  v[2] = bf16_low(raw.y), v[3] = bf16_high(raw.y);
  v[4] = bf16_low(raw.z), v[5] = bf16_high(raw.z);
  v[6] = bf16_low(raw.w), v[7] = bf16_high(raw.w);
}
__device__ __forceinline__ uint4 pack8(const float (&v)[8]) {
  return {pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]),
          pack_bf16(v[6], v[7])};
}

// Makes the compiler forget what it knows about the value, so that it does not keep unpacked copies
// of it in registers between two uses.
__device__ __forceinline__ void forget(uint4& v) {
  asm volatile("" : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w));
}

// Two values to FP8, saturating, the first in the low byte.
template <Fp8Format kFormat>
__device__ __forceinline__ uint32_t pack_fp8x2(float low, float high) {
  uint16_t pair;
  if constexpr (kFormat == Fp8Format::e4m3)
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}
template <Fp8Format kFormat>
__device__ __forceinline__ uint32_t pack_fp8x4(float a, float b, float c, float d) {
  return pack_fp8x2<kFormat>(a, b) | pack_fp8x2<kFormat>(c, d) << 16;
}
template <Fp8Format kFormat>
__device__ __forceinline__ uint2 quantize8(const float (&v)[8], float scale) {
  return {pack_fp8x4<kFormat>(v[0] * scale, v[1] * scale, v[2] * scale, v[3] * scale),
          pack_fp8x4<kFormat>(v[4] * scale, v[5] * scale, v[6] * scale, v[7] * scale)};
}

// ---- reductions ----

// fmaxf drops NaN, so an amax never is NaN; infinities are recorded.
__device__ __forceinline__ float amax8(const float (&v)[8], float amax) {
#pragma unroll
  for (int i = 0; i < 8; ++i) amax = fmaxf(amax, fabsf(v[i]));
  return amax;
}
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
  return v;
}
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}

// The order of non-negative floats is that of their bits.
__device__ __forceinline__ void atomic_max_float(float* address, float v) {
  atomicMax(reinterpret_cast<int*>(address), __float_as_int(v));
}

// The maximum over the CTA into *amax (may be null: nothing happens), in two halves with a barrier
// of the CTA between them. v >= 0. `scratch` [warps].
__device__ __forceinline__ void put_amax(float v, const float* amax, float* scratch) {
  if (amax == nullptr) return;
  const unsigned most = __reduce_max_sync(~0u, __float_as_uint(v));
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = __uint_as_float(most);
}
template <int kThreads>
__device__ __forceinline__ void take_amax(float* amax, const float* scratch) {
  if (amax == nullptr || threadIdx.x >= 32) return;
  const float v = threadIdx.x < kThreads / 32 ? scratch[threadIdx.x] : 0;
  const unsigned most = __reduce_max_sync(~0u, __float_as_uint(v));
  if (threadIdx.x == 0) atomic_max_float(amax, __uint_as_float(most));
}
// Both at once. All threads call; no thread may touch `scratch` afterwards before a barrier.
template <int kThreads>
__device__ __forceinline__ void commit_amax(float v, float* amax, float* scratch) {
  if (amax == nullptr) return;
  put_amax(v, amax, scratch);
  __syncthreads();
  take_amax<kThreads>(amax, scratch);
}

// Counts a CTA; the number of those counted before. One thread calls, after a barrier of the CTA:
// what the CTA wrote to global memory before is then visible to whoever reads the count and fences.
// (Without "acquire" nothing waits for the answer before it is used.)
__device__ __forceinline__ unsigned arrive(unsigned* counter) {
  unsigned before;
  asm volatile("atom.add.release.gpu.global.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(counter)
               : "memory");
  return before;
}

// One of the CTAs that call with the same counter sees true: the last of `count`. What every one of
// them wrote to global memory before is then visible to it, and the counter is zero again.
__device__ __forceinline__ bool last_to_arrive(unsigned* counter, unsigned count) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    last = arrive(counter) == count - 1;
    if (last) {
      __threadfence();
      *counter = 0;
    }
  }
  __syncthreads();
  return last;
}

}  // namespace ptxbench::te::device
