#pragma once
// What the mma.sync attention kernels share: tiles of one head's rows in shared memory, their
// fragments, and products of a warp's 16 rows. Device code.
//
// A row is HeadDim bf16 and 16 bytes of padding, so that the eight rows of an ldmatrix touch all
// banks. Accumulators are m16n8 blocks: values 0, 1 belong to row lane/4, values 2, 3 to the row 8
// below; columns 2*(lane%4) and the next.

#include <cuda_bf16.h>

#include <cmath>
#include <cstdint>

#include <ptxbench/ptx_sm80.cuh>

namespace ptxbench::sm80 {

constexpr float kLog2E = 1.44269504088896340736f;

template <int HeadDim>
constexpr int kPitch = HeadDim * 2 + 16;  // bytes of a row in shared memory

template <int HeadDim, int Rows>
constexpr int kTileBytes = Rows* kPitch<HeadDim>;

// Rows row0 .. row0+Rows-1 of a head [rows, HeadDim], zeros past its end, with cp.async.
template <int HeadDim, int Rows, int Threads>
__device__ __forceinline__ void load_rows(uint32_t tile, const __nv_bfloat16* head, int row0,
                                          int rows) {
  constexpr int kChunks = HeadDim / 8;
#pragma unroll
  for (int i = 0; i < Rows * kChunks / Threads; ++i) {
    const int index = i * Threads + static_cast<int>(threadIdx.x);
    const int row = index / kChunks, chunk = index % kChunks;
    const bool inside = row0 + row < rows;
    const __nv_bfloat16* source =
        inside ? head + static_cast<int64_t>(row0 + row) * HeadDim + chunk * 8 : head;
    ptx::cp_async_16(tile + row * kPitch<HeadDim> + chunk * 16, source, inside ? 16 : 0);
  }
}

// d[Columns/8] += a warp's 16 rows of A * B^T: A rows from `a`, B's `Columns` rows from `b`, both
// with the head dimension as K. E4m3: two e4m3 lie in the place of each bf16.
template <int HeadDim, int Columns, bool E4m3 = false>
__device__ __forceinline__ void multiply_rows(float (&d)[Columns / 8][4], uint32_t a, uint32_t b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t a_lane = a + lane % 16 * kPitch<HeadDim> + lane / 16 * 16;
  const uint32_t b_lane = b + (lane / 16 * 8 + lane % 8) * kPitch<HeadDim> + lane / 8 % 2 * 16;
#pragma unroll
  for (int k = 0; k < HeadDim / 16; ++k) {
    uint32_t fa[4], fb[4];
    ptx::ldmatrix_x4(fa, a_lane + k * 32);
#pragma unroll
    for (int n = 0; n < Columns / 16; ++n) {
      ptx::ldmatrix_x4(fb, b_lane + n * 16 * kPitch<HeadDim> + k * 32);
      if constexpr (E4m3) {
        ptx::mma_m16n8k32_e4m3(d[2 * n], fa, fb[0], fb[1]);
        ptx::mma_m16n8k32_e4m3(d[2 * n + 1], fa, fb[2], fb[3]);
      } else {
        ptx::mma_m16n8k16_bf16(d[2 * n], fa, fb[0], fb[1]);
        ptx::mma_m16n8k16_bf16(d[2 * n + 1], fa, fb[2], fb[3]);
      }
    }
  }
}

// d[HeadDim/8] += weights[16, K] * B[K, HeadDim]: weights from registers, rounded to bf16, B's K
// rows from `b`.
template <int HeadDim, int K>
__device__ __forceinline__ void accumulate_rows(float (&d)[HeadDim / 8][4],
                                                const float (&weights)[K / 8][4], uint32_t b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t b_lane = b + lane % 16 * kPitch<HeadDim> + lane / 16 * 16;
  auto pack = [](float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&pair);
  };
#pragma unroll
  for (int k = 0; k < K / 16; ++k) {
    const float(&left)[4] = weights[2 * k];
    const float(&right)[4] = weights[2 * k + 1];
    const uint32_t fa[4] = {pack(left[0], left[1]), pack(left[2], left[3]),
                            pack(right[0], right[1]), pack(right[2], right[3])};
#pragma unroll
    for (int n = 0; n < HeadDim / 16; ++n) {
      uint32_t fb[4];
      ptx::ldmatrix_x4_trans(fb, b_lane + k * 16 * kPitch<HeadDim> + n * 32);
      ptx::mma_m16n8k16_bf16(d[2 * n], fa, fb[0], fb[1]);
      ptx::mma_m16n8k16_bf16(d[2 * n + 1], fa, fb[2], fb[3]);
    }
  }
}

// A warp's 16 rows, row `row` of the head on, each half times its factor, as bf16.
template <int HeadDim>
__device__ __forceinline__ void store_rows(__nv_bfloat16* head, const float (&d)[HeadDim / 8][4],
                                           float upper, float lower, int row, int rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  __nv_bfloat16* out = head + static_cast<int64_t>(row + lane / 4) * HeadDim + lane % 4 * 2;
#pragma unroll
  for (int n = 0; n < HeadDim / 8; ++n) {
    if (row + lane / 4 < rows) {
      *reinterpret_cast<__nv_bfloat162*>(out + n * 8) =
          __floats2bfloat162_rn(d[n][0] * upper, d[n][1] * upper);
    }
    if (row + lane / 4 + 8 < rows) {
      *reinterpret_cast<__nv_bfloat162*>(out + 8 * HeadDim + n * 8) =
          __floats2bfloat162_rn(d[n][2] * lower, d[n][3] * lower);
    }
  }
}

}  // namespace ptxbench::sm80
