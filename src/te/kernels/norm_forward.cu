// Norm forward: see norm_forward.h for what, tile.cuh for the tile. A row of the tile lies in kTx
// threads, whole warps. Each warp reduces its 256 columns of eight rows to (mean, sum of squared
// differences from it), sends them to every CTA of the cluster, and after one cluster barrier they
// are merged in a fixed order (Chan et al., "Algorithms for computing the sample variance", 1983):
// as accurate as two passes, with one exchange.
#include "te/kernels/norm_launch.h"
#include "te/kernels/tile.cuh"

namespace ptxbench::te::device {
namespace {

constexpr int kMostCtas = 8;  // of a portable cluster

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;");
}
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Writes to the same place in the shared memory of CTA `rank`.
__device__ __forceinline__ void store_remote(float2* p, float2 v, uint32_t rank) {
  const uint32_t here = static_cast<uint32_t>(__cvta_generic_to_shared(p));
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(v.x), "f"(v.y)
               : "memory");
}

// Sums of eight values over the warp; lane l gets that of value l / 4. Halving the set of values at
// each step takes 9 shuffles instead of 40.
__device__ __forceinline__ float warp_sum8(float (&v)[8]) {
#pragma unroll
  for (int d = 16, half = 4; half > 0; d /= 2, half /= 2) {
    const bool upper = threadIdx.x & d;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float keep = upper ? v[i + half] : v[i], send = upper ? v[i] : v[i + half];
      v[i] = keep + __shfl_xor_sync(~0u, send, d);
    }
  }
  v[0] += __shfl_xor_sync(~0u, v[0], 2);
  v[0] += __shfl_xor_sync(~0u, v[0], 1);
  return v[0];
}

// Columns of part p (256 columns, one warp's).
__device__ __forceinline__ float part_columns(int64_t cols, int64_t p) {
  const int64_t left = cols - p * 256;
  return left >= 256 ? 256.0f : left > 0 ? static_cast<float>(left) : 0.0f;
}

// (mean, rstd) of a row from the parts; mean is 0 for RMSNorm.
template <bool kLayer>
__device__ __forceinline__ float2 merge(const float2* parts, int count, int stride,
                                        const NormForwardArgs& a) {
  float mean = 0, squares = 0;
  if constexpr (kLayer) {
    for (int p = 0; p < count; ++p) mean += parts[p * stride].x * part_columns(a.cols, p);
    mean /= static_cast<float>(a.cols);
  }
  for (int p = 0; p < count; ++p) {
    const float2 part = parts[p * stride];
    const float d = part.x - mean;
    squares += kLayer ? part.y + d * d * part_columns(a.cols, p) : part.y;
  }
  return {mean, 1.0f / sqrtf(squares / static_cast<float>(a.cols) + a.epsilon)};
}

template <class T, bool kLayer, bool kVector, int kMinBlocks>
__global__ void __launch_bounds__(T::kThreads, kMinBlocks)
    norm_forward_kernel(const __grid_constant__ NormForwardArgs a) {
  constexpr int kRowWarps = T::kTx / 32;
  static_assert(T::kTx % 32 == 0);
  // The parts of the cluster's rows [part][row], then the transposed tile.
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ float2 stats[T::kRows];
  __shared__ float scratch[T::kThreads / 32];
  float2* parts = reinterpret_cast<float2*>(shared);
  cluster_arrive_relaxed();  // answered before the first access to another CTA's memory
  const uint32_t rank = cluster_rank();
  const int tx = threadIdx.x % T::kTx, ty = threadIdx.x / T::kTx, lane = threadIdx.x % 32;
  const int64_t row0 = int64_t{blockIdx.x / a.cluster} * T::kRows, col0 = int64_t{rank} * T::kCols;
  const int64_t row = row0 + ty * 8, col = col0 + tx * 8, valid = a.cols - col;

  uint4 raw[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    raw[i] = load8<kVector>(a.x + (row + i) * a.cols + col, row + i < a.rows ? valid : 0);
  const uint4 raw_gamma = load8<kVector>(a.gamma + col, valid);
  const uint4 raw_beta =
      kLayer && a.beta != nullptr ? load8<kVector>(a.beta + col, valid) : uint4{0, 0, 0, 0};

  // Statistics of the warp's columns.
  const int part = rank * kRowWarps + tx / 32;
  const float columns = part_columns(a.cols, part);
  float mean = 0, sums[8];
  if constexpr (kLayer) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float v[8];
      unpack8(raw[i], v);
      sums[i] = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
    }
    mean = columns > 0 ? warp_sum8(sums) / columns : 0;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    forget(raw[i]);
    const float row_mean = kLayer ? __shfl_sync(~0u, mean, i * 4) : 0;
    float v[8];
    unpack8(raw[i], v);
    sums[i] = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float d = v[j] - row_mean;
      sums[i] += j < valid ? d * d : 0;
    }
  }
  const float squares = warp_sum8(sums);
  cluster_wait();
  for (uint32_t to = lane % 4; to < a.cluster; to += 4)
    store_remote(parts + part * T::kRows + ty * 8 + lane / 4, {mean, squares}, to);
  cluster_arrive();
  cluster_wait();
  if (threadIdx.x < T::kRows) {
    const float2 s = merge<kLayer>(parts + threadIdx.x, a.cluster * kRowWarps, T::kRows, a);
    stats[threadIdx.x] = s;
    const int64_t r = row0 + threadIdx.x;
    if (rank == 0 && r < a.rows) {
      if (kLayer && a.mean != nullptr) a.mean[r] = s.x;
      if (a.rstd != nullptr) a.rstd[r] = s.y;
    }
  }
  __syncthreads();

  const float scale = a.out.scale != nullptr ? *a.out.scale : 1.0f;
  if (blockIdx.x == 0 && threadIdx.x == 0 && a.out.scale_inv != nullptr)
    *a.out.scale_inv = __frcp_rn(scale);
  float gamma[8], beta[8], amax = 0;
  unpack8(raw_gamma, gamma);
  unpack8(raw_beta, beta);
#pragma unroll
  for (int j = 0; j < 8; ++j) gamma[j] += a.gamma_offset;
  uint2 q[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float2 s = stats[ty * 8 + i];
    forget(raw[i]);
    float v[8];
    unpack8(raw[i], v);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float normal = (kLayer ? v[j] - s.x : v[j]) * s.y;
      v[j] = kLayer ? normal * gamma[j] + beta[j] : normal * gamma[j];
    }
    const int64_t left = row + i < a.rows ? valid : 0;
    if (left > 0) {
      if constexpr (kVector) {
        amax = amax8(v, amax);
      } else {
#pragma unroll
        for (int j = 0; j < 8; ++j) amax = j < left ? fmaxf(amax, fabsf(v[j])) : amax;
      }
    }
    q[i] = quantize8<Fp8Format::e4m3>(v, scale);
    const int64_t at = (row + i) * a.cols + col;
    if (a.out.data != nullptr) store8<kVector>(a.out.data + at, q[i], left);
    if (a.y != nullptr) store8<kVector>(a.y + at, pack8(v), left);
  }
  if (a.out.transpose != nullptr)
    store_transposed<T, kVector>(q, shared, a.out.transpose, row0, col0, a.rows, a.cols);
  commit_amax<T::kThreads>(amax, a.out.amax, scratch);
}

template <class T, bool kLayer, bool kVector, int kMinBlocks>
cudaError_t launch_kernel(const NormForwardArgs& args, cudaStream_t stream) {
  constexpr int kParts = kMostCtas * (T::kTx / 32) * T::kRows * int{sizeof(float2)};
  constexpr int kShared = kParts > T::kSharedBytes ? kParts : T::kSharedBytes;
  const auto kernel = norm_forward_kernel<T, kLayer, kVector, kMinBlocks>;
  if constexpr (kShared > 40 * 1024) {
    const cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
    if (status != cudaSuccess) return status;
  }
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {args.cluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(args.row_blocks * args.cluster);
  config.blockDim = dim3(T::kThreads);
  config.dynamicSmemBytes = kShared;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, args);
}

template <bool kLayer, bool kVector>
cudaError_t launch_tile(const NormForwardArgs& args, cudaStream_t stream) {
  switch (args.tile) {
    case NormTile::t64x256:
      return launch_kernel<Tile<256, 32>, kLayer, kVector, 3>(args, stream);
    case NormTile::t32x512:
      return launch_kernel<Tile<256, 64>, kLayer, kVector, 3>(args, stream);
    case NormTile::t64x512:
      return launch_kernel<Tile<512, 64>, kLayer, kVector, 2>(args, stream);
    case NormTile::t32x1024:
      return launch_kernel<Tile<512, 128>, kLayer, kVector, 2>(args, stream);
    case NormTile::t16x2048:
      return launch_kernel<Tile<512, 256>, kLayer, kVector, 2>(args, stream);
    case NormTile::t16x4096:
      return launch_kernel<Tile<1024, 512>, kLayer, kVector, 1>(args, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_norm_forward(const NormForwardArgs& args, cudaStream_t stream) {
  if (args.kind == NormKind::layer)
    return args.vector ? launch_tile<true, true>(args, stream)
                       : launch_tile<true, false>(args, stream);
  return args.vector ? launch_tile<false, true>(args, stream)
                     : launch_tile<false, false>(args, stream);
}

}  // namespace ptxbench::te::device
