#pragma once
// for_each_piece: the one place that knows where the bytes of a tensor copy lie.

#include <algorithm>

#include "emu/tma.h"

namespace ptxbench::emu {

// A box in the units of the walk: rows are inner rows, numbered with dimension 1 fastest.
struct BoxShape {
  uint32_t element = 1;                          // bytes
  uint32_t row_bytes = 0;                        // of the inner box dimension
  uint32_t pitch = 0;                            // bytes between rows in shared memory
  uint32_t swizzle_mask = 0;                     // of row index bits: 0, 1, 3, 7
  std::array<uint32_t, 5> count{1, 1, 1, 1, 1};  // rows per dimension; [0] of slices only
  uint32_t rows() const { return count[0] * count[1] * count[2] * count[3] * count[4]; }
};

// Interleaved layouts hold slices of 16 or 32 bytes. A slice is a row; dimension 0 counts slices,
// which lie side by side in global memory, and the box has one of the dimension before the
// outermost, whatever its size there.
inline bool is_interleaved(const plan::TensorMapArgs& map) {
  return map.interleave != plan::MapInterleave::none;
}

inline BoxShape box_shape(const plan::TensorMapArgs& map) {
  BoxShape s;
  s.element = static_cast<uint32_t>(plan::element_size(map.type));
  s.row_bytes = map.box[0] * s.element;
  if (is_interleaved(map)) s.row_bytes = map.interleave == plan::MapInterleave::b16 ? 16 : 32;
  s.pitch = s.row_bytes;
  if (map.swizzle != plan::MapSwizzle::none) {
    if (!is_interleaved(map)) s.pitch = std::max(s.pitch, 16u << static_cast<int>(map.swizzle));
    s.swizzle_mask = (1u << static_cast<int>(map.swizzle)) - 1;
  }
  if (map.im2col) s.count[1] = map.pixels;
  for (uint32_t i = 1; i < map.rank && !map.im2col; ++i)
    s.count[i] = (map.box[i] + map.element_strides[i] - 1) / map.element_strides[i];
  if (is_interleaved(map)) s.count[0] = map.box[0], s.count[map.rank - 2] = 1;
  return s;
}

// Bytes of an inner row, from its start, that lie before and inside the tensor; the rest lies
// behind.
struct RowClip {
  int64_t first = 0, last = 0;  // [first, last) inside; empty if last <= first
};
inline RowClip clip_row(const plan::TensorMapArgs& map, const BoxShape& s, int32_t inner,
                        bool is_store) {
  int64_t start = int64_t{inner} * s.element;
  // 2^32 elements of 8 bytes fit easily in 63 bits.
  int64_t end = static_cast<int64_t>(map.dims[0]) * s.element;
  if (is_store) end = (end + 15) / 16 * 16;  // silicon decides by 16-byte chunk on the way out
  RowClip c;
  c.first = std::clamp<int64_t>(-start, 0, s.row_bytes);
  c.last = std::clamp<int64_t>(end - start, c.first, s.row_bytes);
  return c;
}

namespace detail {

// One run of bytes of a row, inside (global >= 0) or outside, cut where swizzling scatters it.
template <class F>
inline void emit_run(const BoxShape& s, uint32_t linear, int64_t global, uint32_t bytes, F& f) {
  if (s.swizzle_mask == 0) {
    if (bytes) f(CopyPiece{linear, global, bytes});
    return;
  }
  while (bytes) {
    uint32_t n = std::min(bytes, 16 - (linear & 15));
    f(CopyPiece{linear ^ (((linear >> 7) & s.swizzle_mask) << 4), global, n});
    linear += n;
    if (global >= 0) global += n;
    bytes -= n;
  }
}

// The row of the box: before, inside and behind the tensor.
template <class F>
inline void emit_row(const BoxShape& s, const RowClip& clip, uint32_t shared, int64_t offset,
                     F& f) {
  const uint32_t first = static_cast<uint32_t>(clip.first), last = static_cast<uint32_t>(clip.last);
  emit_run(s, shared, -1, first, f);
  emit_run(s, shared + first, offset + first, last - first, f);
  emit_run(s, shared + last, -1, s.row_bytes - last, f);
}

// A row is a pixel. Pixels run through the box of pixels, the innermost spatial dimension fastest,
// and from its end to the next image; the offsets are added to every pixel's place afterwards.
template <class F>
void for_each_pixel_piece(const plan::TensorMapArgs& map, const Coordinates& at,
                          uint32_t shared_address, bool is_store, F&& f) {
  const BoxShape s = box_shape(map);
  const RowClip clip = clip_row(map, s, at[0], is_store);
  std::array<int64_t, 5> pixel{};
  for (uint32_t i = 1; i < map.rank; ++i) pixel[i] = at[i];
  for (uint32_t n = 0; n < s.count[1]; ++n, shared_address += s.pitch) {
    bool inside = clip.last > clip.first;
    int64_t offset = int64_t{at[0]} * s.element;
    for (uint32_t i = 1; i < map.rank; ++i) {
      const bool spatial = i + 1 < map.rank;
      const int64_t c = pixel[i] + (spatial && !is_store ? at[kImageOffsets + i - 1] : 0);
      if (c < 0 || c >= static_cast<int64_t>(map.dims[i]))
        inside = false;
      else
        offset += c * static_cast<int64_t>(map.strides[i - 1]);
    }
    if (inside)
      emit_row(s, clip, shared_address, offset, f);
    else
      emit_run(s, shared_address, -1, s.row_bytes, f);
    for (uint32_t i = 1; i < map.rank; ++i) {
      pixel[i] += map.element_strides[i];
      if (i + 1 == map.rank || pixel[i] < static_cast<int64_t>(map.dims[i]) + map.upper[i - 1])
        break;
      pixel[i] = map.lower[i - 1];
    }
  }
}

template <class F>
void for_each_slice_piece(const plan::TensorMapArgs& map, const Coordinates& at,
                          uint32_t shared_address, F&& f) {
  const BoxShape s = box_shape(map);
  std::array<uint32_t, 5> index{};
  for (uint32_t row = 0; row < s.rows(); ++row, shared_address += s.pitch) {
    bool inside = true;
    int64_t offset = 0;
    for (uint32_t i = 0; i < map.rank; ++i) {
      const int64_t c = int64_t{at[i]} + index[i];
      inside &= c >= 0 && c < static_cast<int64_t>(map.dims[i]);
      offset += c * (i == 0 ? int64_t{s.row_bytes} : static_cast<int64_t>(map.strides[i - 1]));
    }
    emit_run(s, shared_address, inside ? offset : -1, s.row_bytes, f);
    for (uint32_t i = 0; i < 5 && ++index[i] == s.count[i]; ++i) index[i] = 0;
  }
}

}  // namespace detail

template <class F>
void for_each_piece(const plan::TensorMapArgs& map, const Coordinates& at, uint32_t shared_address,
                    bool is_store, F&& f) {
  if (map.im2col) return detail::for_each_pixel_piece(map, at, shared_address, is_store, f);
  if (is_interleaved(map)) return detail::for_each_slice_piece(map, at, shared_address, f);
  const BoxShape s = box_shape(map);
  const RowClip clip = clip_row(map, s, at[0], is_store);
  const uint32_t rows = s.count[1] * s.count[2] * s.count[3] * s.count[4];
  std::array<uint32_t, 5> index{};
  for (uint32_t row = 0; row < rows; ++row, shared_address += s.pitch) {
    bool inside = clip.last > clip.first;
    int64_t offset = int64_t{at[0]} * s.element;
    for (uint32_t i = 1; i < map.rank; ++i) {
      int64_t c = int64_t{at[i]} + int64_t{index[i]} * map.element_strides[i];
      if (c < 0 || c >= static_cast<int64_t>(map.dims[i]))
        inside = false;
      else
        offset += c * static_cast<int64_t>(map.strides[i - 1]);
    }
    if (inside)
      detail::emit_row(s, clip, shared_address, offset, f);
    else
      detail::emit_run(s, shared_address, -1, s.row_bytes, f);
    for (uint32_t i = 1; i < 5 && ++index[i] == s.count[i]; ++i) index[i] = 0;
  }
}

}  // namespace ptxbench::emu
