// AdamW and the gradient norm over a table of tensors. CTAs walk over chunks of all tensors
// together; a thread handles four neighbouring elements at a time, two such groups in flight.
#include "te/kernels/device.cuh"
#include "te/kernels/optimizer_launch.h"

namespace ptxbench::te::device {
namespace {

constexpr int kThreads = kOptimizerThreads;

// The tensor that holds a chunk: the last entry whose first chunk is not beyond it.
__device__ __forceinline__ int find_tensor(const TensorTable& t, int64_t chunk) {
  int low = 0, high = t.tensors - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (t.entries[middle].first_chunk <= chunk)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// Four gradients as fp32; those at and beyond `left` are 0.
template <bool kF32>
__device__ __forceinline__ void load_grads(const void* grad, int64_t at, int64_t left, bool vector,
                                           float (&g)[4]) {
  if (vector && left >= 4) {
    if constexpr (kF32) {
      const float4 u =
          __ldcs(reinterpret_cast<const float4*>(static_cast<const float*>(grad) + at));
      g[0] = u.x, g[1] = u.y, g[2] = u.z, g[3] = u.w;
    } else {
      const uint2 u =
          __ldcs(reinterpret_cast<const uint2*>(static_cast<const uint16_t*>(grad) + at));
      g[0] = bf16_low(u.x), g[1] = bf16_high(u.x), g[2] = bf16_low(u.y), g[3] = bf16_high(u.y);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (kF32)
      g[i] = i < left ? static_cast<const float*>(grad)[at + i] : 0;
    else
      g[i] = i < left ? bf16_float(static_cast<const uint16_t*>(grad)[at + i]) : 0;
  }
}

__device__ __forceinline__ void load4(const float* from, int64_t left, bool vector, float (&v)[4]) {
  if (vector && left >= 4) {
    const float4 u = __ldcs(reinterpret_cast<const float4*>(from));
    v[0] = u.x, v[1] = u.y, v[2] = u.z, v[3] = u.w;
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) v[i] = i < left ? from[i] : 0;
}
__device__ __forceinline__ void store4(float* to, int64_t left, bool vector, const float (&v)[4]) {
  if (vector && left >= 4) {
    __stcs(reinterpret_cast<float4*>(to), float4{v[0], v[1], v[2], v[3]});
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (i < left) to[i] = v[i];
}
__device__ __forceinline__ void load4(const uint16_t* from, int64_t left, bool vector,
                                      uint32_t (&v)[2]) {
  if (vector && left >= 4) {
    const uint2 u = __ldcs(reinterpret_cast<const uint2*>(from));
    v[0] = u.x, v[1] = u.y;
    return;
  }
  uint32_t e[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) e[i] = i < left ? from[i] : 0;
  v[0] = e[0] | e[1] << 16, v[1] = e[2] | e[3] << 16;
}
__device__ __forceinline__ void store4(uint16_t* to, int64_t left, bool vector,
                                       const uint32_t (&v)[2]) {
  if (vector && left >= 4) {
    __stcs(reinterpret_cast<uint2*>(to), uint2{v[0], v[1]});
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (i < left) to[i] = static_cast<uint16_t>(v[i / 2] >> (i % 2 * 16));
}

// master = (param << 16) + remainder as integers: what rounding half up to 16 bits took away or
// added.
__device__ __forceinline__ float join(uint32_t param, uint32_t remainder) {
  return __uint_as_float((param << 16) +
                         static_cast<uint32_t>(static_cast<int32_t>(remainder << 16) >> 16));
}
__device__ __forceinline__ uint32_t upper_half(float master) {
  return (__float_as_uint(master) + 0x8000u) >> 16;
}

struct Rates {
  float lr, correction1, correction2, factor;
};

// Four parameters with their moments, from load to store.
template <bool kGradF32, bool kRemainder>
struct Group {
  float g[4], p[4], m[4], v[4];
  uint32_t param[2], remainder[2];

  __device__ __forceinline__ void load(const TensorEntry& t, int64_t at, int64_t left,
                                       bool vector) {
    if constexpr (kRemainder) {
      load4(t.param + at, left, vector, param);
      load4(reinterpret_cast<const uint16_t*>(t.remainder) + at, left, vector, remainder);
    } else {
      load4(t.master + at, left, vector, p);
    }
    load4(t.m + at, left, vector, m);
    load4(t.v + at, left, vector, v);
    load_grads<kGradF32>(t.grad, at, left, vector, g);
  }

  __device__ __forceinline__ void step(const AdamWArgs& a, const Rates& rates) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kRemainder)
        p[i] =
            join(param[i / 2] >> (i % 2 * 16) & 0xffff, remainder[i / 2] >> (i % 2 * 16) & 0xffff);
      const float grad = g[i] * rates.factor;
      m[i] = a.beta1 * m[i] + (1 - a.beta1) * grad;
      v[i] = a.beta2 * v[i] + (1 - a.beta2) * grad * grad;
      const float direction =
          m[i] * rates.correction1 / (sqrtf(v[i] * rates.correction2) + a.epsilon);
      p[i] -= rates.lr * (direction + a.weight_decay * p[i]);
    }
  }

  __device__ __forceinline__ void store(const TensorEntry& t, int64_t at, int64_t left, bool vector,
                                        bool bf16_copy) {
    if constexpr (kRemainder) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        param[i] = (upper_half(p[2 * i]) & 0xffff) | upper_half(p[2 * i + 1]) << 16;
        remainder[i] = (__float_as_uint(p[2 * i]) & 0xffff) | __float_as_uint(p[2 * i + 1]) << 16;
      }
      store4(t.param + at, left, vector, param);
      store4(reinterpret_cast<uint16_t*>(t.remainder) + at, left, vector, remainder);
    } else {
      store4(t.master + at, left, vector, p);
      if (bf16_copy) {
        const uint32_t rounded[2] = {pack_bf16(p[0], p[1]), pack_bf16(p[2], p[3])};
        store4(t.param + at, left, vector, rounded);
      }
    }
    store4(t.m + at, left, vector, m);
    store4(t.v + at, left, vector, v);
  }
};

template <bool kGradF32, bool kRemainder, bool kVector>
__device__ __forceinline__ void adamw_chunk(const TensorEntry& t, int64_t first, const AdamWArgs& a,
                                            const Rates& rates, bool bf16_copy) {
  constexpr int kGroups = 2, kStride = kThreads * 4;
  for (int base = 0; base < kChunk; base += kGroups * kStride) {
    Group<kGradF32, kRemainder> group[kGroups];
    int64_t at[kGroups];
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      at[i] = first + base + i * kStride + threadIdx.x * 4;
      group[i].load(t, at[i], kVector ? 4 : t.count - at[i], kVector);
    }
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      group[i].step(a, rates);
      group[i].store(t, at[i], kVector ? 4 : t.count - at[i], kVector, bf16_copy);
    }
  }
}

// `args` is no __grid_constant__: nvcc 13.0.88 then drops the conditional assignment to rates.lr
// (seen in its PTX, and by the emulator's tests).
template <bool kGradF32, bool kRemainder>
__global__ void __launch_bounds__(kThreads, 4)
    adamw_kernel(const __grid_constant__ TensorTable table, const AdamWArgs args) {
  Rates rates = {args.lr, args.correction1, args.correction2, 1.0f};
  if (args.factor != nullptr) rates.factor = *args.factor;
  if (!(fabsf(rates.factor) < __int_as_float(0x7f800000))) return;
  if (args.lr_step != nullptr) {
    rates.lr = args.lr_step[0];
    rates.correction1 = 1 / (1 - powf(args.beta1, args.lr_step[1]));
    rates.correction2 = 1 / (1 - powf(args.beta2, args.lr_step[1]));
  }
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const TensorEntry t = table.entries[find_tensor(table, chunk)];
    const int64_t first = (chunk - t.first_chunk) * kChunk;
    // A full chunk of an aligned tensor needs no check of its elements.
    if (t.vector && t.count - first >= kChunk)
      adamw_chunk<kGradF32, kRemainder, true>(t, first, args, rates, table.bf16_copy);
    else
      adamw_chunk<kGradF32, kRemainder, false>(t, first, args, rates, table.bf16_copy);
  }
}

template <bool kGradF32>
__global__ void __launch_bounds__(kThreads)
    grad_norm_kernel(const __grid_constant__ TensorTable table, float max_norm, double* partial,
                     unsigned* counter, float* norm, float* factor) {
  __shared__ double sums[kThreads];
  double total = 0;
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const TensorEntry t = table.entries[find_tensor(table, chunk)];
    const int64_t first = (chunk - t.first_chunk) * kChunk;
    float sum[4] = {};
#pragma unroll
    for (int i = 0; i < kChunk / (kThreads * 4); ++i) {
      const int64_t at = first + i * (kThreads * 4) + threadIdx.x * 4;
      float g[4];
      load_grads<kGradF32>(t.grad, at, t.count - at, t.vector, g);
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[j] += g[j] * g[j];
    }
    total += static_cast<double>((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
  // Sums over the CTA, then over the CTAs by the last one, always in the same order.
  auto cta_sum = [&](double v) {
    sums[threadIdx.x] = v;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
    return sums[0];
  };
  const double mine = cta_sum(total);
  if (threadIdx.x == 0) partial[blockIdx.x] = mine;
  if (!last_to_arrive(counter, gridDim.x)) return;
  double all = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) all += __ldcg(partial + i);
  __syncthreads();
  all = cta_sum(all);
  if (threadIdx.x == 0) {
    const float root = static_cast<float>(sqrt(all));
    *norm = root;
    const bool finite = root < __int_as_float(0x7f800000);
    *factor = finite ? fminf(1.0f, max_norm / (root + 1e-6f)) : __int_as_float(0x7fc00000);
  }
}

}  // namespace

cudaError_t launch_adamw(const TensorTable& t, const AdamWArgs& a, cudaStream_t stream) {
  const auto kernel = t.grads_f32
                          ? (t.remainder ? adamw_kernel<true, true> : adamw_kernel<true, false>)
                          : (t.remainder ? adamw_kernel<false, true> : adamw_kernel<false, false>);
  kernel<<<t.blocks, kThreads, 0, stream>>>(t, a);
  return cudaGetLastError();
}

cudaError_t launch_grad_norm(const TensorTable& t, float max_norm, double* partial,
                             unsigned* counter, float* norm, float* factor, cudaStream_t stream) {
  const auto kernel = t.grads_f32 ? grad_norm_kernel<true> : grad_norm_kernel<false>;
  kernel<<<t.blocks, kThreads, 0, stream>>>(t, max_norm, partial, counter, norm, factor);
  return cudaGetLastError();
}

}  // namespace ptxbench::te::device
