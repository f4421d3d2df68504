#pragma once
// Reads wgmma forms out of instruction text, and holds operands for a call.

#include <memory>
#include <regex>
#include <stdexcept>
#include <string>

#include "emu/tensor_core.h"
#include "emu/tensor_core_levels.h"
#include "emu/tensor_core_operands.h"

namespace ptxbench::emu {

inline ptx::Type type_named(const std::string& text) {
#define PTX_TYPE(name, word, bits) \
  if (text == word) return ptx::Type::name;
#include "ptx/types.def"
#undef PTX_TYPE
  throw std::runtime_error("unknown type " + text);
}

inline int bytes_of(ptx::Type t) {
  switch (t) {
    case ptx::Type::tf32:
      return 4;
    case ptx::Type::bf16:
    case ptx::Type::f16:
      return 2;
    default:
      return 1;
  }
}

// "wgmma....m64n8k16.f32.bf16.bf16 {d0..d3}, a-desc, b-desc, p, 1, 1, 0, 1;"
inline WgmmaForm parse_form(const std::string& ptx) {
  static const std::regex pattern(
      R"(wgmma\.mma_async(\.sp)?.*m64n(\d+)k(\d+)(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)(\.and\.popc)? \{[^}]*\}, (\{[^}]*\}|a-desc), b-desc, p(.*);)");
  std::smatch m;
  if (!std::regex_match(ptx, m, pattern)) throw std::runtime_error("cannot read " + ptx);
  WgmmaForm f;
  f.sparse = m[1].matched;
  f.n = std::stoi(m[2]);
  f.k = std::stoi(m[3]);
  f.saturate = m[4].matched;
  f.d = type_named(m[5]);
  f.a = type_named(m[6]);
  f.b = type_named(m[7]);
  f.a_in_registers = m[9].str()[0] == '{';
  // Immediates: scale a, scale b, then major of a (not with registers) and of b; n stands for -1.
  std::string flags;
  for (char previous = ' '; char c : m[10].str()) {
    if (c == '0' || c == '1') flags += previous == '-' ? 'n' : c;
    previous = c;
  }
  if (flags.size() >= 2) f.negate_a = flags[0] == 'n', f.negate_b = flags[1] == 'n';
  if (flags.size() == 4) f.a_mn_major = flags[2] == '1';
  if (flags.size() >= 3) f.b_mn_major = flags.back() == '1';
  return f;
}

// Register files of a warpgroup: accumulators and A fragments.
struct Fragments {
  uint32_t d[4][128][32] = {};
  uint32_t a[4][4][32] = {};
  WgmmaOperands operands;

  Fragments() {
    for (int w = 0; w < 4; ++w) {
      for (int r = 0; r < 128; ++r) operands.d[w][r] = d[w][r];
      for (int r = 0; r < 4; ++r) operands.a[w][r] = a[w][r];
    }
  }
  // 32-bit accumulator of (row, column).
  uint32_t& at(int row, int column) {
    const int r = 4 * (column / 8) + 2 * (row / 8 % 2) + column % 2;
    return d[row / 16][r][row % 8 * 4 + column % 8 / 2];
  }
  uint32_t get16(int row, int column) {
    const int r = 4 * (column / 8) + 2 * (row / 8 % 2) + column % 2;
    return d[row / 16][r / 2][row % 8 * 4 + column % 8 / 2] >> (16 * (r % 2)) & 0xffff;
  }
  void set16(int row, int column, uint32_t v) {
    const int r = 4 * (column / 8) + 2 * (row / 8 % 2) + column % 2;
    uint32_t& x = d[row / 16][r / 2][row % 8 * 4 + column % 8 / 2];
    x = (x & ~(0xffffu << (16 * (r % 2)))) | v << (16 * (r % 2));
  }
};

}  // namespace ptxbench::emu
