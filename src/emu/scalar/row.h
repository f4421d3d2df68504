#pragma once
// The table of scalar forms: one row says which spellings of an instruction a handler executes and
// how its operands are typed. The finder (scalar/find.cc) picks the first row that fits.

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "emu/micro_op.h"

namespace ptxbench::emu::scalar {

// A set of modifiers. The first 48 are what handlers look at while running: they stand in the low
// bits of MicroOp::imm. The others only select a row.
__extension__ typedef unsigned __int128 ModSet;

// The formatter never settles on a layout for these two.
// clang-format off
#define SCALAR_RUNTIME_MODS(X)                                                                   \
  X(rn) X(rz) X(rm) X(rp) X(rna) X(rni) X(rzi) X(rmi) X(rpi) X(ftz) X(sat) X(satfinite) X(relu)  \
  X(NaN) X(xorsign) X(abs) X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(lo) X(hi) X(ls) X(hs) X(equ)    \
  X(neu) X(ltu) X(leu) X(gtu) X(geu) X(num) X(nan) X(and_) X(or_) X(xor_) X(cc) X(wrap) X(clamp) \
  X(oob)
#define SCALAR_SELECTING_MODS(X)                                                                 \
  X(full) X(approx) X(wide) X(up) X(down) X(bfly) X(idx) X(all) X(any) X(uni) X(ballot) X(l)     \
  X(r) X(b4e) X(f4e) X(b3e) X(rc8) X(ecl) X(ecr) X(rc16) X(finite) X(infinite) X(number)         \
  X(notanumber) X(normal) X(subnormal) X(add) X(min) X(max) X(shiftamt) X(sync) X(aligned)
// clang-format on

namespace mod {
enum RuntimeIndex {
#define X(name) index_##name,
  SCALAR_RUNTIME_MODS(X) runtime_count,
#undef X
};
enum SelectingIndex {
  selecting_base = 47,
#define X(name) index_##name,
  SCALAR_SELECTING_MODS(X) selecting_end,
#undef X
};
static_assert(runtime_count <= 48 && selecting_end <= 128);
#define X(name) inline constexpr uint64_t name = uint64_t{1} << index_##name;
SCALAR_RUNTIME_MODS(X)
#undef X
#define X(name) inline constexpr ModSet name = ModSet{1} << index_##name;
SCALAR_SELECTING_MODS(X)
#undef X
}  // namespace mod

// Which modifiers a row demands: all of `need`, exactly one of `one` (if not empty), any of `may`.
struct Flags {
  ModSet need = 0, one = 0, may = 0;
  constexpr bool accept(ModSet flags) const {
    ModSet choice = flags & one;
    bool one_ok = one == 0 || (choice != 0 && (choice & (choice - 1)) == 0);
    return one_ok && (flags & need) == need && (flags & ~(need | one | may)) == 0;
  }
};
constexpr Flags need(ModSet m) { return {m, 0, 0}; }
constexpr Flags one_of(ModSet m) { return {0, m, 0}; }
constexpr Flags may(ModSet m) { return {0, 0, m}; }
constexpr Flags operator+(Flags a, Flags b) {
  return {a.need | b.need, a.one | b.one, a.may | b.may};
}
inline constexpr Flags kNoFlags{};

// The instruction's types, in the order of the text; none where absent.
struct Types {
  ptx::Type a = ptx::Type::none, b = ptx::Type::none, c = ptx::Type::none;
  constexpr Types() = default;
  constexpr Types(ptx::Type t) : a(t) {}  // NOLINT: a row with one type reads better
  constexpr Types(ptx::Type t, ptx::Type u) : a(t), b(u) {}
  constexpr Types(ptx::Type t, ptx::Type u, ptx::Type v) : a(t), b(u), c(v) {}
  bool operator==(const Types&) const = default;
};

// How the leaf operands are typed, destinations first.
struct Signature {
  uint8_t leaves = 0, destinations = 0;
  ptx::Type type[8]{};
};
constexpr Signature sig(std::initializer_list<ptx::Type> to,
                        std::initializer_list<ptx::Type> from) {
  Signature s;
  for (ptx::Type t : to) s.type[s.leaves++] = t;
  s.destinations = s.leaves;
  for (ptx::Type t : from) s.type[s.leaves++] = t;
  return s;
}
// One destination and `sources` sources, all of type t.
constexpr Signature same(ptx::Type t, int sources) {
  Signature s;
  s.destinations = 1;
  s.leaves = static_cast<uint8_t>(sources + 1);
  for (int i = 0; i <= sources; ++i) s.type[i] = t;
  return s;
}

// How the finder completes a row.
enum class Shape : uint8_t {
  plain,
  // setp: the signature holds the compared type only; leaves are p[|q], a, b[, c]. `extra` of the
  // row is the Relation it computes; the finder adds kSwapped, kInverted, kHasSecond, kHasCombine.
  setp,
  // set: the signature is d, a, b; the finder puts the four relation bits into `extra` and adds c.
  set,
  // lop3: the finder puts the truth table into `extra`.
  lop3,
  // A vector of registers on the left or right of a mov; leaves tell the rows apart.
  pack,
  unpack,
  // d[|p], ...: the signature leaves p out; the finder adds it and kHasSecond.
  optional_predicate,
};

// A comparison is a set of outcomes.
enum Outcome : uint16_t { kEqual = 1, kLess = 2, kGreater = 4, kUnordered = 8 };
// What a setp handler computes for operands (a, b); the rest is swapping and inverting.
enum Relation : uint16_t { kIsEqual, kIsLess, kIsLessEqual, kIsLessGreater, kIsOrdered };
enum CompareExtra : uint16_t {
  kSwapped = 0x100,     // compare (b, a)
  kInverted = 0x200,    // negate the result
  kHasSecond = 0x400,   // p|q
  kHasCombine = 0x800,  // .and/.or/.xor with a predicate
};

struct Row {
  ptx::Op op{};
  Types types;
  Flags flags;
  Signature signature;
  Handler handler = nullptr;
  uint16_t extra = 0;  // bits 48..63 of MicroOp::imm
  // Register widths in bytes of destination and source where they may differ from the types' (cvt),
  // else 0.
  uint8_t to_bytes = 0, from_bytes = 0;
  Shape shape = Shape::plain;
};

struct Rows {
  const Row* first = nullptr;
  size_t count = 0;
};

}  // namespace ptxbench::emu::scalar
