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

// Words (64 bits): 0 address; 1 im2col (bit 0), rank-1 (bits 4-6), type (7-10, with bit 16 for
// tf32), interleave (11-12), swizzle (13-14), NaN fill (15), high half stride 1; 2, 3 strides 2..4
// in units of 16 bytes, bits 32-35 of each in nibbles from bit 32 of word 3; 4-6 dimensions - 1; 6
// from bit 32 element strides - 1 by 3 bits, top byte and word 7 box - 1; 8 box bytes; 9 alignment
// of the swizzle pattern. An im2col map's word 7 holds the lower corners in the low half of the low
// half, the upper ones above (16, 8 or 5 bits each for rank 3, 4, 5), pixels - 1 in the high half.
// L2 promotion (word 1, bits 17-18) as an H200's driver encodes 256 bytes; that 64 and 128 are 1
// and 2 there is taken from the order of the enumeration. Recorded in tests/data/hw, groups tma and
// copies_more; the type bit of tf32 as tensormap.replace sets it.
namespace {

using Words = std::array<uint64_t, 16>;

void put(Words* w, size_t word, int bit, int width, uint64_t value) {
  const uint64_t mask = (width == 64 ? 0 : uint64_t{1} << width) - 1;
  (*w)[word] = ((*w)[word] & ~(mask << bit)) | (value & mask) << bit;
}
uint64_t take(const Words& w, size_t word, int bit, int width) {
  return w[word] >> bit & ((width == 64 ? 0 : uint64_t{1} << width) - 1);
}

// Places of what a map has for each dimension.
void put_stride(Words* w, uint32_t i, uint64_t bytes) {
  put(w, 1 + (i + 1) / 2, i % 2 ? 0 : 32, 32, bytes >> 4);
  put(w, 3, static_cast<int>(32 + 4 * i), 4, bytes >> 36);
}
void put_dim(Words* w, uint32_t i, uint64_t elements) {
  put(w, 4 + i / 2, i % 2 ? 32 : 0, 32, elements - 1);
}
void put_step(Words* w, uint32_t i, uint64_t step) {
  put(w, 6, static_cast<int>(32 + 3 * i), 3, step - 1);
}
void put_box(Words* w, uint32_t i, uint64_t elements) {
  put(w, i == 0 ? 6 : 7, i == 0 ? 56 : static_cast<int>(8 * (i - 1)), 8, elements - 1);
}
void put_type(Words* w, int code) {
  put(w, 1, 7, 4, static_cast<uint64_t>(code < 11 ? code : code - 4));
  put(w, 1, 16, 1, code >= 11);
}

int corner_bits(uint32_t rank) { return rank == 3 ? 16 : rank == 4 ? 8 : 5; }

// `dimensions`: how many have their fields written, those beyond the rank too.
Words words_of(const TensorMapArgs& a, uint32_t dimensions) {
  Words w{};
  w[0] = a.global_address;
  put(&w, 1, 0, 1, a.im2col);
  put(&w, 1, 4, 3, a.rank - 1);
  put_type(&w, kTypeCode[static_cast<size_t>(a.type)]);
  put(&w, 1, 11, 2, static_cast<uint64_t>(a.interleave));
  put(&w, 1, 13, 2, static_cast<uint64_t>(a.swizzle));
  put(&w, 1, 15, 1, a.nan_fill);
  put(&w, 1, 17, 2, a.l2_promotion);
  for (uint32_t i = 0; i + 1 < dimensions; ++i) put_stride(&w, i, a.strides[i]);
  for (uint32_t i = 0; i < dimensions; ++i) {
    put_dim(&w, i, a.dims[i]);
    put_step(&w, i, a.element_strides[i]);
    if (i == 0 || !a.im2col) put_box(&w, i, a.box[i]);
  }
  const int bits = corner_bits(a.rank);
  for (uint32_t i = 0; a.im2col && i + 2 < a.rank; ++i) {
    put(&w, 7, bits * static_cast<int>(i), bits, static_cast<uint64_t>(a.lower[i]));
    put(&w, 7, 16 + bits * static_cast<int>(i), bits, static_cast<uint64_t>(a.upper[i]));
  }
  if (a.im2col) put(&w, 7, 32, 32, a.pixels - 1);
  w[8] = dense_box_bytes(a);
  w[9] = a.swizzle == MapSwizzle::none ? 16 : 128u << static_cast<int>(a.swizzle);
  return w;
}

int32_t signed_field(const Words& w, int bit, int width) {
  const uint64_t half = uint64_t{1} << (width - 1);
  return static_cast<int32_t>((take(w, 7, bit, width) ^ half)) - static_cast<int32_t>(half);
}

// The fields as they stand, in range or not, of all five dimensions.
Result<TensorMapArgs> fields_of(const Words& w) {
  TensorMapArgs a;
  a.global_address = w[0];
  a.im2col = take(w, 1, 0, 1) != 0;
  a.rank = static_cast<uint32_t>(take(w, 1, 4, 3)) + 1;
  const int code = static_cast<int>(take(w, 1, 7, 4)) + (take(w, 1, 16, 1) ? 4 : 0);
  int type = -1;
  for (int i = 0; i < 13; ++i)
    if (kTypeCode[static_cast<size_t>(i)] == code) type = i;
  if (type < 0 || a.rank > 5) return refuse("these 128 bytes are not a tensor map");
  a.type = static_cast<MapType>(type);
  a.interleave = static_cast<MapInterleave>(take(w, 1, 11, 2));
  a.swizzle = static_cast<MapSwizzle>(take(w, 1, 13, 2));
  a.nan_fill = take(w, 1, 15, 1) != 0;
  a.l2_promotion = static_cast<uint8_t>(take(w, 1, 17, 2));
  for (uint32_t i = 0; i < 4; ++i)
    a.strides[i] = take(w, 3, static_cast<int>(32 + 4 * i), 4) << 36 |
                   take(w, 1 + (i + 1) / 2, i % 2 ? 0 : 32, 32) << 4;
  for (uint32_t i = 0; i < 5; ++i) {
    a.dims[i] = take(w, 4 + i / 2, i % 2 ? 32 : 0, 32) + 1;
    a.element_strides[i] = static_cast<uint32_t>(take(w, 6, static_cast<int>(32 + 3 * i), 3)) + 1;
    a.box[i] = i == 0     ? static_cast<uint32_t>(take(w, 6, 56, 8)) + 1
               : a.im2col ? 1
                          : static_cast<uint32_t>(take(w, 7, static_cast<int>(8 * (i - 1)), 8)) + 1;
  }
  if (!a.im2col) return a;
  a.pixels = static_cast<uint32_t>(take(w, 7, 32, 32)) + 1;
  const int bits = corner_bits(a.rank);
  for (uint32_t i = 0; i + 2 < a.rank; ++i) {
    a.lower[i] = signed_field(w, bits * static_cast<int>(i), bits);
    a.upper[i] = signed_field(w, 16 + bits * static_cast<int>(i), bits);
  }
  return a;
}

Words words_at(const uint8_t* descriptor) {
  Words w;
  std::memcpy(w.data(), descriptor, 128);
  return w;
}

}  // namespace

std::array<uint8_t, 128> encode(const TensorMapArgs& a) {
  const Words w = words_of(a, a.rank);
  std::array<uint8_t, 128> out;
  std::memcpy(out.data(), w.data(), 128);
  return out;
}

Result<TensorMapArgs> decode(const uint8_t* descriptor) {
  const Words w = words_at(descriptor);
  PB_ASSIGN_OR_RETURN(TensorMapArgs a, fields_of(w));
  // Encoding again must give the same bits: catches every one that no field explains. What
  // tensormap.replace leaves behind is no fault: fields beyond a smaller rank, box bytes and
  // alignment of what the map was before.
  Words again = words_of(a, 5);
  const bool aligned = w[9] == 16 || w[9] == 256 || w[9] == 512 || w[9] == 1024;
  if (w[8] <= kMaxBoxBytes) again[8] = w[8];
  if (aligned) again[9] = w[9];
  if (a.rank < 1 || !check(a).ok() || again != w)
    return refuse("these 128 bytes are not a tensor map");
  for (uint32_t i = a.rank; i < 5; ++i) a.dims[i] = a.box[i] = a.element_strides[i] = 0;
  for (uint32_t i = a.rank - 1; i < 4; ++i) a.strides[i] = 0;
  return a;
}

// Changes bits of the field alone, as silicon does (box bytes and alignment stay what they were).
Result<void> replace(uint8_t* descriptor, MapField field, uint32_t ordinal, uint64_t value) {
  Words w = words_at(descriptor);
  PB_ASSIGN_OR_RETURN(const TensorMapArgs a, fields_of(w));
  if (a.im2col) return refuse("tensormap.replace changes tiled maps only");
  const uint32_t last = field == MapField::global_stride ? 4 : 5;
  if (ordinal >= last) return refuse(fmt::format("dimension {} does not exist", ordinal));
  auto below = [&](uint64_t limit) -> Result<void> {
    if (value < limit) return {};
    return refuse(fmt::format("value {} does not exist for this field", value));
  };
  switch (field) {
    case MapField::global_address:
      w[0] = value;
      break;
    case MapField::rank:
      PB_RETURN_IF_ERROR(below(5));
      put(&w, 1, 4, 3, value);
      break;
    case MapField::box_dim:
      PB_RETURN_IF_ERROR(below(257));
      put_box(&w, ordinal, value);
      break;
    case MapField::global_dim:
      put_dim(&w, ordinal, value);
      break;
    case MapField::global_stride:
      put_stride(&w, ordinal, value);
      break;
    case MapField::element_stride:
      PB_RETURN_IF_ERROR(below(9));
      put_step(&w, ordinal, value);
      break;
    case MapField::elemtype:
      PB_RETURN_IF_ERROR(below(kTypeCode.size()));
      put_type(&w, static_cast<int>(value));
      break;
    case MapField::interleave_layout:
      PB_RETURN_IF_ERROR(below(3));
      put(&w, 1, 11, 2, value);
      break;
    case MapField::swizzle_mode:
      PB_RETURN_IF_ERROR(below(4));
      put(&w, 1, 13, 2, value);
      break;
    case MapField::fill_mode:
      PB_RETURN_IF_ERROR(below(2));
      put(&w, 1, 15, 1, value);
      break;
  }
  std::memcpy(descriptor, w.data(), 128);
  return {};
}

}  // namespace ptxbench::plan
