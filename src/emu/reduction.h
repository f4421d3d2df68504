#pragma once
// The element operation of atom, red, red.async and the bulk reductions. Results are canonical
// NaNs, as recorded. 16-bit floats are widened: f32 has more than 2p+2 of their bits, so rounding a
// sum twice equals rounding it once.

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "emu/atomics.h"
#include "numeric/float_formats.h"

namespace ptxbench::emu {

// -0 < +0, and the other operand where one is NaN.
template <class F>
F smaller(F a, F b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <class F>
F combine_float(AtomicOp op, F old, F v) {
  switch (op) {
    case AtomicOp::min:
      return smaller(old, v);
    case AtomicOp::max:
      return -smaller(-old, -v);
    default:
      return old + v;
  }
}

template <class T>
T combine_integer(AtomicOp op, T old, T v) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case AtomicOp::add:
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(v));
    case AtomicOp::min:
      return old < v ? old : v;
    case AtomicOp::max:
      return old > v ? old : v;
    case AtomicOp::inc:
      return old >= v ? T{0} : static_cast<T>(old + 1);
    case AtomicOp::dec:
      return old == 0 || old > v ? v : static_cast<T>(old - 1);
    case AtomicOp::and_:
      return old & v;
    case AtomicOp::or_:
      return old | v;
    case AtomicOp::xor_:
      return old ^ v;
    default:
      return v;
  }
}

// flush: subnormal operands and results become zeros of their sign.
inline uint32_t combine_f32(AtomicOp op, uint32_t old, uint32_t v, bool flush = false) {
  auto flushed = [&](uint32_t w) { return flush && (w & 0x7f800000u) == 0 ? w & 0x80000000u : w; };
  const float r =
      combine_float(op, std::bit_cast<float>(flushed(old)), std::bit_cast<float>(flushed(v)));
  return std::isnan(r) ? 0x7fffffffu : flushed(std::bit_cast<uint32_t>(r));
}
// A NaN comes out as it went in, signalling or not.
inline uint64_t combine_f64(AtomicOp op, uint64_t old, uint64_t v) {
  const double a = std::bit_cast<double>(old), b = std::bit_cast<double>(v);
  if (op == AtomicOp::add && (std::isnan(a) || std::isnan(b))) return std::isnan(a) ? old : v;
  return std::bit_cast<uint64_t>(combine_float(op, a, b));
}
inline uint16_t combine_f16(AtomicOp op, uint16_t old, uint16_t v) {
  return numeric::f16_from_float(
      combine_float(op, numeric::f16_to_float(old), numeric::f16_to_float(v)));
}
inline uint16_t combine_bf16(AtomicOp op, uint16_t old, uint16_t v) {
  return numeric::bf16_from_float(
      combine_float(op, numeric::bf16_to_float(old), numeric::bf16_to_float(v)));
}

}  // namespace ptxbench::emu
