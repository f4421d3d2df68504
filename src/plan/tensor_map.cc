#include "plan/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ptxbench::plan {
namespace {

constexpr uint64_t kMaxBoxBytes = (256 << 10) - 1;

// The hardware's type codes in the order of MapType. Recorded: u8, u16, f32, f64, bf16; the others
// follow the gap that those leave.
constexpr std::array<uint8_t, 13> kTypeCode = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12};

Error refuse(std::string message) { return {"tensor-map", std::move(message)}; }

bool is_float(MapType type) { return type >= MapType::f16; }

uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// What the driver writes as box bytes: element strides count in every dimension.
uint64_t dense_box_bytes(const TensorMapArgs& a) {
  uint64_t bytes = element_size(a.type);
  if (a.im2col) return bytes * a.box[0] * a.pixels;
  for (uint32_t i = 0; i < a.rank; ++i) bytes *= ceil_div(a.box[i], a.element_strides[i]);
  return bytes;
}

uint32_t swizzle_bytes(MapSwizzle s) {
  return s == MapSwizzle::none ? 0 : 16u << static_cast<int>(s);
}

Result<void> check_enums(const TensorMapArgs& a) {
  if (static_cast<int>(a.type) > 12)
    return refuse(fmt::format("tensor map data type {} does not exist", static_cast<int>(a.type)));
  if (a.rank < 1 || a.rank > 5)
    return refuse(fmt::format("tensor map rank {} is not in 1..5", a.rank));
  if (static_cast<int>(a.interleave) > 2)
    return refuse(
        fmt::format("tensor map interleave {} does not exist", static_cast<int>(a.interleave)));
  if (static_cast<int>(a.swizzle) > 3)
    return refuse(fmt::format("tensor map swizzle {} is refused by the driver for sm_90",
                              static_cast<int>(a.swizzle)));
  if (a.l2_promotion > 3)
    return refuse(fmt::format("tensor map L2 promotion {} does not exist", a.l2_promotion));
  if (a.nan_fill && !is_float(a.type)) return refuse("NaN fill needs a floating-point data type");
  if (a.interleave != MapInterleave::none && a.rank < 3)
    return refuse(fmt::format("interleave needs rank 3 or more, not {}", a.rank));
  return {};
}

Result<void> check_addresses(const TensorMapArgs& a) {
  uint64_t align = a.interleave == MapInterleave::b32 ? 32 : 16;
  if (a.global_address % align)
    return refuse(
        fmt::format("global address {:#x} is not {}-byte aligned", a.global_address, align));
  for (uint32_t i = 0; i + 1 < a.rank; ++i) {
    if (a.strides[i] % align)
      return refuse(fmt::format("stride of dimension {} is {} bytes, not a multiple of {}", i + 1,
                                a.strides[i], align));
    if (a.strides[i] >> 40)
      return refuse(
          fmt::format("stride of dimension {} is {} bytes, 2^40 or more", i + 1, a.strides[i]));
  }
  return {};
}

// The documented ranges: the corners' bits are shared among the spatial dimensions.
Result<void> check_pixels(const TensorMapArgs& a) {
  if (a.rank < 3)
    return refuse(fmt::format("an im2col tensor map needs rank 3 or more, not {}", a.rank));
  if (a.pixels == 0 || a.pixels > 1024)
    return refuse(fmt::format("{} pixels per column, not 1..1024", a.pixels));
  const int32_t reach = a.rank == 3 ? 1 << 15 : a.rank == 4 ? 1 << 7 : 1 << 4;
  for (uint32_t i = 0; i + 2 < a.rank; ++i) {
    for (int32_t corner : {a.lower[i], a.upper[i]})
      if (corner < -reach || corner >= reach)
        return refuse(
            fmt::format("pixel box corner {} is not in {}..{}", corner, -reach, reach - 1));
    if (static_cast<int64_t>(a.dims[i + 1]) - 1 + a.upper[i] < a.lower[i])
      return refuse(fmt::format("the pixel box is empty in dimension {}", i + 1));
  }
  return {};
}

}  // namespace

int element_size(MapType type) {
  switch (type) {
    case MapType::u8:
      return 1;
    case MapType::u16:
    case MapType::f16:
    case MapType::bf16:
      return 2;
    case MapType::u64:
    case MapType::s64:
    case MapType::f64:
      return 8;
    default:
      return 4;
  }
}

Result<void> check(const TensorMapArgs& a) {
  PB_RETURN_IF_ERROR(check_enums(a));
  PB_RETURN_IF_ERROR(check_addresses(a));
  if (a.im2col) PB_RETURN_IF_ERROR(check_pixels(a));
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (a.dims[i] == 0 || a.dims[i] > (uint64_t{1} << 32))
      return refuse(fmt::format("dimension {} has {} elements, not 1..2^32", i, a.dims[i]));
    if (a.box[i] == 0 || a.box[i] > 256)
      return refuse(fmt::format("box dimension {} has {} elements, not 1..256", i, a.box[i]));
    if (a.element_strides[i] == 0 || a.element_strides[i] > 8)
      return refuse(fmt::format("element stride {} is {}, not 1..8", i, a.element_strides[i]));
  }
  uint32_t inner = a.box[0] * element_size(a.type);
  if (inner % 16)
    return refuse(fmt::format("inner box dimension has {} bytes, not a multiple of 16", inner));
  if (uint32_t span = swizzle_bytes(a.swizzle); span && inner > span)
    return refuse(fmt::format(
        "inner box dimension has {} bytes, more than the {}-byte swizzle spans", inner, span));
  if (uint64_t bytes = dense_box_bytes(a); bytes > kMaxBoxBytes)
    return refuse(fmt::format("box has {} bytes, 256 KiB or more", bytes));
  return {};
}

// Words (64 bits): 0 address; 1 low half rank-1 (bits 4-6), type (7-10), interleave (11-12),
// swizzle (13-14), NaN fill (15), high half stride 1; 2, 3 strides 2..4 in units of 16 bytes, bits
// 32-35 of each in nibbles from bit 32 of word 3; 4-6 dimensions - 1; 6 from bit 32 element strides
// - 1 by 3 bits, top byte and word 7 box - 1; 8 box bytes; 9 alignment of the swizzle pattern. L2
// promotion (word 1, bits 17-18) as an H200's driver encodes 256 bytes; that 64 and 128 are 1 and 2
// there is taken from the order of the enumeration. The layout of what only im2col maps have is
// ours: word 1 bit 20, pixels and corners in words 10-12.
std::array<uint8_t, 128> encode(const TensorMapArgs& a) {
  std::array<uint64_t, 16> w{};
  w[0] = a.global_address;
  w[1] = uint64_t{a.rank - 1} << 4 | uint64_t{kTypeCode[static_cast<int>(a.type)]} << 7 |
         static_cast<uint64_t>(a.interleave) << 11 | static_cast<uint64_t>(a.swizzle) << 13 |
         uint64_t{a.nan_fill} << 15 | uint64_t{a.l2_promotion} << 17;
  for (uint32_t i = 0; i + 1 < a.rank; ++i) {
    uint64_t units = a.strides[i] >> 4;
    w[1 + (i + 1) / 2] |= (units & 0xffffffff) << (i % 2 ? 0 : 32);
    w[3] |= (units >> 32) << (32 + 4 * i);
  }
  for (uint32_t i = 0; i < a.rank; ++i) {
    w[4 + i / 2] |= (a.dims[i] - 1) << (i % 2 ? 32 : 0);
    w[6] |= uint64_t{a.element_strides[i] - 1} << (32 + 3 * i);
    if (i == 0)
      w[6] |= uint64_t{a.box[0] - 1} << 56;
    else
      w[7] |= uint64_t{a.box[i] - 1} << (8 * (i - 1));
  }
  if (a.im2col) {
    w[1] |= 1 << 20;
    w[10] = a.pixels;
    for (int i = 0; i < 3; ++i) {
      w[11] |= uint64_t{static_cast<uint16_t>(a.lower[i])} << (16 * i);
      w[12] |= uint64_t{static_cast<uint16_t>(a.upper[i])} << (16 * i);
    }
  }
  w[8] = dense_box_bytes(a);
  w[9] = a.swizzle == MapSwizzle::none ? 16 : 128u << static_cast<int>(a.swizzle);
  std::array<uint8_t, 128> out;
  std::memcpy(out.data(), w.data(), 128);
  return out;
}

namespace {

// The fields as they stand, in range or not.
Result<TensorMapArgs> fields_of(const uint8_t* descriptor) {
  std::array<uint64_t, 16> w;
  std::memcpy(w.data(), descriptor, 128);
  TensorMapArgs a;
  a.global_address = w[0];
  a.rank = ((w[1] >> 4) & 7) + 1;
  int type = -1;
  for (int i = 0; i < 13; ++i)
    if (kTypeCode[i] == ((w[1] >> 7) & 15)) type = i;
  if (type < 0 || a.rank > 5) return refuse("these 128 bytes are not a tensor map");
  a.type = static_cast<MapType>(type);
  a.interleave = static_cast<MapInterleave>((w[1] >> 11) & 3);
  a.swizzle = static_cast<MapSwizzle>((w[1] >> 13) & 3);
  a.nan_fill = (w[1] >> 15) & 1;
  a.l2_promotion = (w[1] >> 17) & 3;
  for (uint32_t i = 0; i + 1 < a.rank; ++i) {
    uint64_t low = (w[1 + (i + 1) / 2] >> (i % 2 ? 0 : 32)) & 0xffffffff;
    uint64_t high = (w[3] >> (32 + 4 * i)) & 15;
    a.strides[i] = (high << 32 | low) << 4;
  }
  for (uint32_t i = 0; i < a.rank; ++i) {
    a.dims[i] = ((w[4 + i / 2] >> (i % 2 ? 32 : 0)) & 0xffffffff) + 1;
    a.element_strides[i] = ((w[6] >> (32 + 3 * i)) & 7) + 1;
    a.box[i] = (i == 0 ? w[6] >> 56 : (w[7] >> (8 * (i - 1))) & 255) + 1;
  }
  if (w[1] >> 20 & 1) {
    a.im2col = true;
    a.pixels = static_cast<uint32_t>(w[10]);
    for (int i = 0; i < 3; ++i) {
      a.lower[i] = static_cast<int16_t>(w[11] >> (16 * i));
      a.upper[i] = static_cast<int16_t>(w[12] >> (16 * i));
    }
  }
  return a;
}

}  // namespace

Result<TensorMapArgs> decode(const uint8_t* descriptor) {
  PB_ASSIGN_OR_RETURN(TensorMapArgs a, fields_of(descriptor));
  // Encoding again must give the same bytes: catches every bit that no field explains.
  std::array<uint8_t, 128> again = encode(a);
  if (!check(a).ok() || std::memcmp(again.data(), descriptor, 128) != 0)
    return refuse("these 128 bytes are not a tensor map");
  return a;
}

Result<void> replace(uint8_t* descriptor, MapField field, uint32_t ordinal, uint64_t value) {
  PB_ASSIGN_OR_RETURN(TensorMapArgs a, fields_of(descriptor));
  if (a.im2col) return refuse("tensormap.replace changes tiled maps only");
  const uint32_t last = field == MapField::global_stride ? 4 : 5;
  if (ordinal >= last) return refuse(fmt::format("dimension {} does not exist", ordinal));
  auto below = [&](uint64_t limit) -> Result<void> {
    if (value < limit) return {};
    return refuse(fmt::format("value {} does not exist for this field", value));
  };
  // Strides and sizes beyond the rank have no place in the descriptor: a rank is replaced first.
  switch (field) {
    case MapField::global_address:
      a.global_address = value;
      break;
    case MapField::rank:
      PB_RETURN_IF_ERROR(below(5));
      a.rank = static_cast<uint32_t>(value) + 1;
      for (uint32_t i = 0; i < a.rank; ++i) {
        a.dims[i] = std::max<uint64_t>(a.dims[i], 1), a.box[i] = std::max(a.box[i], 1u);
        a.element_strides[i] = std::max(a.element_strides[i], 1u);
      }
      break;
    case MapField::box_dim:
      a.box[ordinal] = static_cast<uint32_t>(value & 255 ? value & 255 : 256);
      PB_RETURN_IF_ERROR(below(257));
      break;
    case MapField::global_dim:
      a.dims[ordinal] = value ? value : uint64_t{1} << 32;
      break;
    case MapField::global_stride:
      a.strides[ordinal] = value;
      break;
    case MapField::element_stride:
      PB_RETURN_IF_ERROR(below(9));
      a.element_strides[ordinal] = std::max(static_cast<uint32_t>(value), 1u);
      break;
    case MapField::elemtype: {
      PB_RETURN_IF_ERROR(below(kTypeCode.size()));
      const auto* found = std::find(kTypeCode.begin(), kTypeCode.end(), value);
      a.type = static_cast<MapType>(found - kTypeCode.begin());
      break;
    }
    case MapField::interleave_layout:
      PB_RETURN_IF_ERROR(below(3));
      a.interleave = static_cast<MapInterleave>(value);
      break;
    case MapField::swizzle_mode:
      PB_RETURN_IF_ERROR(below(4));
      a.swizzle = static_cast<MapSwizzle>(value);
      break;
    case MapField::fill_mode:
      PB_RETURN_IF_ERROR(below(2));
      a.nan_fill = value != 0;
      break;
  }
  std::array<uint8_t, 128> changed = encode(a);
  std::memcpy(descriptor, changed.data(), changed.size());
  return {};
}

}  // namespace ptxbench::plan
