#include "emu/sparse.h"

#include <cstring>

namespace ptxbench::emu {
namespace {

using ptx::Type;

bool is_int4(Type t) { return t == Type::s4 || t == Type::u4; }
bool is_narrow(Type t) { return t != Type::tf32 && ptx::bits(t) <= 8; }

// Bytes that one index of the metadata moves: an element, or a pair of 4-bit ones. tf32 counts in
// halves of an element, of which both belong together.
int unit_bytes(Type t) { return is_narrow(t) ? 1 : 2; }

}  // namespace

int sparse_chunks(Type type, int k) {
  return is_int4(type) ? k / 8 : type == Type::tf32 ? k / 2 : k / 4;
}

int sparse_selectors(Type type, int k) {
  const int chunks = sparse_chunks(type, k);
  return is_narrow(type) ? (chunks == 8 ? 2 : 1) : chunks == 4 ? 4 : 2;
}

SparsePattern sparse_pattern(Type type, int k, const uint32_t* lanes, int selector, int row) {
  SparsePattern pattern{};
  const int chunks = sparse_chunks(type, k), quad = row % 8 * 4;
  for (int c = 0; c < chunks; ++c) {
    int lane, shift;
    if (is_narrow(type)) {
      lane = 2 * selector + row / 8 + 2 * (c / 8);
      shift = c % 8 * 4;
    } else {
      lane = (chunks == 4 ? 1 : 2) * selector + c / 4;
      shift = c % 4 * 4 + row / 8 * 16;
    }
    pattern[static_cast<size_t>(c)] = lanes[quad + lane % 4] >> shift & 15;
  }
  return pattern;
}

void gather_sparse(Type type, int k, const SparsePattern& pattern, const uint8_t* dense,
                   uint8_t* to) {
  const int unit = unit_bytes(type), chunks = sparse_chunks(type, k);
  for (int c = 0; c < chunks; ++c) {
    const uint8_t* chunk = dense + c * 4 * unit;
    int first = pattern[static_cast<size_t>(c)] & 3, second = pattern[static_cast<size_t>(c)] >> 2;
    if (type == Type::tf32) first &= 2, second = first + 1;
    std::memcpy(to + 2 * c * unit, chunk + first * unit, static_cast<size_t>(unit));
    std::memcpy(to + (2 * c + 1) * unit, chunk + second * unit, static_cast<size_t>(unit));
  }
}

}  // namespace ptxbench::emu
