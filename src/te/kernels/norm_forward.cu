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

constexpr int kPart = 256;  // columns of a part: one warp's

// Sum over kLanes neighbouring lanes.
template <int kLanes>
__device__ __forceinline__ float lanes_sum(float v) {
#pragma unroll
  for (int d = kLanes / 2; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}

// (mean, rstd) of a row from its `count` parts, which four lanes share; mean is 0 for RMSNorm.
// Means are taken relative to that of the first part.
template <bool kLayer>
__device__ __forceinline__ float2 merge(const float2* parts, int count, int stride, int lane,
                                        const NormForwardArgs& a) {
  const float of_last = static_cast<float>(static_cast<int>(a.cols) - (count - 1) * kPart);
  const float pivot = kLayer ? parts[0].x : 0;
  float sum = 0, squares = 0;
#pragma unroll 4
  for (int p = lane; p < count; p += 4) {
    const float2 part = parts[p * stride];
    squares += part.y;
    if constexpr (kLayer) {
      const float d = part.x - pivot, weighted = d * (p == count - 1 ? of_last : float{kPart});
      sum += weighted;
      squares += d * weighted;
    }
  }
  const float offset = kLayer ? lanes_sum<4>(sum) * a.inverse_cols : 0;
  squares = lanes_sum<4>(squares) * a.inverse_cols - offset * offset;
  squares = squares < 0 ? 0 : squares;  // NaN stays
  return {pivot + offset, rsqrtf(squares + a.epsilon)};
}

template <class T, bool kLayer, bool kVector, int kMinBlocks>
__global__ void __launch_bounds__(T::kThreads, kMinBlocks)
    norm_forward_kernel(const __grid_constant__ NormForwardArgs a) {
  constexpr int kRowWarps = T::kTx / 32;
  static_assert(T::kTx % 32 == 0);
  // The transposed tile, then the parts of the cluster's rows [part][row].
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ uint64_t exchanged;  // the parts of all CTAs are here
  __shared__ float scratch[T::kThreads / 32];
  float2* parts = reinterpret_cast<float2*>(shared + T::kSharedBytes);
  if (threadIdx.x == 0)
    expect_remote(&exchanged, T::kRows * a.cluster * kRowWarps * uint32_t{sizeof(float2)});
  cluster_arrive_relaxed();  // answered before the first access to another CTA's memory
  const uint32_t rank = cluster_rank();
  const int tx = threadIdx.x % T::kTx, ty = threadIdx.x / T::kTx, lane = threadIdx.x % 32;
  const int64_t row0 = int64_t{cluster_index()} * T::kRows, col0 = int64_t{rank} * T::kCols;
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
  if constexpr (kVector) {
    // The tile of a later cluster into L2, so that DRAM stays busy while this one computes and
    // stores.
    constexpr int kLines = T::kCols / 64;  // of 128 bytes in a row of the tile
#pragma unroll
    for (int i = 0; i < T::kRows * kLines; i += T::kThreads) {
      const int line = i + threadIdx.x;
      const int64_t later = row0 + int64_t{a.prefetch} * T::kRows + line / kLines;
      const int64_t at = col0 + line % kLines * 64;
      if (a.prefetch > 0 && later < a.rows && at < a.cols) prefetch_line(a.x + later * a.cols + at);
    }
  }

  // Statistics of the warp's columns: the mean, then squared differences from it.
  const int part = rank * kRowWarps + tx / 32;
  float mean = 0, squares_of[8];
  if constexpr (kLayer) {
    const int part_left = static_cast<int>(a.cols) - part * kPart;
    const float columns = static_cast<float>(part_left < 1       ? 1
                                             : part_left < kPart ? part_left
                                                                 : kPart);
    float sums[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float v[8];
      unpack8(raw[i], v);
      sums[i] = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
      forget(raw[i]);
    }
    mean = warp_sum8(sums) * __frcp_rn(columns);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    // Missing columns are zero and count nothing.
    float pivot = kLayer ? __shfl_sync(~0u, mean, i * 4) : 0;
    if (kVector && valid <= 0) pivot = 0;
    float v[8];
    unpack8(raw[i], v);
    squares_of[i] = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float d = v[j] - pivot;
      squares_of[i] += kVector || j < valid ? d * d : 0;
    }
  }
  const float squares = warp_sum8(squares_of);
  cluster_wait();
  for (uint32_t to = lane % 4; to < a.cluster; to += 4)
    send_remote(parts + part * T::kRows + ty * 8 + lane / 4, {mean, squares}, &exchanged, to);
  const uint4 raw_gamma = load8<kVector>(a.gamma + col, valid);
  const uint4 raw_beta =
      kLayer && a.beta != nullptr ? load8<kVector>(a.beta + col, valid) : uint4{0, 0, 0, 0};
  const float scale = a.out.scale != nullptr ? *a.out.scale : 1.0f;
  wait_remote(&exchanged);
  // Lane l has (-mean * rstd, rstd) of the warp's row l / 4.
  const float2 merged =
      merge<kLayer>(parts + ty * 8 + lane / 4, (static_cast<int>(a.cols) + kPart - 1) / kPart,
                    T::kRows, lane % 4, a);
  if (rank == 0 && tx < 32 && lane % 4 == 0 && lane / 4 < rows_left) {
    if (kLayer && a.mean != nullptr) a.mean[row + lane / 4] = merged.x;
    if (a.rstd != nullptr) a.rstd[row + lane / 4] = merged.y;
  }
  const float shift = -merged.x * merged.y;
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
    const float2 s = {kLayer ? __shfl_sync(~0u, shift, i * 4) : 0,
                      __shfl_sync(~0u, merged.y, i * 4)};
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
  put_amax(amax, a.out.amax, scratch);
  if (a.out.transpose != nullptr)
    store_transposed<T, kVector>(q, shared, a.out.transpose, row0, col0, a.rows, a.cols);
  else
    __syncthreads();
  take_amax<T::kThreads>(a.out.amax, scratch);
}

template <class T, bool kLayer, bool kVector, int kMinBlocks>
cudaError_t launch_kernel(const NormForwardArgs& args, cudaStream_t stream) {
  constexpr int kParts = kMostCtas * (T::kTx / 32) * T::kRows * int{sizeof(float2)};
  constexpr int kShared = T::kSharedBytes + kParts;
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
