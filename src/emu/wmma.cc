#include "emu/wmma.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "numeric/float_formats.h"

namespace ptxbench::emu {
namespace {

using ptx::Type;
using Role = WmmaFragment::Role;

int bits_of(Type t) { return t == Type::tf32 ? 32 : ptx::bits(t); }
bool is_int8(Type t) { return t == Type::s8 || t == Type::u8; }

struct Shape {
  int m, n, k;
  bool swapped() const { return m == 8 && n == 32; }  // the tile's A is the instruction's B
  int tile_m() const { return m == 8 && n == 8 ? 8 : 16; }
  int tiles() const { return m * n / (tile_m() * 8); }
};

// The mma.sync that computes a tile. Mixed f16 and f32 accumulators work in f32.
MmaForm tile_of(const WmmaForm& f) {
  const Shape s{f.m, f.n, f.k};
  MmaForm t;
  t.m = s.tile_m(), t.k = f.k;
  t.a = s.swapped() ? f.b : f.a, t.b = s.swapped() ? f.a : f.b;
  t.c = t.d = f.c == f.d ? f.d : Type::f32;
  t.saturate = f.saturate, t.exclusive_or = f.exclusive_or;
  return t;
}

// Registers of an operand that hold different elements.
int distinct(const WmmaFragment& f) {
  const int lane_bits = 32 * (f.type == Type::f64 ? 64 : 32);
  return f.rows() * f.columns() * bits_of(f.type) / lane_bits;
}

WmmaFragment fragment(const WmmaForm& f, Role role, Type type) {
  return {role, f.m, f.n, f.k, type};
}

// One tile; tf32 is two steps of K = 4.
void run_tile(MmaForm t, const MmaOperands& o, plan::TensorMode mode) {
  if (t.a != Type::tf32) return mma(t, o, mode);
  t.k = 4;
  MmaOperands first = o, second = o;
  second.a[0] = o.a[2], second.a[1] = o.a[3], second.b[0] = o.b[1];
  for (int r = 0; r < 4; ++r) second.c[r] = o.d[r];
  mma(t, first, mode);
  mma(t, second, mode);
}

// Registers of f16 pairs into f32 registers, and back with one rounding.
void widen(const uint32_t* const* from, int registers, uint32_t (*to)[32]) {
  for (int r = 0; r < 2 * registers; ++r)
    for (int l = 0; l < 32; ++l)
      to[r][l] = std::bit_cast<uint32_t>(
          numeric::f16_to_float(static_cast<uint16_t>(from[r / 2][l] >> r % 2 * 16)));
}
void narrow(const uint32_t (*from)[32], int registers, uint32_t (*to)[32]) {
  auto half = [](uint32_t bits) -> uint32_t {
    const float x = std::bit_cast<float>(bits);
    return std::isnan(x) ? 0x7fffu : numeric::f16_from_float(x);
  };
  for (int r = 0; r < registers; ++r)
    for (int l = 0; l < 32; ++l) to[r][l] = half(from[2 * r][l]) | half(from[2 * r + 1][l]) << 16;
}

}  // namespace

int WmmaFragment::elements() const { return (type == Type::f64 ? 64 : 32) / bits_of(type); }

int WmmaFragment::registers() const {
  return type == Type::f16 && role != Role::accumulator ? 8 : distinct(*this);
}

WmmaElement element_of(const WmmaFragment& f, int reg, int lane, int element) {
  const Shape s{f.m, f.n, f.k};
  const int g = lane / 4, t = lane % 4, per = f.elements(), r = reg % distinct(f);
  if (f.role == Role::accumulator) {
    // Of a tile: row g, then g + 8; two columns side by side, in one register or two.
    const int halves = s.tile_m() / 8, pair = per == 2 ? r : r / 2;
    const int row = 8 * (pair % halves) + g, column = 2 * t + (per == 2 ? element : r % 2);
    const int tile = pair / halves;
    if (s.swapped()) return {column, 16 * tile + row};
    return s.n == 8 ? WmmaElement{16 * tile + row, column} : WmmaElement{row, 8 * tile + column};
  }
  const bool tile_a = (f.role == Role::a) != s.swapped();
  const int halves = tile_a ? s.tile_m() / 8 : 1;
  const int steps = f.k / (4 * per);  // registers along K
  const int tile = r / (halves * steps), within = r % (halves * steps);
  const int mn = 8 * halves * tile + 8 * (within % halves) + g;
  const int k = 4 * per * (within / halves) + per * t + element;
  return f.role == Role::a ? WmmaElement{mn, k} : WmmaElement{k, mn};
}

MmaRegisters registers_of(const WmmaForm& f) {
  return {fragment(f, Role::a, f.a).registers(), fragment(f, Role::b, f.b).registers(),
          fragment(f, Role::accumulator, f.c).registers(),
          fragment(f, Role::accumulator, f.d).registers()};
}

Result<void> check(const WmmaForm& f) {
  auto is = [&](int m, int n, int k) { return f.m == m && f.n == n && f.k == k; };
  const bool large = is(16, 16, 16) || is(8, 32, 16) || is(32, 8, 16);
  const bool same = f.a == f.b, float_accumulators = f.c == Type::f32 && f.d == Type::f32;
  auto half_or_float = [](Type t) { return t == Type::f16 || t == Type::f32; };
  bool exists = false;
  if (f.a == Type::f16) exists = large && same && half_or_float(f.c) && half_or_float(f.d);
  if (f.a == Type::bf16) exists = large && same && float_accumulators;
  if (f.a == Type::tf32) exists = is(16, 16, 8) && same && float_accumulators;
  if (f.a == Type::f64) exists = is(8, 8, 4) && same && f.c == Type::f64 && f.d == Type::f64;
  const bool integers = f.c == Type::s32 && f.d == Type::s32 && same;
  if (is_int8(f.a)) exists = large && integers;
  if (f.a == Type::s4 || f.a == Type::u4) exists = is(8, 8, 32) && integers;
  if (f.a == Type::b1) exists = is(8, 8, 128) && integers;
  if (exists) return check(tile_of(f));
  return Error{"unsupported",
               fmt::format("wmma m{}n{}k{}.{}.{}.{}.{}: no such shape and types", f.m, f.n, f.k,
                           ptx::name(f.d), ptx::name(f.a), ptx::name(f.b), ptx::name(f.c))};
}

void wmma(const WmmaForm& f, const MmaOperands& o, plan::TensorMode mode) {
  const Shape s{f.m, f.n, f.k};
  const MmaForm t = tile_of(f);
  const MmaRegisters all = registers_of(f), tile = registers_of(t);
  uint32_t wide_c[8][32], wide_d[8][32], packed[4][32];
  uint64_t out[8][32];  // D apart from its registers until every tile has read its operands
  if (f.c != t.c) widen(o.c, all.c, wide_c);
  const int before = std::fegetround();
  if (f.a == Type::f64) std::fesetround(f.rounding);
  for (int i = 0; i < s.tiles(); ++i) {
    MmaOperands p;
    const bool a_moves = s.swapped() || s.n == 8;  // else the next tile takes other columns of B
    const auto& a = s.swapped() ? o.b : o.a;
    const auto& b = s.swapped() ? o.a : o.b;
    for (int r = 0; r < tile.a; ++r) p.a[r] = a[(a_moves ? i * tile.a : 0) + r];
    for (int r = 0; r < tile.b; ++r) p.b[r] = b[(a_moves ? 0 : i * tile.b) + r];
    for (int r = 0; r < tile.c; ++r)
      p.c[r] = f.c != t.c ? wide_c[i * tile.c + r] : o.c[i * tile.c + r];
    for (int r = 0; r < tile.d; ++r)
      p.d[r] =
          f.d != t.d ? wide_d[i * tile.d + r] : reinterpret_cast<uint32_t*>(out[i * tile.d + r]);
    run_tile(t, p, mode);
  }
  std::fesetround(before);
  if (f.d != t.d) narrow(wide_d, all.d, packed);
  const size_t bytes = f.d == Type::f64 ? 256 : 128;
  for (int r = 0; r < all.d; ++r)
    std::memcpy(o.d[r], f.d != t.d ? static_cast<const void*>(packed[r]) : out[r], bytes);
}

}  // namespace ptxbench::emu
