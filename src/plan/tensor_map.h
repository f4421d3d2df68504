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
  bool operator==(const TensorMapArgs&) const = default;
};

int element_size(MapType type);  // bytes

// What the driver refuses with CUDA_ERROR_INVALID_VALUE; the message says which rule, for people.
// kind "tensor-map".
Result<void> check(const TensorMapArgs& args);

// The descriptor in memory order, equal to the driver's words where those were recorded.
std::array<uint8_t, 128> encode(const TensorMapArgs& args);

// Inverse of encode; refuses garbage ("tensor-map").
Result<TensorMapArgs> decode(const uint8_t* descriptor /*128 bytes*/);

}  // namespace ptxbench::plan
