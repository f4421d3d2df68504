#include "plan/tensor_map.h"

#include <fmt/format.h>

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
// there is taken from the order of the enumeration.
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
  w[8] = dense_box_bytes(a);
  w[9] = a.swizzle == MapSwizzle::none ? 16 : 128u << static_cast<int>(a.swizzle);
  std::array<uint8_t, 128> out;
  std::memcpy(out.data(), w.data(), 128);
  return out;
}

Result<TensorMapArgs> decode(const uint8_t* descriptor) {
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
  // Encoding again must give the same bytes: catches every bit that no field explains.
  std::array<uint8_t, 128> again = encode(a);
  if (!check(a).ok() || std::memcmp(again.data(), descriptor, 128) != 0)
    return refuse("these 128 bytes are not a tensor map");
  return a;
}

}  // namespace ptxbench::plan
