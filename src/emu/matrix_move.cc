#include "emu/matrix_move.h"

#include <cstring>

namespace ptxbench::emu {
namespace {

constexpr uint32_t kOffsetMask = 0xffffff;

// A matrix in memory order: m[row][column].
using Matrix = uint16_t[8][8];

}  // namespace

// Lane l holds elements (l/4, 2*(l%4)) and (l/4, 2*(l%4)+1), low half first; transposed: (2*(l%4),
// l/4) and (2*(l%4)+1, l/4).
void ldmatrix(const uint8_t* shared, const uint32_t* rows, int count, bool trans,
              uint32_t* const* regs) {
  Matrix all[4];  // everything is read before a register is written: an address register may be a
                  // destination
  for (int i = 0; i < 8 * count; ++i)
    std::memcpy(all[i / 8][i % 8], shared + (rows[i] & kOffsetMask), 16);
  for (int j = 0; j < count; ++j) {
    const Matrix& m = all[j];
    for (int l = 0; l < 32; ++l) {
      int major = l / 4, minor = 2 * (l % 4);
      uint16_t low = trans ? m[minor][major] : m[major][minor];
      uint16_t high = trans ? m[minor + 1][major] : m[major][minor + 1];
      regs[j][l] = uint32_t{high} << 16 | low;
    }
  }
}

void stmatrix(uint8_t* shared, const uint32_t* rows, int count, bool trans,
              const uint32_t* const* regs) {
  for (int j = 0; j < count; ++j) {
    Matrix m;
    for (int l = 0; l < 32; ++l) {
      int major = l / 4, minor = 2 * (l % 4);
      uint16_t low = static_cast<uint16_t>(regs[j][l]),
               high = static_cast<uint16_t>(regs[j][l] >> 16);
      (trans ? m[minor][major] : m[major][minor]) = low;
      (trans ? m[minor + 1][major] : m[major][minor + 1]) = high;
    }
    for (int i = 0; i < 8; ++i) std::memcpy(shared + (rows[8 * j + i] & kOffsetMask), m[i], 16);
  }
}

}  // namespace ptxbench::emu
