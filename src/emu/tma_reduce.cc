// Bulk reductions, element by element.

#include <cstring>

#include "emu/reduction.h"
#include "emu/tma.h"

namespace ptxbench::emu {
namespace {

using plan::MapType;

template <class T, class Combine>
void apply(uint8_t* destination, const uint8_t* source, size_t n, Combine combine) {
  for (size_t i = 0; i < n; ++i) {
    T old, v;
    std::memcpy(&old, destination + i * sizeof(T), sizeof(T));
    std::memcpy(&v, source + i * sizeof(T), sizeof(T));
    T result = combine(old, v);
    std::memcpy(destination + i * sizeof(T), &result, sizeof(T));
  }
}

template <class T>
void apply_integer(ReduceOp op, uint8_t* destination, const uint8_t* source, size_t n) {
  apply<T>(destination, source, n, [op](T a, T b) { return combine_integer(op, a, b); });
}

}  // namespace

void reduce_elements(MapType type, ReduceOp op, uint8_t* destination, const uint8_t* source,
                     size_t n) {
  switch (type) {
    case MapType::u8:
      return apply_integer<uint8_t>(op, destination, source, n);
    case MapType::u16:
      return apply_integer<uint16_t>(op, destination, source, n);
    case MapType::u32:
      return apply_integer<uint32_t>(op, destination, source, n);
    case MapType::s32:
      return apply_integer<int32_t>(op, destination, source, n);
    case MapType::u64:
      return apply_integer<uint64_t>(op, destination, source, n);
    case MapType::s64:
      return apply_integer<int64_t>(op, destination, source, n);
    case MapType::f16:
      return apply<uint16_t>(destination, source, n,
                             [op](uint16_t a, uint16_t b) { return combine_f16(op, a, b); });
    case MapType::bf16:
      return apply<uint16_t>(destination, source, n,
                             [op](uint16_t a, uint16_t b) { return combine_bf16(op, a, b); });
    case MapType::f64:
      return apply<double>(destination, source, n,
                           [op](double a, double b) { return combine_float(op, a, b); });
    default:
      return apply<uint32_t>(destination, source, n,
                             [op](uint32_t a, uint32_t b) { return combine_f32(op, a, b); });
  }
}

}  // namespace ptxbench::emu
