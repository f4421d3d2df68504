// The element operation of bulk reductions. Floats of 16 bits are widened to f32 (exact for add of
// two f16 or bf16 values up to one rounding: f32 has more than 2p+2 bits of either, so rounding
// twice equals rounding once), results are canonical NaNs as recorded.

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "emu/tma.h"

namespace ptxbench::emu {
namespace {

using plan::MapType;

float widen_bf16(uint16_t h) {
  uint32_t w = uint32_t{h} << 16;
  float f;
  std::memcpy(&f, &w, 4);
  return f;
}

uint16_t narrow_bf16(float f) {
  if (std::isnan(f)) return 0x7fff;
  uint32_t w;
  std::memcpy(&w, &f, 4);
  return static_cast<uint16_t>((w + 0x7fff + ((w >> 16) & 1)) >> 16);
}

float widen_f16(uint16_t h) {
  int exponent = (h >> 10) & 31, mantissa = h & 1023;
  float v;
  if (exponent == 31)
    v = mantissa ? NAN : INFINITY;
  else if (exponent == 0)
    v = std::ldexp(static_cast<float>(mantissa), -24);
  else
    v = std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return h >> 15 ? -v : v;
}

uint16_t narrow_f16(float f) {
  if (std::isnan(f)) return 0x7fff;
  uint16_t sign = std::signbit(f) ? 0x8000 : 0;
  float a = std::fabs(f);
  if (a >= 65520.0f) return sign | 0x7c00;
  int exponent = a < 0x1p-14f ? -14 : std::ilogb(a);
  // Units of the last place; at most 2^11, so lrint is exact round-to-nearest-even.
  long units = std::lrint(std::ldexp(a, 10 - exponent));
  return static_cast<uint16_t>(sign | (units + (static_cast<long>(exponent + 14) << 10)));
}

// min and max of floats: -0 < +0, and the other operand where one is NaN.
template <class F>
F float_min(F a, F b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <class F>
F float_op(ReduceOp op, F old, F v) {
  switch (op) {
    case ReduceOp::min:
      return float_min(old, v);
    case ReduceOp::max:
      return -float_min(-old, -v);
    default:
      return old + v;
  }
}

template <class T>
T integer_op(ReduceOp op, T old, T v) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case ReduceOp::add:
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(v));
    case ReduceOp::min:
      return old < v ? old : v;
    case ReduceOp::max:
      return old > v ? old : v;
    case ReduceOp::inc:
      return old >= v ? T{0} : static_cast<T>(old + 1);
    case ReduceOp::dec:
      return old == 0 || old > v ? v : static_cast<T>(old - 1);
    case ReduceOp::and_:
      return old & v;
    case ReduceOp::or_:
      return old | v;
    default:
      return old ^ v;
  }
}

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
  apply<T>(destination, source, n, [op](T a, T b) { return integer_op(op, a, b); });
}

uint32_t add_f32(ReduceOp op, uint32_t old, uint32_t v) {
  float a, b;
  std::memcpy(&a, &old, 4);
  std::memcpy(&b, &v, 4);
  float r = float_op(op, a, b);
  uint32_t w;
  std::memcpy(&w, &r, 4);
  return std::isnan(r) ? 0x7fffffff : w;
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
      return apply<uint16_t>(destination, source, n, [op](uint16_t a, uint16_t b) {
        return narrow_f16(float_op(op, widen_f16(a), widen_f16(b)));
      });
    case MapType::bf16:
      return apply<uint16_t>(destination, source, n, [op](uint16_t a, uint16_t b) {
        return narrow_bf16(float_op(op, widen_bf16(a), widen_bf16(b)));
      });
    case MapType::f64:
      return apply<double>(destination, source, n,
                           [op](double a, double b) { return float_op(op, a, b); });
    default:
      return apply<uint32_t>(destination, source, n,
                             [op](uint32_t a, uint32_t b) { return add_f32(op, a, b); });
  }
}

}  // namespace ptxbench::emu
