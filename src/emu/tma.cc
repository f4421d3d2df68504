#include "emu/tma.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emu/tma_walk.h"

namespace ptxbench::emu {
namespace {

using plan::MapType;

constexpr uint32_t kOffsetMask =
    0xffffff;  // a shared address carries the CTA's cluster rank above it

// Pieces of swizzled copies are nearly always one 16-byte chunk: a constant size becomes two moves.
inline void copy_piece(uint8_t* to, const uint8_t* from, uint32_t bytes) {
  if (bytes == 16)
    std::memcpy(to, from, 16);
  else
    std::memcpy(to, from, bytes);
}

uint32_t round_to_tf32(uint32_t w) {
  if ((w & 0x7fffffff) > 0x7f800000) return 0x7fffe000;
  return (w + 0xfff + ((w >> 13) & 1)) & 0xffffe000;
}

void copy_as_tf32(uint8_t* to, const uint8_t* from, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i += 4) {
    uint32_t w;
    std::memcpy(&w, from + i, 4);
    w = round_to_tf32(w);
    std::memcpy(to + i, &w, 4);
  }
}

void fill_outside(uint8_t* to, uint32_t bytes, bool nan) {
  if (!nan) {
    std::memset(to, 0, bytes);
    return;
  }
  for (uint32_t i = 0; i < bytes; ++i)
    to[i] = i % 2 ? 0x7f : 0xf7;  // elements have even sizes here
}

}  // namespace

namespace {

// Of the spatial dimensions of an im2col map.
bool has_steps(const plan::TensorMapArgs& map) {
  return std::any_of(map.element_strides.begin() + 1, map.element_strides.begin() + map.rank - 1,
                     [](uint32_t step) { return step != 1; });
}
bool reaches_behind(const plan::TensorMapArgs& map) {
  return std::any_of(map.upper.begin(), map.upper.begin() + map.rank - 2,
                     [](int32_t corner) { return corner > 0; });
}

}  // namespace

Result<void> supported(const plan::TensorMapArgs& map, bool is_store) {
  if (map.im2col && is_store && has_steps(map) != reaches_behind(map))
    return Error{
        "unsupported",
        "im2col stores with element strides or a box beyond the image are not implemented"};
  if (!is_interleaved(map)) return {};
  if (map.im2col)
    return Error{"unsupported", "im2col copies with an interleaved layout are not implemented"};
  for (uint32_t i = 0; i < map.rank; ++i)
    if (map.element_strides[i] != 1)
      return Error{"unsupported",
                   "interleaved tensor copies with element strides are not implemented"};
  return {};
}

uint32_t transaction_bytes(const plan::TensorMapArgs& map) {
  BoxShape s = box_shape(map);
  return s.row_bytes * s.rows();
}

uint32_t box_span(const plan::TensorMapArgs& map) {
  BoxShape s = box_shape(map);
  return s.pitch * s.rows();
}

std::string check_copy(const plan::TensorMapArgs& map, const Coordinates& at,
                       uint32_t shared_address, bool is_store) {
  if (shared_address % 128)
    return fmt::format("shared address {:#x} is not 128-byte aligned", shared_address);
  int bytes = plan::element_size(map.type);
  if (!is_interleaved(map) && int64_t{at[0]} * bytes % 16)
    return fmt::format("inner coordinate {} times {} bytes is not a multiple of 16", at[0], bytes);
  if (is_store && map.im2col && has_steps(map) && reaches_behind(map))
    return "a store in im2col mode with element strides and a box beyond the image";
  if (is_store)
    for (uint32_t i = 0; i < map.rank; ++i)
      if (at[i] < 0)
        return fmt::format("negative coordinate {} in dimension {} of a store", at[i], i);
  return {};
}

void tma_load(const plan::TensorMapArgs& map, const Coordinates& at, uint32_t shared_address,
              uint8_t* shared, const uint8_t* global) {
  const bool tf32 = map.type == MapType::tf32 || map.type == MapType::tf32_ftz;
  for_each_piece(map, at, shared_address, false, [&](const CopyPiece& p) {
    uint8_t* to = shared + (p.shared_address & kOffsetMask);
    if (p.global_offset < 0)
      fill_outside(to, p.bytes, map.nan_fill);
    else if (tf32)
      copy_as_tf32(to, global + p.global_offset, p.bytes);
    else
      copy_piece(to, global + p.global_offset, p.bytes);
  });
}

void tma_store(const plan::TensorMapArgs& map, const Coordinates& at, uint32_t shared_address,
               const uint8_t* shared, uint8_t* global) {
  for_each_piece(map, at, shared_address, true, [&](const CopyPiece& p) {
    if (p.global_offset >= 0)
      copy_piece(global + p.global_offset, shared + (p.shared_address & kOffsetMask), p.bytes);
  });
}

void tma_reduce(const plan::TensorMapArgs& map, const Coordinates& at, uint32_t shared_address,
                const uint8_t* shared, uint8_t* global, ReduceOp op) {
  const uint32_t element = static_cast<uint32_t>(plan::element_size(map.type));
  for_each_piece(map, at, shared_address, true, [&](const CopyPiece& p) {
    if (p.global_offset >= 0)
      reduce_elements(map.type, op, global + p.global_offset,
                      shared + (p.shared_address & kOffsetMask), p.bytes / element);
  });
}

}  // namespace ptxbench::emu
