// Norm backward. A thread owns eight columns for the whole kernel and keeps their dgamma and dbeta
// in registers; a CTA (or a cluster, for rows wider than one CTA) takes four rows at a time, so
// that the two row sums of four rows are one eight-value warp reduction. Partial results of the
// warps are exchanged through two buffers in turn, so one barrier a batch is enough.
#include "te/kernels/cluster.cuh"
#include "te/kernels/norm_launch.h"
#include "te/kernels/tile.cuh"

namespace ptxbench::te::device {
namespace {

constexpr int kBatch = 4;  // rows

template <int kThreads, bool kLayer, bool kVector>
__global__ void __launch_bounds__(kThreads, 512 / kThreads)
    norm_backward_kernel(const __grid_constant__ NormBackwardArgs a) {
  constexpr int kWarps = kThreads / 32;
  // Sums of a warp over its columns: [turn][part][row of the batch] of (sum g, sum g n).
  __shared__ float2 parts[2][kMostCtas * kWarps][kBatch];
  cluster_arrive_relaxed();
  const uint32_t rank = cluster_rank(), group = blockIdx.x / a.cluster;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t col = (int64_t{rank} * kThreads + threadIdx.x) * 8;
  const int valid = up_to8(a.cols - col);
  const int count = static_cast<int>(a.cluster) * kWarps, part = rank * kWarps + warp;
  float gamma[8], dgamma[8] = {}, dbeta[8] = {};
  unpack8(load8<kVector>(a.gamma + col, valid), gamma);
#pragma unroll
  for (int j = 0; j < 8; ++j) gamma[j] = j < valid ? gamma[j] + a.gamma_offset : 0;
  const float columns = static_cast<float>(a.cols);
  cluster_wait();

  int turn = 0;
  for (int64_t first = int64_t{group} * kBatch; first < a.rows;
       first += int64_t{a.groups} * kBatch) {
    uint4 raw_dy[kBatch], raw_x[kBatch];
    float mean[kBatch], rstd[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int64_t row = first + i;
      const int left = row < a.rows ? valid : 0;
      raw_dy[i] = load8<kVector>(a.dy + row * a.cols + col, left);
      raw_x[i] = load8<kVector>(a.x + row * a.cols + col, left);
      mean[i] = kLayer && row < a.rows ? a.mean[row] : 0;
      rstd[i] = row < a.rows ? a.rstd[row] : 0;
    }
    float sums[2 * kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      float dy[8], x[8];
      unpack8(raw_dy[i], dy);
      unpack8(raw_x[i], x);
      float sum = 0, product = 0;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float n = j < valid ? (x[j] - mean[i]) * rstd[i] : 0, g = dy[j] * gamma[j];
        dgamma[j] += dy[j] * n;
        dbeta[j] += dy[j];
        sum += g;
        product += g * n;
      }
      sums[2 * i] = sum, sums[2 * i + 1] = product;
    }
    const float mine = warp_sum8(sums);  // of value lane / 4
    const float other = __shfl_xor_sync(~0u, mine, 4);
    if (lane % 8 == 0) {
      for (uint32_t to = 0; to < a.cluster; ++to)
        store_remote(&parts[turn][part][lane / 8], {mine, other}, to);
    }
    if (a.cluster > 1) {
      cluster_arrive();
      cluster_wait();
    } else {
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      float g_mean = 0, product_mean = 0;
      for (int p = 0; p < count; ++p) {
        const float2 v = parts[turn][p][i];
        g_mean += v.x, product_mean += v.y;
      }
      g_mean = kLayer ? g_mean / columns : 0;
      product_mean /= columns;
      const int64_t row = first + i;
      const int left = row < a.rows ? valid : 0;
      forget(raw_dy[i]);
      forget(raw_x[i]);
      float dy[8], x[8], out[8], extra[8] = {};
      unpack8(raw_dy[i], dy);
      unpack8(raw_x[i], x);
      if (a.residual != nullptr)
        unpack8(load8<kVector>(a.residual + row * a.cols + col, left), extra);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float n = (x[j] - mean[i]) * rstd[i];
        out[j] = rstd[i] * (dy[j] * gamma[j] - g_mean - n * product_mean) + extra[j];
      }
      store8<kVector>(a.dx + row * a.cols + col, pack8(out), left);
    }
    turn ^= 1;
  }
  float* partial = a.partial + int64_t{group} * 2 * a.cols + col;
#pragma unroll
  for (int j = 0; j < 8; ++j)
    if (j < valid) partial[j] = dgamma[j], partial[a.cols + j] = dbeta[j];
  if (a.cluster > 1) {  // nobody leaves while others may still write into its memory
    cluster_arrive();
    cluster_wait();
  }
}

constexpr int kSumColumns = 32, kSumRows = 16;

__global__ void __launch_bounds__(kSumColumns* kSumRows)
    column_sums_kernel(const __grid_constant__ NormBackwardArgs a) {
  __shared__ float sums[2][kSumRows][kSumColumns + 1];
  const int lane = threadIdx.x % kSumColumns, slice = threadIdx.x / kSumColumns;
  const int64_t col = int64_t{blockIdx.x} * kSumColumns + lane;
  float dgamma = 0, dbeta = 0;
  if (col < a.cols) {
#pragma unroll 4
    for (uint32_t g = slice; g < a.groups; g += kSumRows) {
      dgamma += a.partial[int64_t{g} * 2 * a.cols + col];
      dbeta += a.partial[(int64_t{g} * 2 + 1) * a.cols + col];
    }
  }
  sums[0][slice][lane] = dgamma, sums[1][slice][lane] = dbeta;
  __syncthreads();
  if (slice >= 2 || col >= a.cols) return;
  float total = 0;
#pragma unroll
  for (int s = 0; s < kSumRows; ++s) total += sums[slice][s][lane];
  float* out = slice == 0 ? a.dgamma : a.dbeta;
  if (out != nullptr) out[col] = total;
}

template <int kThreads, bool kLayer, bool kVector>
cudaError_t launch_kernel(const NormBackwardArgs& args, cudaStream_t stream) {
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {args.cluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(args.groups * args.cluster);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, norm_backward_kernel<kThreads, kLayer, kVector>, args);
}

template <bool kLayer, bool kVector>
cudaError_t launch_threads(const NormBackwardArgs& args, cudaStream_t stream) {
  switch (args.threads) {
    case 64:
      return launch_kernel<64, kLayer, kVector>(args, stream);
    case 128:
      return launch_kernel<128, kLayer, kVector>(args, stream);
    case 256:
      return launch_kernel<256, kLayer, kVector>(args, stream);
    case 512:
      return launch_kernel<512, kLayer, kVector>(args, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_norm_backward(const NormBackwardArgs& a, cudaStream_t stream) {
  const bool layer = a.kind == NormKind::layer;
  const cudaError_t status = layer ? (a.vector ? launch_threads<true, true>(a, stream)
                                               : launch_threads<true, false>(a, stream))
                                   : (a.vector ? launch_threads<false, true>(a, stream)
                                               : launch_threads<false, false>(a, stream));
  if (status != cudaSuccess) return status;
  column_sums_kernel<<<(a.cols + kSumColumns - 1) / kSumColumns, kSumColumns * kSumRows, 0,
                       stream>>>(a);
  return cudaGetLastError();
}

}  // namespace ptxbench::te::device
