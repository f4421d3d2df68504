#pragma once
// Tensor maps (CUtensorMap): the arguments of cuTensorMapEncodeTiled, the driver's argument checks
// and the 128-byte descriptor, as measured on an H200 (tests/data/hw, group "tma").

#include <array>
#include <cstdint>

#include "base/result.h"

namespace ptxbench::plan {

// Numeric values equal the driver's CUtensorMapDataType / Interleave / Swizzle / L2promotion /
// FloatOOBfill.
enum class MapType : uint8_t {
  u8,
  u16,
  u32,
  s32,
  u64,
  s64,
  f16,
  f32,
  f64,
  bf16,
  f32_ftz,
  tf32,
  tf32_ftz
};
enum class MapInterleave : uint8_t { none, b16, b32 };
enum class MapSwizzle : uint8_t { none, b32, b64, b128 };

struct TensorMapArgs {
  MapType type = MapType::u8;
  uint32_t rank = 1;  // 1..5
  uint64_t global_address = 0;
  std::array<uint64_t, 5> dims{};     // elements, innermost first
  std::array<uint64_t, 4> strides{};  // bytes of dimensions 1..rank-1
  std::array<uint32_t, 5> box{};      // elements
  std::array<uint32_t, 5> element_strides{};
  MapInterleave interleave = MapInterleave::none;
  MapSwizzle swizzle = MapSwizzle::none;
  uint8_t l2_promotion = 0;
  bool nan_fill = false;
  // im2col maps (cuTensorMapEncodeIm2col): a copy moves `pixels` pixels of box[0] channels each,
  // which run through the box of pixels from `lower` to dims - 1 + `upper` in every spatial
  // dimension (tensor dimensions 1..rank-2). box[1..] are 1.
  bool im2col = false;
  uint32_t pixels = 0;
  std::array<int32_t, 3> lower{}, upper{};
  bool operator==(const TensorMapArgs&) const = default;
};

int element_size(MapType type);  // bytes

// What the driver refuses with CUDA_ERROR_INVALID_VALUE; the message says which rule, for people.
// Tiled maps: as recorded; im2col maps: as cuTensorMapEncodeIm2col documents.
// kind "tensor-map".
Result<void> check(const TensorMapArgs& args);

// The descriptor in memory order, equal to the driver's words where those were recorded.
std::array<uint8_t, 128> encode(const TensorMapArgs& args);

// Inverse of encode; refuses garbage ("tensor-map").
Result<TensorMapArgs> decode(const uint8_t* descriptor /*128 bytes*/);

// The fields that tensormap.replace can change (PTX ISA, "tensormap.replace").
enum class MapField : uint8_t {
  global_address,
  rank,  // value: rank - 1
  box_dim,
  global_dim,
  global_stride,  // bytes
  element_stride,
  elemtype,  // value: the ISA's code
  interleave_layout,
  swizzle_mode,
  fill_mode
};
// Changes one field of a tiled map; `ordinal` is the dimension (strides: dimension - 1). The result
// may be a map that check() refuses until other fields are changed too. kind "tensor-map": the
// bytes are no tensor map, or the ordinal or value does not exist.
Result<void> replace(uint8_t* descriptor, MapField field, uint32_t ordinal, uint64_t value);

}  // namespace ptxbench::plan
