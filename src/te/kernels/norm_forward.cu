// Norm forward: see norm_forward.h for what, tile.cuh for the tile. A row of the tile lies in kTx
// threads, whole warps. Each warp reduces its 256 columns of eight rows to (mean, sum of squared
// differences from it), sends them to every CTA of the cluster, and after one cluster barrier they
// are merged in a fixed order (Chan et al., "Algorithms for computing the sample variance", 1983):
// as accurate as two passes, with one exchange.
#include "te/kernels/cluster.cuh"
#include "te/kernels/norm_launch.h"
#include "te/kernels/tile.cuh"

namespace ptxbench::te::device {
namespace {

// Columns of part p (256 columns, one warp's).
__device__ __forceinline__ float part_columns(int cols, int p) {
  const int left = cols - p * 256;
  return left >= 256 ? 256.0f : left > 0 ? static_cast<float>(left) : 0.0f;
}

// Sum over kLanes neighbouring lanes.
template <int kLanes>
__device__ __forceinline__ float lanes_sum(float v) {
#pragma unroll
  for (int d = kLanes / 2; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}

// (mean, rstd) of a row from its parts, which kLanes lanes share; mean is 0 for RMSNorm.
template <bool kLayer, int kLanes>
__device__ __forceinline__ float2 merge(const float2* parts, int count, int stride, int lane,
                                        const NormForwardArgs& a) {
  const int cols = static_cast<int>(a.cols);
  const float inverse = 1.0f / static_cast<float>(cols);
  float mean = 0, squares = 0;
  if constexpr (kLayer) {
    for (int p = lane; p < count; p += kLanes) mean += parts[p * stride].x * part_columns(cols, p);
    mean = lanes_sum<kLanes>(mean) * inverse;
  }
  for (int p = lane; p < count; p += kLanes) {
    const float2 part = parts[p * stride];
    const float d = part.x - mean;
    squares += kLayer ? part.y + d * d * part_columns(cols, p) : part.y;
  }
  squares = lanes_sum<kLanes>(squares);
  return {mean, rsqrtf(squares * inverse + a.epsilon)};
}

template <class T, bool kLayer, bool kVector, int kMinBlocks>
__global__ void __launch_bounds__(T::kThreads, kMinBlocks)
    norm_forward_kernel(const __grid_constant__ NormForwardArgs a) {
  constexpr int kRowWarps = T::kTx / 32;
  static_assert(T::kTx % 32 == 0);
  // The parts of the cluster's rows [part][row], then the transposed tile.
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ float2 stats[T::kRows];  // -mean * rstd, rstd
  __shared__ float scratch[T::kThreads / 32];
  float2* parts = reinterpret_cast<float2*>(shared);
  cluster_arrive_relaxed();  // answered before the first access to another CTA's memory
  const uint32_t rank = cluster_rank();
  const int tx = threadIdx.x % T::kTx, ty = threadIdx.x / T::kTx, lane = threadIdx.x % 32;
  const int64_t row0 = int64_t{blockIdx.x / a.cluster} * T::kRows, col0 = int64_t{rank} * T::kCols;
  const int64_t row = row0 + ty * 8, col = col0 + tx * 8;
  // Of the thread's square: rows and columns that exist. kVector: all eight of each, or nothing.
  const int rows_left = up_to8(a.rows - row);
  const int valid = up_to8(a.cols - col);
  const bool active = rows_left > 0 && valid > 0;

  uint4 raw[8];
  const uint16_t* from = a.x + row * a.cols + col;
#pragma unroll
  for (int i = 0; i < 8; ++i, from += a.cols)
    raw[i] = load8<kVector>(from, (kVector ? active : i < rows_left) ? valid : 0);
  const uint4 raw_gamma = load8<kVector>(a.gamma + col, valid);
  const uint4 raw_beta =
      kLayer && a.beta != nullptr ? load8<kVector>(a.beta + col, valid) : uint4{0, 0, 0, 0};

  if constexpr (kVector) {
    // The tile of a later cluster into L2, so that DRAM stays busy while this one computes and
    // stores.
    const int64_t later = row0 + int64_t{a.prefetch} * T::kRows + threadIdx.x;
    if (a.prefetch > 0 && threadIdx.x < T::kRows && later < a.rows && col0 < a.cols) {
      const int64_t left = a.cols - col0 < T::kCols ? a.cols - col0 : T::kCols;
      prefetch_l2(a.x + later * a.cols + col0, static_cast<uint32_t>(left * 2));
    }
  }

  // Statistics of the warp's columns: each thread's eight first, then over the lanes.
  const int part = rank * kRowWarps + tx / 32;
  const float columns = part_columns(static_cast<int>(a.cols), part);
  const float present = valid > 0 ? static_cast<float>(valid) : 0.0f;
  float mean = 0, sums[8], squares_of[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float v[8];
    unpack8(raw[i], v);
    float own = 0;  // mean of the thread's elements
    sums[i] = 0;
    if constexpr (kLayer) {
      sums[i] = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
      own = kVector ? sums[i] * 0.125f : sums[i] / fmaxf(present, 1.0f);
    }
    squares_of[i] = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float d = v[j] - own;
      squares_of[i] += kVector || j < valid ? d * d : 0;
    }
  }
  if constexpr (kLayer) {
    float to_add[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) to_add[i] = sums[i];
    mean = warp_sum8(to_add) * (columns > 0 ? __frcp_rn(columns) : 0);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float own = kVector ? sums[i] * 0.125f : sums[i] / fmaxf(present, 1.0f);
      const float d = own - __shfl_sync(~0u, mean, i * 4);
      squares_of[i] += present * d * d;
    }
  }
  const float squares = warp_sum8(squares_of);
  cluster_wait();
  for (uint32_t to = lane % 4; to < a.cluster; to += 4)
    store_remote(parts + part * T::kRows + ty * 8 + lane / 4, {mean, squares}, to);
  cluster_arrive();
  cluster_wait();
  {
    constexpr int kLanes = T::kTx / 8 < 32 ? T::kTx / 8 : 32;  // that share a row
    const int r = threadIdx.x / kLanes;
    if (r < T::kRows) {
      const float2 s = merge<kLayer, kLanes>(parts + r, a.cluster * kRowWarps, T::kRows,
                                             threadIdx.x % kLanes, a);
      if (threadIdx.x % kLanes == 0) {
        stats[r] = {kLayer ? -s.x * s.y : 0, s.y};
        if (rank == 0 && row0 + r < a.rows) {
          if (kLayer && a.mean != nullptr) a.mean[row0 + r] = s.x;
          if (a.rstd != nullptr) a.rstd[row0 + r] = s.y;
        }
      }
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
  int64_t at = row * a.cols + col;
#pragma unroll
  for (int i = 0; i < 8; ++i, at += a.cols) {
    const float2 s = stats[ty * 8 + i];
    forget(raw[i]);
    float v[8];
    unpack8(raw[i], v);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float normal = kLayer ? v[j] * s.y + s.x : v[j] * s.y;
      v[j] = kLayer ? normal * gamma[j] + beta[j] : normal * gamma[j];
    }
    q[i] = quantize8<Fp8Format::e4m3>(v, scale);
    if (!(kVector ? active : i < rows_left && valid > 0)) continue;
    if constexpr (kVector) {
      amax = amax8(v, amax);
    } else {
#pragma unroll
      for (int j = 0; j < 8; ++j) amax = j < valid ? fmaxf(amax, fabsf(v[j])) : amax;
    }
    if (a.out.data != nullptr) store8<kVector>(a.out.data + at, q[i], valid);
    if (a.y != nullptr) store8<kVector>(a.y + at, pack8(v), valid);
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
    case NormTile::t32x512_dense:
      return launch_kernel<Tile<256, 64>, kLayer, kVector, 4>(args, stream);
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
