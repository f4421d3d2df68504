#pragma once
// Read a tile, compute in fp32, cast to FP8, write it straight and transposed; column sums on the
// way. One launch, whatever is asked for. What differs between the operations is a Source: what a
// thread loads for eight neighbouring elements of a row, and what it makes of them.
//
// Column sums (the bias gradient): a CTA takes every runs-th tile of a column and keeps their sums
// in registers, then writes them to the workspace; the last CTA of a column adds up what its CTAs
// wrote in order, so that the result does not depend on the schedule. The next tile's first rows
// are asked for before this tile is stored.

#include "te/kernels/activation.cuh"
#include "te/kernels/fused_cast_launch.h"
#include "te/kernels/tile.cuh"

namespace ptxbench::te::device {

// ---- sources: kOutputs values per element; kBatch rows are loaded before the first is used;
// kMinThreads of a multiprocessor must find registers ----

// Where eight elements lie, in elements from the start of the matrices.
struct Place {
  int64_t at;     // in a matrix of `cols` columns
  int64_t gated;  // in one of 2 * cols columns: the gates
};

struct PlainBf16 {
  static constexpr int kOutputs = 1, kBatch = 8, kMinThreads = 1024;
  struct Raw {
    uint4 x;
  };
  template <bool kVector>
  static __device__ __forceinline__ Raw load(const FusedCastArgs& a, const Place& p, int valid) {
    return {load8<kVector>(static_cast<const uint16_t*>(a.in) + p.at, valid)};
  }
  static __device__ __forceinline__ void values(const Raw& raw, float (&v)[1][8]) {
    unpack8(raw.x, v[0]);
  }
};

struct PlainF32 {
  static constexpr int kOutputs = 1, kBatch = 4, kMinThreads = 768;
  struct Raw {
    float x[8];
  };
  template <bool kVector>
  static __device__ __forceinline__ Raw load(const FusedCastArgs& a, const Place& p, int valid) {
    const float* x = static_cast<const float*>(a.in) + p.at;
    Raw raw;
    if constexpr (kVector) {
      const uint4 zero = {0, 0, 0, 0};
      const uint4 u[2] = {valid > 0 ? load_streaming(x) : zero,
                          valid > 0 ? load_streaming(x + 4) : zero};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        raw.x[4 * i] = __uint_as_float(u[i].x), raw.x[4 * i + 1] = __uint_as_float(u[i].y);
        raw.x[4 * i + 2] = __uint_as_float(u[i].z), raw.x[4 * i + 3] = __uint_as_float(u[i].w);
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) raw.x[i] = i < valid ? x[i] : 0.0f;
    }
    return raw;
  }
  static __device__ __forceinline__ void values(const Raw& raw, float (&v)[1][8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) v[0][i] = raw.x[i];
  }
};

struct GeluForward : PlainBf16 {
  static __device__ __forceinline__ void values(const Raw& raw, float (&v)[1][8]) {
    unpack8(raw.x, v[0]);
#pragma unroll
    for (int i = 0; i < 8; ++i) v[0][i] = gelu(v[0][i]);
  }
};

// silu(gate) * up; a row is the gates, then the ups.
struct SwigluForward {
  static constexpr int kOutputs = 1, kBatch = 4, kMinThreads = 768;
  struct Raw {
    uint4 gate, up;
  };
  template <bool kVector>
  static __device__ __forceinline__ Raw load(const FusedCastArgs& a, const Place& p, int valid) {
    const uint16_t* x = static_cast<const uint16_t*>(a.in) + p.gated;
    return {load8<kVector>(x, valid), load8<kVector>(x + a.cols, valid)};
  }
  static __device__ __forceinline__ void values(const Raw& raw, float (&v)[1][8]) {
    float up[8];
    unpack8(raw.gate, v[0]);
    unpack8(raw.up, up);
#pragma unroll
    for (int i = 0; i < 8; ++i) v[0][i] = silu(v[0][i]) * up[i];
  }
};

struct GeluBackward {
  static constexpr int kOutputs = 1, kBatch = 8, kMinThreads = 512;
  struct Raw {
    uint4 grad, x;
  };
  template <bool kVector>
  static __device__ __forceinline__ Raw load(const FusedCastArgs& a, const Place& p, int valid) {
    return {load8<kVector>(static_cast<const uint16_t*>(a.grad) + p.at, valid),
            load8<kVector>(static_cast<const uint16_t*>(a.in) + p.at, valid)};
  }
  static __device__ __forceinline__ void values(const Raw& raw, float (&v)[1][8]) {
    float grad[8];
    unpack8(raw.x, v[0]);
    unpack8(raw.grad, grad);
#pragma unroll
    for (int i = 0; i < 8; ++i) v[0][i] = grad[i] * gelu_derivative(v[0][i]);
  }
};

// Gradients of gate and up, beside each other as in the input.
struct SwigluBackward {
  static constexpr int kOutputs = 2, kBatch = 2, kMinThreads = 512;
  struct Raw {
    uint4 grad, gate, up;
  };
  template <bool kVector>
  static __device__ __forceinline__ Raw load(const FusedCastArgs& a, const Place& p, int valid) {
    const uint16_t* x = static_cast<const uint16_t*>(a.in) + p.gated;
    return {load8<kVector>(static_cast<const uint16_t*>(a.grad) + p.at, valid),
            load8<kVector>(x, valid), load8<kVector>(x + a.cols, valid)};
  }
  static __device__ __forceinline__ void values(const Raw& raw, float (&v)[2][8]) {
    float grad[8];
    unpack8(raw.grad, grad);
    unpack8(raw.gate, v[0]);
    unpack8(raw.up, v[1]);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const Silu s = silu_with_derivative(v[0][i]);
      v[0][i] = grad[i] * v[1][i] * s.derivative;
      v[1][i] = grad[i] * s.value;
    }
  }
};

// ---- column sums ----

// The tile's sums of columns col0.. into the workspace: bias[j] is the thread's sum of column
// 8*tx + j. `sums` [kTy * kCols] floats at most; the CTA must not be using it.
template <class T>
__device__ __forceinline__ void tile_column_sums(float (&bias)[8], float* sums, float* out,
                                                 int valid) {
  const int tx = threadIdx.x % T::kTx;
  constexpr int kPerWarp = T::kTx < 32 ? 32 / T::kTx : 1;  // groups of rows in a warp
  constexpr int kGroups = T::kTy / kPerWarp;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int d = 16; d >= T::kTx; d /= 2) bias[j] += __shfl_xor_sync(~0u, bias[j], d);
  }
  const int group = threadIdx.x / (T::kTx * kPerWarp);
  if (kPerWarp == 1 || threadIdx.x % 32 < T::kTx) {
#pragma unroll
    for (int j = 0; j < 8; ++j) sums[group * T::kCols + tx * 8 + j] = bias[j];
  }
  __syncthreads();
  for (int c = threadIdx.x; c < T::kCols; c += T::kThreads) {
    float sum = 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) sum += sums[g * T::kCols + c];
    if (c < valid) out[c] = sum;
  }
}

// out[c] = sum over i of partial[i * stride + c], in a fixed order; all threads of the CTA.
template <class T>
__device__ __forceinline__ void add_partial_sums(const float* partial, int64_t count,
                                                 int64_t stride, int valid, float* sums,
                                                 float* out) {
  constexpr int kGroups = T::kThreads > T::kCols ? T::kThreads / T::kCols : 1;
  constexpr int kColumnThreads = T::kThreads / kGroups;
  const int group = threadIdx.x / kColumnThreads;
  for (int c = threadIdx.x % kColumnThreads; c < T::kCols; c += kColumnThreads) {
    float sum = 0;
    if (c < valid) {
#pragma unroll 8
      for (int64_t i = group; i < count; i += kGroups) sum += __ldcg(partial + i * stride + c);
    }
    if (kGroups == 1) {
      if (c < valid) out[c] = sum;
    } else {
      sums[group * T::kCols + c] = sum;
    }
  }
  if (kGroups == 1) return;
  __syncthreads();
  if (threadIdx.x < T::kCols && threadIdx.x < valid) {
    float sum = 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) sum += sums[g * T::kCols + threadIdx.x];
    out[threadIdx.x] = sum;
  }
}

// ---- the kernel ----

// kVector: every row of every operand is aligned for the widest access (fused_cast.h).
template <class Source, Fp8Format kFormat, class T, bool kVector, bool kBias, int kMinBlocks>
__global__ void __launch_bounds__(T::kThreads, kMinBlocks)
    fused_cast_kernel(const __grid_constant__ FusedCastArgs a) {
  constexpr int kOutputs = Source::kOutputs, kBatch = Source::kBatch;
  // With a run of tiles, one is written while the slowest warps still read the one before.
  __shared__ __align__(16) uint8_t shared[kBias ? 2 : 1][T::kSharedBytes];
  __shared__ float scratch[T::kThreads / 32];
  if (a.noop != nullptr && *a.noop == 1.0f) return;
  const uint32_t block = blockIdx.x, runs = a.runs;
  const int64_t run = a.down_first ? block % runs : block / a.tile_cols;
  const int64_t tile_c = a.down_first ? block / runs : block % a.tile_cols;
  const int tx = threadIdx.x % T::kTx, ty = threadIdx.x / T::kTx;
  const int64_t col0 = tile_c * T::kCols, col = col0 + tx * 8;
  int64_t row0 = run * T::kRows, row = row0 + ty * 8;
  const int64_t out_cols = a.cols * kOutputs;
  // Of the thread's square: rows and columns that exist. kVector: all eight of each, or nothing.
  const int valid = up_to8(a.cols - col);
  const int tile_left = static_cast<int>(a.cols - col0 < T::kCols ? a.cols - col0 : T::kCols);
  const float scale = a.out.scale != nullptr ? *a.out.scale : 1.0f;
  if (block == 0 && threadIdx.x == 0 && a.out.scale_inv != nullptr)
    *a.out.scale_inv = __frcp_rn(scale);

  float bias[kOutputs][8] = {};
  float amax = 0;
  typename Source::Raw raw[kBatch];
  Place place = {row * a.cols + col, 2 * row * a.cols + col};
  // Rows `first`.. of the square, of which `left` exist.
  const auto load = [&](int first, int left) {
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const bool there = kVector ? left > 0 : first + i < left;
      raw[i] = Source::template load<kVector>(a, place, there ? valid : 0);
      place.at += a.cols, place.gated += 2 * a.cols;
    }
  };
  load(0, up_to8(a.rows - row));
  const int64_t step = int64_t{runs} * T::kRows;
  for (uint32_t tile = 0;; ++tile) {
    const int rows_left = up_to8(a.rows - row);
    uint2 q[kOutputs][8];
#pragma unroll
    for (int first = 0; first < 8; first += kBatch) {
      if (first > 0) load(first, rows_left);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        float v[kOutputs][8];
        Source::values(raw[i], v);
#pragma unroll
        for (int o = 0; o < kOutputs; ++o) {
          amax = amax8(v[o], amax);
          if constexpr (kBias) {
#pragma unroll
            for (int j = 0; j < 8; ++j) bias[o][j] += v[o][j];
          }
          q[o][first + i] = quantize8<kFormat>(v[o], scale);
        }
      }
    }
    const bool more = kBias && row0 + step < a.rows;
    if (more) {
      place.at += (step - 8) * a.cols, place.gated += 2 * (step - 8) * a.cols;
      load(0, up_to8(a.rows - row - step));
    }
    if (a.out.data != nullptr && rows_left > 0 && valid > 0) {
      uint8_t* to = a.out.data + row * out_cols + col;
#pragma unroll
      for (int i = 0; i < 8; ++i, to += out_cols) {
        if (!kVector && i >= rows_left) break;
#pragma unroll
        for (int o = 0; o < kOutputs; ++o) store8<kVector>(to + o * a.cols, q[o][i], valid);
      }
    }
    if constexpr (!kBias) put_amax(amax, a.out.amax, scratch);
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      if (a.out.transpose == nullptr) break;
      if (!kBias && o > 0) __syncthreads();
      uint8_t* const buffer = shared[kBias ? (tile * kOutputs + o) % 2 : 0];
      store_transposed<T, kVector>(q[o], buffer, a.out.transpose + o * a.cols * a.rows, row0, col0,
                                   a.rows, a.cols);
    }
    if (!more) break;
    row0 += step, row += step;
  }
  if constexpr (!kBias) {
    if (a.out.transpose == nullptr) __syncthreads();
    take_amax<T::kThreads>(a.out.amax, scratch);
  } else {
    commit_amax<T::kThreads>(amax, a.out.amax, scratch);
    __shared__ float sums[T::kColumnSums];
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      if (o > 0) __syncthreads();
      tile_column_sums<T>(bias[o], sums, a.partial + run * out_cols + o * a.cols + col0, tile_left);
    }
    if (!last_to_arrive(a.counters + tile_c, runs)) return;
    float* scratch_sums = reinterpret_cast<float*>(shared);
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      if (o > 0) __syncthreads();
      add_partial_sums<T>(a.partial + o * a.cols + col0, runs, out_cols, tile_left, scratch_sums,
                          a.dbias + o * a.cols + col0);
    }
  }
}

// ---- launch ----

constexpr int kMostBiasThreads = 512;

template <class Source, Fp8Format kFormat, class T, bool kVector>
cudaError_t launch_tile(const FusedCastArgs& args, cudaStream_t stream) {
  // The sums of a run live in registers beside the tile; element-wise accesses want many.
  constexpr int kThreads = kVector ? Source::kMinThreads : 256;
  constexpr int kBiasThreads = kThreads < kMostBiasThreads ? kThreads : kMostBiasThreads;
  const dim3 grid(args.runs * args.tile_cols);
  if (args.dbias != nullptr)
    fused_cast_kernel<Source, kFormat, T, kVector, true, kBiasThreads / T::kThreads>
        <<<grid, T::kThreads, 0, stream>>>(args);
  else
    fused_cast_kernel<Source, kFormat, T, kVector, false, kThreads / T::kThreads>
        <<<grid, T::kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

template <class Source, Fp8Format kFormat>
cudaError_t launch_shape(const FusedCastArgs& args, cudaStream_t stream) {
  if (!args.vector) return launch_tile<Source, kFormat, Tile<64, 8>, false>(args, stream);
  switch (args.tile) {
    case CastTile::t64x64:
      return launch_tile<Source, kFormat, Tile<64, 8>, true>(args, stream);
    case CastTile::t64x128:
      return launch_tile<Source, kFormat, Tile<128, 16>, true>(args, stream);
    case CastTile::t128x128:
      return launch_tile<Source, kFormat, Tile<256, 16>, true>(args, stream);
    case CastTile::t64x256:
      return launch_tile<Source, kFormat, Tile<256, 32>, true>(args, stream);
  }
  return cudaErrorInvalidValue;
}

template <class Source>
cudaError_t launch_source(const FusedCastArgs& args, cudaStream_t stream) {
  return args.format == Fp8Format::e4m3 ? launch_shape<Source, Fp8Format::e4m3>(args, stream)
                                        : launch_shape<Source, Fp8Format::e5m2>(args, stream);
}

}  // namespace ptxbench::te::device
