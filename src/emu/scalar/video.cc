// Reads the spelling of a video instruction.
#include "emu/scalar/video.h"

#include "emu/scalar/row.h"
#include "ptx/ast.h"

namespace ptxbench::emu::scalar {
namespace {

using ptx::Mod;
using ptx::Op;

int lanes_of(Op op) {
  switch (op) {
    case Op::vadd2:
    case Op::vsub2:
    case Op::vavrg2:
    case Op::vabsdiff2:
    case Op::vmin2:
    case Op::vmax2:
    case Op::vset2:
      return 2;
    case Op::vadd4:
    case Op::vsub4:
    case Op::vavrg4:
    case Op::vabsdiff4:
    case Op::vmin4:
    case Op::vmax4:
    case Op::vset4:
      return 4;
    case Op::vadd:
    case Op::vsub:
    case Op::vabsdiff:
    case Op::vmin:
    case Op::vmax:
    case Op::vset:
    case Op::vshl:
    case Op::vshr:
    case Op::vmad:
      return 1;
    default:
      return 0;
  }
}

uint8_t outcomes_of(const ptx::Modifiers& mods) {
  const auto has = [&](Mod m) { return mods.has(m); };
  return has(Mod::eq)   ? kEqual
         : has(Mod::ne) ? kLess | kGreater
         : has(Mod::lt) ? kLess
         : has(Mod::le) ? kLess | kEqual
         : has(Mod::gt) ? kGreater
         : has(Mod::ge) ? kGreater | kEqual
                        : 0;
}

// A selector of several digits as the parser keeps it: octal, a leading one, the highest lane
// first.
uint16_t simd_parts(const ptx::Operand& o, int lanes, uint16_t otherwise) {
  return o.selector < 11 ? otherwise : static_cast<uint16_t>(o.value & ((1u << (3 * lanes)) - 1));
}

uint8_t simd_mask(const ptx::Operand& o, int lanes) {
  if (o.selector == 0) return static_cast<uint8_t>((1 << lanes) - 1);
  if (o.selector < 11) return static_cast<uint8_t>(1 << (o.selector - (lanes == 4 ? 5 : 9)));
  uint8_t mask = 0;
  for (uint64_t v = o.value; v > 1; v >>= 3) mask |= static_cast<uint8_t>(1 << (v & 7));
  return mask;
}

uint8_t part(const ptx::Operand& o) {
  return static_cast<uint8_t>(o.selector < 5 ? 0 : o.selector - 4);
}

}  // namespace

VideoInstruction video_instruction(const ptx::Instruction& in) {
  VideoInstruction out;
  const int lanes = lanes_of(in.op);
  if (lanes == 0 || in.operands.size() < 3 || in.operands.size() > 4) return out;
  VideoForm& f = out.form;
  const bool is_set = in.op == Op::vset || in.op == Op::vset2 || in.op == Op::vset4;
  const auto is_signed = [&](size_t i) { return in.mods.type(i) == ptx::Type::s32; };
  f.d_signed = !is_set && is_signed(0);
  f.a_signed = is_signed(is_set ? 0 : 1), f.b_signed = is_signed(is_set ? 1 : 2);
  f.saturate = in.mods.has(Mod::sat), f.wrap = in.mods.has(Mod::wrap);
  f.plus_one = in.mods.has(Mod::po);
  f.second = in.mods.has(Mod::add)   ? VideoSecond::add
             : in.mods.has(Mod::min) ? VideoSecond::min
             : in.mods.has(Mod::max) ? VideoSecond::max
                                     : VideoSecond::none;
  f.shift = in.mods.has(Mod::shr7) ? 7 : in.mods.has(Mod::shr15) ? 15 : 0;
  f.outcomes = is_set ? outcomes_of(in.mods) : 0;
  const ptx::Operand &d = in.operands[0], &a = in.operands[1], &b = in.operands[2];
  f.negate_a = a.negated, f.negate_b = b.negated;
  f.negate_c = in.operands.size() > 3 && in.operands[3].negated;
  if (lanes == 1) {
    f.a_part = part(a), f.b_part = part(b), f.d_part = part(d);
    f.merge = in.operands.size() == 4 && f.second == VideoSecond::none && in.op != Op::vmad;
  } else {
    f.a_part = simd_parts(a, lanes, lanes == 4 ? 03210 : 010);
    f.b_part = simd_parts(b, lanes, lanes == 4 ? 07654 : 032);
    f.d_part = simd_mask(d, lanes);
  }
  out.sources = static_cast<int>(in.operands.size()) - 1;
  return out;
}

bool video_agrees(const ptx::Instruction& in, const VideoForm& f) {
  if (lanes_of(in.op) != 1) return true;
  if (in.op == Op::vmad) return (f.a_signed && f.b_signed) || (f.shift == 0 && !f.saturate);
  constexpr uint8_t kUpperHalf = 6;  // .h1
  const bool bounds = f.second == VideoSecond::min || f.second == VideoSecond::max;
  if (f.merge && (f.saturate || f.d_part == kUpperHalf)) return false;
  if (in.op == Op::vshl) return !f.saturate && !bounds;
  if (in.op == Op::vset) return !bounds;
  if (f.saturate && !f.d_signed) return false;
  return !bounds || (f.d_signed && in.op != Op::vabsdiff);
}

}  // namespace ptxbench::emu::scalar
