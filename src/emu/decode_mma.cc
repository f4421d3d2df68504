// Decoding of the warp-level matrix multiplications.

#include <fmt/format.h>

#include "emu/decoder.h"

namespace ptxbench::emu {

using ptx::Mod;
using ptx::Op;
using ptx::Operand;
using ptx::Type;

namespace {

// The layouts of A and B in the order of the text: .row and .col are flags, so two different ones
// are told apart by their spelling.
struct Layouts {
  bool a_columns, b_columns;
};
Layouts layouts(const ptx::Modifiers& m) {
  if (!m.has(Mod::row)) return {true, true};
  if (!m.has(Mod::col)) return {false, false};
  for (uint8_t w = 0; w < m.spelled; w++) {
    if (m.spelling[w].kind != ptx::Modifiers::Word::Kind::mod) continue;
    if (m.spelling[w].value == static_cast<uint16_t>(Mod::col)) return {true, false};
    if (m.spelling[w].value == static_cast<uint16_t>(Mod::row)) break;
  }
  return {false, true};
}

}  // namespace

// The registers of one fragment, `expected` of them and as wide as its elements ask.
Result<std::vector<Slot>> Decoder::fragment(Scope& s, const Instruction& i, const Operand& o,
                                            int expected, int bytes, bool written) {
  const ptx::OperandList single{o};
  const auto& elements = o.kind == Operand::Kind::vector ? o.elements : single;
  if (static_cast<int>(elements.size()) != expected)
    return unsupported(
        s, i, fmt::format("a fragment of {} registers, {} expected", elements.size(), expected));
  std::vector<Slot> slots;
  for (const Operand& e : elements) {
    if (e.kind == Operand::Kind::reg && operand_bytes(s, e) != bytes)
      return unsupported(s, i, fmt::format("fragment registers have {} bits here", 8 * bytes));
    if (written && e.kind != Operand::Kind::reg)
      return unsupported(s, i, "D needs a register for every element");
    PB_ASSIGN_OR_RETURN(Slot slot, written ? write(s, i, e) : read(s, i, e, register_type(bytes)));
    slots.push_back(slot);
  }
  return slots;
}

Result<void> Decoder::mma(Scope& s, const Instruction& i) {
  const ptx::Modifiers& mods = i.mods;
  if (mods.has(Mod::block_scale)) return unsupported(s, i, ".block_scale is not implemented");
  MmaSite site;
  MmaForm& f = site.form;
  f.m = mods.shape.m, f.n = mods.shape.n, f.k = mods.shape.k;
  f.d = mods.type(0), f.a = mods.type(1), f.b = mods.type(2), f.c = mods.type(3);
  f.saturate = mods.has(Mod::satfinite);
  f.exclusive_or = mods.has(Mod::xor_);
  f.sparse = mods.has(Mod::sp) || mods.has(Mod::sp_ordered_metadata);
  if (f.sparse && i.operands.size() == 6) f.selector = static_cast<int>(i.operands[5].value & 255);
  const Layouts layout = layouts(mods);
  f.a_columns = layout.a_columns, f.b_rows = !layout.b_columns;
  if (Result<void> known = check(f); !known.ok()) return unsupported(s, i, known.error().message);
  return multiply(s, i, std::move(site), registers_of(f), f.a == Type::f64 ? 8 : 4);
}

Result<void> Decoder::multiply(Scope& s, const Instruction& i, MmaSite site, MmaRegisters count,
                               int bytes) {
  if (i.operands.size() != (site.form.sparse ? 6 : 4))
    return unsupported(s, i, "another number of operands expected");
  PB_ASSIGN_OR_RETURN(site.d, fragment(s, i, i.operands[0], count.d, bytes, true));
  PB_ASSIGN_OR_RETURN(site.a, fragment(s, i, i.operands[1], count.a, bytes, false));
  PB_ASSIGN_OR_RETURN(site.b, fragment(s, i, i.operands[2], count.b, bytes, false));
  PB_ASSIGN_OR_RETURN(site.c, fragment(s, i, i.operands[3], count.c, bytes, false));
  if (site.form.sparse) {
    PB_ASSIGN_OR_RETURN(site.metadata, read(s, i, i.operands[4], Type::b32));
  }
  MicroOp& op = emit(s, i, ops::mma);
  op.flags |= kAligned;
  op.extra = static_cast<uint32_t>(kernel_->mmas.size());
  kernel_->mmas.push_back(std::move(site));
  return {};
}

Result<void> Decoder::wmma(Scope& s, const Instruction& i) {
  if (i.op != Op::wmma_mma) return wmma_memory(s, i);
  const ptx::Modifiers& mods = i.mods;
  MmaSite site;
  site.is_wmma = true;
  WmmaForm& f = site.wmma;
  f.m = mods.shape.m, f.n = mods.shape.n, f.k = mods.shape.k;
  // f16 operands are not named: .DTYPE.CTYPE
  const bool short_form = mods.types.size() == 2;
  f.d = mods.type(0), f.c = mods.type(short_form ? 1 : 3);
  f.a = short_form ? Type::f16 : mods.type(1), f.b = short_form ? Type::f16 : mods.type(2);
  f.saturate = mods.has(Mod::satfinite);
  f.exclusive_or = mods.has(Mod::xor_);
  f.rounding = mods.has(Mod::rz)   ? FE_TOWARDZERO
               : mods.has(Mod::rm) ? FE_DOWNWARD
               : mods.has(Mod::rp) ? FE_UPWARD
                                   : FE_TONEAREST;
  if (Result<void> known = check(f); !known.ok()) return unsupported(s, i, known.error().message);
  return multiply(s, i, std::move(site), registers_of(f), f.a == Type::f64 ? 8 : 4);
}

Result<void> Decoder::wmma_memory(Scope& s, const Instruction& i) {
  const ptx::Modifiers& mods = i.mods;
  WmmaMemorySite site;
  site.is_store = i.op == Op::wmma_store;
  WmmaFragment& f = site.fragment;
  f.role = mods.has(Mod::mat_a) && !site.is_store   ? WmmaFragment::Role::a
           : mods.has(Mod::mat_b) && !site.is_store ? WmmaFragment::Role::b
                                                    : WmmaFragment::Role::accumulator;
  f.m = mods.shape.m, f.n = mods.shape.n, f.k = mods.shape.k;
  f.type = mods.type(0);
  site.column_major = mods.has(Mod::col);
  site.space = mods.space();
  WmmaForm any{f.m, f.n, f.k, f.type, f.type, f.type, f.type};  // is there a wmma of this shape?
  if (f.role == WmmaFragment::Role::accumulator) {
    any.a = any.b = f.k == 4              ? Type::f64
                    : f.k == 8            ? Type::tf32
                    : f.k == 32           ? Type::s4
                    : f.k == 128          ? Type::b1
                    : f.type == Type::s32 ? Type::s8
                                          : Type::f16;
  } else {
    any.c = any.d = f.type == Type::f64                             ? Type::f64
                    : ptx::is_float(f.type) || f.type == Type::tf32 ? Type::f32
                                                                    : Type::s32;
  }
  if (Result<void> known = check(any); !known.ok()) return unsupported(s, i, known.error().message);
  const size_t memory = site.is_store ? 0 : 1, value = 1 - memory;
  PB_ASSIGN_OR_RETURN(site.address, address(s, i, i.operands[memory]));
  PB_ASSIGN_OR_RETURN(site.values, fragment(s, i, i.operands[value], f.registers(),
                                            f.type == Type::f64 ? 8 : 4, !site.is_store));
  if (i.operands.size() > 2) {
    PB_ASSIGN_OR_RETURN(site.stride, read(s, i, i.operands[2], Type::u32));
  } else {
    site.stride =
        constant(Type::u32, static_cast<uint64_t>(site.column_major ? f.rows() : f.columns()));
  }
  site.scratch = temp(s, 4);
  MicroOp& op = emit(s, i, ops::wmma_memory);
  op.flags |= kAligned;
  op.extra = static_cast<uint32_t>(kernel_->wmma_memories.size());
  kernel_->wmma_memories.push_back(std::move(site));
  return {};
}

}  // namespace ptxbench::emu
