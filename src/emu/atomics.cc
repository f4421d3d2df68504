#include "emu/atomics.h"

#include "emu/reduction.h"

namespace ptxbench::emu {

using ptx::Mod;
using ptx::Type;

namespace {

template <class Combine>
uint64_t halves(int count, uint64_t old, uint64_t b, Combine combine) {
  uint64_t out = 0;
  for (int i = 0; i < count; i++)
    out |= uint64_t{combine(static_cast<uint16_t>(old >> (16 * i)),
                            static_cast<uint16_t>(b >> (16 * i)))}
           << (16 * i);
  return out;
}

}  // namespace

bool atomic_op(const ptx::Modifiers& m, AtomicOp* op) {
  constexpr std::pair<Mod, AtomicOp> kNames[] = {
      {Mod::exch, AtomicOp::exch}, {Mod::cas, AtomicOp::cas},   {Mod::add, AtomicOp::add},
      {Mod::min, AtomicOp::min},   {Mod::max, AtomicOp::max},   {Mod::and_, AtomicOp::and_},
      {Mod::or_, AtomicOp::or_},   {Mod::xor_, AtomicOp::xor_}, {Mod::inc, AtomicOp::inc},
      {Mod::dec, AtomicOp::dec}};
  for (const auto& [word, value] : kNames)
    if (m.has(word)) return *op = value, true;
  return false;
}

bool exists(AtomicOp op, Type type) {
  const int bits = ptx::bits(type);
  const bool swap = op == AtomicOp::exch || op == AtomicOp::cas;
  if (ptx::is_float(type))
    return op == AtomicOp::add ||
           ((op == AtomicOp::min || op == AtomicOp::max) && bits <= 32 && type != Type::f32);
  if (op == AtomicOp::inc || op == AtomicOp::dec) return type == Type::u32;
  if (bits == 16 || bits == 128) return swap;
  return bits == 32 || bits == 64;
}

uint64_t atomic_result(AtomicOp op, Type type, uint64_t old, uint64_t b, uint64_t c, bool flush) {
  if (op == AtomicOp::cas) return old == b ? c : old;
  if (op == AtomicOp::exch) return b;
  const uint32_t old32 = static_cast<uint32_t>(old), b32 = static_cast<uint32_t>(b);
  switch (type) {
    case Type::f32:
      return combine_f32(op, old32, b32, flush);
    case Type::f64:
      return combine_f64(op, old, b);
    case Type::f16:
    case Type::f16x2:
      return halves(type == Type::f16 ? 1 : 2, old, b,
                    [op](uint16_t x, uint16_t y) { return combine_f16(op, x, y); });
    case Type::bf16:
    case Type::bf16x2:
      return halves(type == Type::bf16 ? 1 : 2, old, b,
                    [op](uint16_t x, uint16_t y) { return combine_bf16(op, x, y); });
    case Type::s32:
      return static_cast<uint32_t>(
          combine_integer(op, static_cast<int32_t>(old32), static_cast<int32_t>(b32)));
    case Type::s64:
      return static_cast<uint64_t>(
          combine_integer(op, static_cast<int64_t>(old), static_cast<int64_t>(b)));
    case Type::u64:
    case Type::b64:
      return combine_integer(op, old, b);
    default:
      return combine_integer(op, old32, b32);
  }
}

}  // namespace ptxbench::emu
