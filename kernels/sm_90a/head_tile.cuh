#pragma once
// A tile of `Rows` rows of one attention head in shared memory, bf16, as TMA puts it there: the
// columns cut into chunks one swizzle row wide (64 columns, or 32 or 16 where HeadDim is no
// multiple of more), each chunk all rows of it. Tiles start on 1,024 bytes. A tile of e4m3 is one
// of half as many bf16 columns. Device code.

#include <ptxbench/ptx.cuh>

namespace ptxbench::sm90 {

template <int HeadDim, int Rows>
struct HeadTile {
  static_assert(HeadDim % 16 == 0 && Rows % 16 == 0);
  static constexpr int kRows = Rows;
  static constexpr int kColumns = HeadDim % 64 == 0 ? 64 : HeadDim % 32 == 0 ? 32 : 16;
  static constexpr int kChunks = HeadDim / kColumns;
  static constexpr int kRowBytes = kColumns * 2;
  static constexpr int kChunkBytes = Rows * kRowBytes;
  static constexpr int kBytes = kChunks * kChunkBytes;
  static constexpr uint32_t kSwizzle = kColumns == 64   ? 1
                                       : kColumns == 32 ? 2
                                                        : 3;  // as descriptor() counts
  static constexpr int kSteps = HeadDim / 16;                 // K steps along the columns

  // All boxes of the tile whose first row is `row` of head `head`; completes kBytes on `barrier`.
  __device__ static void load(uint32_t tile, const CUtensorMap* map, uint32_t barrier, int row,
                              int head) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      ptx::tma_load_3d(tile + chunk * kChunkBytes, map, barrier, chunk * kColumns, row, head);
    }
  }

  // Operand with the head dimension as K (Q and K of Q K^T). `row` a multiple of 8.
  __device__ static uint64_t k_major(uint32_t tile, int row = 0) {
    return ptx::descriptor(tile + row * kRowBytes, 16, 8 * kRowBytes, kSwizzle);
  }
  // What to add for columns 16*step .. 16*step+15.
  __device__ static constexpr uint64_t k_step(int step) {
    const int column = step * 16;
    return (column / kColumns * kChunkBytes + column % kColumns * 2) / 16;
  }

  // Operand with the rows as K and the columns, from chunk `chunk` on, as N (V of P V).
  __device__ static uint64_t mn_major(uint32_t tile, int chunk = 0) {
    return ptx::descriptor(tile + chunk * kChunkBytes, kChunkBytes, 8 * kRowBytes, kSwizzle);
  }
  // What to add for rows 16*step .. 16*step+15.
  __device__ static constexpr uint64_t mn_step(int step) { return step * kRowBytes; }

  // Offset of the 16 bytes that hold columns 8*octet .. 8*octet+7 of row `row` within a chunk.
  __device__ static uint32_t octet(int row, int octet) {
    const int key = kColumns == 64 ? row & 7 : kColumns == 32 ? row >> 1 & 3 : row >> 2 & 1;
    return static_cast<uint32_t>(row * kRowBytes + ((octet ^ key) << 4));
  }
};

// Rounds this warp's 16 rows of an accumulator [64, HeadDim] to bf16, each row r scaled by
// factor[r / 8], and puts them at rows row .. row+15 of the tile.
template <typename Tile>
__device__ __forceinline__ void stage_rows(const float* sums, const float (&factor)[2],
                                           uint32_t tile, int row, int lane) {
#pragma unroll
  for (int chunk = 0; chunk < Tile::kChunks; ++chunk) {
#pragma unroll
    for (int pair = 0; pair < Tile::kColumns / 16; ++pair) {
      const float* s = sums + chunk * (Tile::kColumns / 2) + pair * 8;
      const uint32_t address =
          tile + chunk * Tile::kChunkBytes + Tile::octet(row + (lane & 15), pair * 2 + (lane >> 4));
      ptx::stmatrix_x4(address, ptx::pack_bf16(s[0] * factor[0], s[1] * factor[0]),
                       ptx::pack_bf16(s[2] * factor[1], s[3] * factor[1]),
                       ptx::pack_bf16(s[4] * factor[0], s[5] * factor[0]),
                       ptx::pack_bf16(s[6] * factor[1], s[7] * factor[1]));
    }
  }
}

}  // namespace ptxbench::sm90
