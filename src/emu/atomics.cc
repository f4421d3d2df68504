#include "emu/atomics.h"

#include <bit>
#include <cmath>

#include "numeric/float_formats.h"

namespace ptxbench::emu {

using ptx::Mod;
using ptx::Type;

namespace {

template <class S, class U>
U integer(AtomicOp op, U old, U b) {
  switch (op) {
    case AtomicOp::add:
      return static_cast<U>(old + b);
    case AtomicOp::min:
      return static_cast<S>(old) < static_cast<S>(b) ? old : b;
    case AtomicOp::max:
      return static_cast<S>(old) > static_cast<S>(b) ? old : b;
    case AtomicOp::and_:
      return old & b;
    case AtomicOp::or_:
      return old | b;
    case AtomicOp::xor_:
      return old ^ b;
    case AtomicOp::exch:
      return b;
    case AtomicOp::inc:
      return old >= b ? 0 : static_cast<U>(old + 1);
    case AtomicOp::dec:
      return old == 0 || old > b ? b : static_cast<U>(old - 1);
    default:
      return old;
  }
}

float float_value(AtomicOp op, float old, float b) {
  switch (op) {
    case AtomicOp::add:
      return old + b;
    case AtomicOp::min:
      return std::fmin(old, b);
    case AtomicOp::max:
      return std::fmax(old, b);
    default:
      return b;
  }
}

uint32_t canonical(float f) { return f != f ? 0x7fffffffu : std::bit_cast<uint32_t>(f); }

template <class ToFloat, class FromFloat>
uint64_t half_pair(AtomicOp op, int lanes, uint64_t old, uint64_t b, ToFloat widen,
                   FromFloat narrow) {
  uint64_t out = 0;
  for (int i = 0; i < lanes; i++) {
    uint16_t x = static_cast<uint16_t>(old >> (16 * i)), y = static_cast<uint16_t>(b >> (16 * i));
    out |= uint64_t{narrow(float_value(op, widen(x), widen(y)))} << (16 * i);
  }
  return out;
}

}  // namespace

bool atomic_op(const ptx::Modifiers& m, Type type, AtomicOp* op) {
  int bits = ptx::bits(type);
  bool is_float = ptx::is_float(type);
  if (m.has(Mod::exch))
    *op = AtomicOp::exch;
  else if (m.has(Mod::cas))
    *op = AtomicOp::cas;
  else if (m.has(Mod::add))
    *op = AtomicOp::add;
  else if (m.has(Mod::min))
    *op = AtomicOp::min;
  else if (m.has(Mod::max))
    *op = AtomicOp::max;
  else if (m.has(Mod::and_))
    *op = AtomicOp::and_;
  else if (m.has(Mod::or_))
    *op = AtomicOp::or_;
  else if (m.has(Mod::xor_))
    *op = AtomicOp::xor_;
  else if (m.has(Mod::inc))
    *op = AtomicOp::inc;
  else if (m.has(Mod::dec))
    *op = AtomicOp::dec;
  else
    return false;
  if (is_float)
    return bits <= 64 && (*op == AtomicOp::add || *op == AtomicOp::min || *op == AtomicOp::max);
  return bits == 16 ? *op == AtomicOp::cas || *op == AtomicOp::exch : bits == 32 || bits == 64;
}

uint64_t atomic_result(AtomicOp op, Type type, uint64_t old, uint64_t b, uint64_t c) {
  if (op == AtomicOp::cas) return old == b ? c : old;
  if (op == AtomicOp::exch) return b;
  switch (type) {
    case Type::f32:
      return canonical(float_value(op, std::bit_cast<float>(static_cast<uint32_t>(old)),
                                   std::bit_cast<float>(static_cast<uint32_t>(b))));
    case Type::f64:
      return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
    case Type::f16:
    case Type::f16x2:
      return half_pair(
          op, type == Type::f16 ? 1 : 2, old, b,
          [](uint16_t v) { return numeric::f16_to_float(v); },
          [](float v) { return numeric::f16_from_float(v); });
    case Type::bf16:
    case Type::bf16x2:
      return half_pair(
          op, type == Type::bf16 ? 1 : 2, old, b,
          [](uint16_t v) { return numeric::bf16_to_float(v); },
          [](float v) { return numeric::bf16_from_float(v); });
    case Type::s32:
      return integer<int32_t>(op, static_cast<uint32_t>(old), static_cast<uint32_t>(b));
    case Type::s64:
      return integer<int64_t>(op, old, b);
    case Type::u64:
    case Type::b64:
      return integer<uint64_t>(op, old, b);
    default:
      return integer<uint32_t>(op, static_cast<uint32_t>(old), static_cast<uint32_t>(b));
  }
}

}  // namespace ptxbench::emu
