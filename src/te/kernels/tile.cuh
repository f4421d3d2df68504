#pragma once
// The tile that casting kernels share. A CTA of kThreads threads owns 8*kThreads/kTx rows by 8*kTx
// columns; a thread holds 8 rows x 8 columns, so one of its rows is one 16-byte access in bf16 and
// 8 bytes in FP8.
//
// The transposed copy: each thread turns its 8x8 bytes around in registers (byte permutations),
// writes eight 8-byte pieces of columns to shared memory, and the CTA reads columns back 16 bytes a
// lane, so that a column of the tile leaves as whole 32-byte sectors. Position of piece q (its
// column within the thread's eight times the pieces of a column, plus the piece) of column group g:
// q ^ (g % 16) in 8-byte units. Sixteen lanes that write the same q of neighbouring groups, and
// eight lanes that read neighbouring 16-byte pairs, then meet every bank once.

#include "te/kernels/device.cuh"

namespace ptxbench::te::device {

template <int kThreads_, int kTx_>
struct Tile {
  static constexpr int kThreads = kThreads_, kTx = kTx_, kTy = kThreads / kTx;
  static constexpr int kRows = 8 * kTy, kCols = 8 * kTx;
  static constexpr int kSharedBytes = kRows * kCols;
  static constexpr int kColumnSums = kCols * (kTx < 32 ? kThreads / 32 : kTy);  // floats
  static_assert(kTy >= 2, "a column of the tile is read in pieces of 16 rows");
};

// Turns 4x4 bytes around: word i holds row i before, column i after.
__device__ __forceinline__ void transpose4x4(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d) {
  const uint32_t ab_low = __byte_perm(a, b, 0x5140), ab_high = __byte_perm(a, b, 0x7362);
  const uint32_t cd_low = __byte_perm(c, d, 0x5140), cd_high = __byte_perm(c, d, 0x7362);
  a = __byte_perm(ab_low, cd_low, 0x5410);
  b = __byte_perm(ab_low, cd_low, 0x7632);
  c = __byte_perm(ab_high, cd_high, 0x5410);
  d = __byte_perm(ab_high, cd_high, 0x7632);
}

// Turns 8x8 bytes around: q[i] holds row i before, column i after.
__device__ __forceinline__ void transpose8x8(uint2 (&q)[8]) {
  transpose4x4(q[0].x, q[1].x, q[2].x, q[3].x);
  transpose4x4(q[4].y, q[5].y, q[6].y, q[7].y);
  transpose4x4(q[0].y, q[1].y, q[2].y, q[3].y);
  transpose4x4(q[4].x, q[5].x, q[6].x, q[7].x);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t upper_right = q[i].y;
    q[i].y = q[i + 4].x;
    q[i + 4].x = upper_right;
  }
}

// How many of eight there are, of `left` that remain (any number).
__device__ __forceinline__ int up_to8(int64_t left) {
  return left < 8 ? static_cast<int>(left) : 8;
}

// Eight elements of a bf16 row that has `valid` left (any number; <= 0: none). Missing ones are 0.
// kVector: the address is a multiple of 16 and valid is <= 0 or >= 8. It is known when compiling,
// because a choice at run time would part the loads of a batch from each other.
template <bool kVector>
__device__ __forceinline__ uint4 load8(const uint16_t* p, int valid) {
  if constexpr (kVector) {
    return valid > 0 ? load_streaming(p) : uint4{0, 0, 0, 0};
  } else {
    // Through L1, since neighbouring elements are read one after the other.
    uint32_t v[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = i < valid ? __ldg(p + i) : 0;
    return {v[0] | v[1] << 16, v[2] | v[3] << 16, v[4] | v[5] << 16, v[6] | v[7] << 16};
  }
}

// The counterparts that store: 8 bytes of FP8, 8 bf16.
template <bool kVector>
__device__ __forceinline__ void store8(uint8_t* p, uint2 q, int valid) {
  if constexpr (kVector) {
    if (valid > 0) *reinterpret_cast<uint2*>(p) = q;
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < valid) p[i] = static_cast<uint8_t>((i < 4 ? q.x : q.y) >> (i % 4 * 8));
  }
}
template <bool kVector>
__device__ __forceinline__ void store8(uint16_t* p, const uint4& v, int valid) {
  if constexpr (kVector) {
    if (valid > 0) *reinterpret_cast<uint4*>(p) = v;
  } else {
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < valid) p[i] = static_cast<uint16_t>(words[i / 2] >> (i % 2 * 16));
  }
}

// Sixteen bytes at any address, of which `valid` belong to the row: words where they can be.
__device__ __forceinline__ void store16(uint8_t* p, const uint4& v, int64_t valid) {
  const uint32_t words[5] = {v.x, v.y, v.z, v.w, 0};
  const int head = static_cast<int>((4 - (reinterpret_cast<uintptr_t>(p) & 3)) & 3);
  if (valid >= 16) {
#pragma unroll
    for (int i = 0; i < 3; ++i)
      if (i < head) p[i] = static_cast<uint8_t>(v.x >> (8 * i));
    uint32_t* to = reinterpret_cast<uint32_t*>(p + head);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (i < 3 || head == 0) to[i] = __funnelshift_r(words[i], words[i + 1], 8 * head);
#pragma unroll
    for (int i = 0; i < 3; ++i)
      if (i >= 3 - (4 - head) && head != 0) p[13 + i] = static_cast<uint8_t>(v.w >> (8 * (i + 1)));
    return;
  }
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (i < valid) p[i] = static_cast<uint8_t>(words[i / 4] >> (i % 4 * 8));
}

// Writes the transposed tile. q: the thread's rows, used up. `out` is [cols][rows]; the tile begins
// at (row0, col0). kVector: rows % 16 == 0 and out is a multiple of 16. `shared` [T::kSharedBytes],
// 16-byte aligned; the CTA must not be using it.
template <class T, bool kVector>
__device__ __forceinline__ void store_transposed(uint2 (&q)[8], uint8_t* shared, uint8_t* out,
                                                 int64_t row0, int64_t col0, int64_t rows,
                                                 int64_t cols) {
  const int tx = threadIdx.x % T::kTx, ty = threadIdx.x / T::kTx;
  transpose8x8(q);
  uint8_t* group_of = shared + tx * (8 * T::kRows);
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int piece = (j * T::kTy + ty) ^ (tx % 16);
    *reinterpret_cast<uint2*>(group_of + piece * 8) = q[j];
  }
  __syncthreads();
  // Each round of the CTA covers the same pieces of columns further on, so addresses only step.
  constexpr int kPairs = T::kRows / 16;  // 16-byte pairs of pieces in a column
  constexpr int kStep = T::kThreads / kPairs;
  const int pair = threadIdx.x % kPairs, first = threadIdx.x / kPairs;
  const int64_t row = row0 + pair * 16;
  if (row >= rows) return;
  uint8_t* to = out + (col0 + first) * rows + row;
  const int64_t step = kStep * rows;
  const int left = cols - col0 < T::kCols ? static_cast<int>(cols - col0) : T::kCols;
#pragma unroll
  for (int i = 0; i < 4; ++i, to += step) {
    const int column = first + i * kStep, group = column / 8;
    const int piece = (column % 8) * T::kTy + 2 * pair;
    const int place = (piece ^ (group % 16)) & ~1;
    uint4 v = *reinterpret_cast<const uint4*>(shared + group * (8 * T::kRows) + place * 8);
    if (group % 2 == 1) v = {v.z, v.w, v.x, v.y};
    if (column >= left) return;
    if constexpr (kVector) {
      *reinterpret_cast<uint4*>(to) = v;
    } else {
      store16(to, v, rows - row);
    }
  }
}

}  // namespace ptxbench::te::device
