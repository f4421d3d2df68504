// Decoding of the warp-level matrix multiplications.

#include <fmt/format.h>

#include "emu/decoder.h"

namespace ptxbench::emu {

using ptx::Mod;
using ptx::Op;
using ptx::Operand;
using ptx::Type;

// The registers of one fragment, `expected` of them and as wide as its elements ask.
Result<std::vector<Slot>> Decoder::fragment(Scope& s, const Instruction& i, const Operand& o,
                                            int expected, int bytes, bool written) {
  const std::vector<Operand> single{o};
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
  const auto& mods = i.mods;
  for (Mod m : {Mod::sp, Mod::sp_ordered_metadata, Mod::block_scale})
    if (mods.has(m)) return unsupported(s, i, fmt::format(".{} is not implemented", ptx::name(m)));
  if (i.operands.size() != 4) return unsupported(s, i, "four operands expected");
  MmaSite site;
  site.form.m = mods.shape.m, site.form.n = mods.shape.n, site.form.k = mods.shape.k;
  site.form.d = mods.type(0), site.form.a = mods.type(1);
  site.form.b = mods.type(2), site.form.c = mods.type(3);
  site.form.saturate = mods.has(Mod::satfinite);
  site.form.exclusive_or = mods.has(Mod::xor_);
  if (Result<void> known = check(site.form); !known.ok())
    return unsupported(s, i, known.error().message);
  const MmaRegisters count = registers_of(site.form);
  const int bytes = site.form.a == Type::f64 ? 8 : 4;
  PB_ASSIGN_OR_RETURN(site.d, fragment(s, i, i.operands[0], count.d, bytes, true));
  PB_ASSIGN_OR_RETURN(site.a, fragment(s, i, i.operands[1], count.a, bytes, false));
  PB_ASSIGN_OR_RETURN(site.b, fragment(s, i, i.operands[2], count.b, bytes, false));
  PB_ASSIGN_OR_RETURN(site.c, fragment(s, i, i.operands[3], count.c, bytes, false));
  MicroOp& op = emit(s, i, ops::mma);
  op.flags |= kAligned;
  op.extra = static_cast<uint32_t>(kernel_->mmas.size());
  kernel_->mmas.push_back(std::move(site));
  return {};
}

}  // namespace ptxbench::emu
