// Which target and PTX version an instruction needs (PTX ISA 9.0, the notes at the end of each
// instruction).

#include <fmt/format.h>

#include "ptx/verifier.h"

namespace ptxbench::ptx {
namespace {

using Kind = Requirement::Kind;

// A feature needs more than the opcode alone does.
void raise(Requirement* r, int ptx, int sm, Kind kind = Kind::at_least) {
  if (ptx > r->ptx) r->ptx = ptx;
  if (r->kind == Kind::tcgen05 || r->kind == Kind::exactly_a) return;
  if (sm > r->sm || (sm == r->sm && kind != Kind::at_least)) {
    r->sm = sm;
    r->kind = kind;
  }
}

void raise_for_modifiers(const Instruction& i, Requirement* r) {
  const Modifiers& m = i.mods;
  if (m.has(Mod::cta_group_1) || m.has(Mod::cta_group_2)) raise(r, 86, 100, Kind::tcgen05);
  if (m.has(Mod::tile_gather4) || m.has(Mod::tile_scatter4)) raise(r, 86, 100);
  if (m.has(Mod::im2col_w) || m.has(Mod::im2col_w_128)) raise(r, 86, 100);
  if (m.has(Mod::cp_mask)) raise(r, 86, 100);
  if (m.has(Mod::v8) && (i.op == Op::ld || i.op == Op::st)) raise(r, 88, 100);
  if (m.has(Mod::block_scale) && i.op == Op::mma) raise(r, 87, 120, Kind::a_and_later);
  if (m.has(Mod::kind_f8f6f4) && i.op == Op::mma) raise(r, 87, 120, Kind::a_and_later);
  if (m.has(Mod::cluster)) raise(r, 78, 90);
  if (m.has(Mod::proxy) && i.op == Op::fence && !m.has(Mod::alias)) raise(r, 80, 90);
  if (m.has(Mod::mbarrier_init) && i.op == Op::fence) raise(r, 80, 90);
  if (m.has(Mod::expect_tx) || (m.has(Mod::parity) && i.op == Op::mbarrier_try_wait))
    raise(r, 80, 90);
  if ((i.op == Op::ldmatrix || i.op == Op::stmatrix) && m.shape.m == 16)
    raise(r, 86, 100, Kind::a_and_later);
}

void raise_for_type(const Instruction& i, Type type, Requirement* r) {
  switch (type) {
    case Type::f32x2:
      raise(r, 86, 100);
      break;
    case Type::e4m3:
    case Type::e5m2:
      if (i.op == Op::mma) raise(r, 84, 89);
      break;
    case Type::e4m3x2:
    case Type::e5m2x2:
      raise(r, 78, 89);
      break;
    case Type::e2m1x2:
    case Type::e2m3x2:
    case Type::e3m2x2:
    case Type::ue8m0x2:
    case Type::e4m3x4:
    case Type::e5m2x4:
    case Type::e2m3x4:
    case Type::e3m2x4:
    case Type::e2m1x4:
      if (i.op == Op::cvt) raise(r, 86, 100, Kind::a_and_later);
      break;
    case Type::f32:
      if (i.op == Op::redux_sync) raise(r, 86, 100, Kind::a_and_later);
      break;
    case Type::bf16:
    case Type::bf16x2:
      if (i.op == Op::add || i.op == Op::sub || i.op == Op::mul) raise(r, 78, 90);
      break;
    default:
      break;
  }
}

}  // namespace

Target parse_target(std::string_view text) {
  Target t;
  if (!text.starts_with("sm_")) return t;
  text.remove_prefix(3);
  while (!text.empty() && text[0] >= '0' && text[0] <= '9' && t.sm < 10000) {
    t.sm = t.sm * 10 + text[0] - '0';
    text.remove_prefix(1);
  }
  if (text.size() == 1 && (text[0] == 'a' || text[0] == 'f')) {
    t.suffix = text[0];
  } else if (!text.empty()) {
    t.sm = 0;
  }
  return t;
}

bool satisfies(const Requirement& r, const Target& t) {
  switch (r.kind) {
    case Kind::at_least:
      return t.sm >= r.sm;
    case Kind::exactly_a:
      return t.sm == r.sm && t.suffix == 'a';
    case Kind::a_and_later:
      return t.sm >= r.sm && t.suffix != 0;
    case Kind::tcgen05:
      return t.sm >= 100 && t.sm < 120 && t.suffix != 0;
  }
  return false;
}

std::string to_string(const Requirement& r) {
  switch (r.kind) {
    case Kind::at_least:
      return fmt::format("sm_{} or later", r.sm);
    case Kind::exactly_a:
      return fmt::format("sm_{}a", r.sm);
    case Kind::a_and_later:
      return fmt::format("sm_{}a or a later architecture-specific target", r.sm);
    case Kind::tcgen05:
      return "sm_100a, sm_101a, sm_103a or sm_110a";
  }
  return {};
}

Requirement requirement_of(const Instruction& instruction) {
  Requirement r = info(instruction.op).requirement;
  raise_for_modifiers(instruction, &r);
  for (Type type : instruction.mods.types) raise_for_type(instruction, type, &r);
  for (Space space : instruction.mods.spaces)
    if (space == Space::shared_cluster) raise(&r, 78, 90);
  return r;
}

}  // namespace ptxbench::ptx
