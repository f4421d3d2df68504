#include "emu/isa.h"

namespace ptxbench::emu {
namespace {

constexpr IsaOpcode kOpcodes[] = {
#define ISA_OPCODE(name, forms, executed, spellings) {name, forms, executed, spellings},
#define ISA_GAP(opcode, form, words)
#include "emu/isa_coverage.inc"
#undef ISA_OPCODE
#undef ISA_GAP
};

constexpr IsaGap kGaps[] = {
#define ISA_OPCODE(name, forms, executed, spellings)
#define ISA_GAP(opcode, form, words) {opcode, form, words},
#include "emu/isa_coverage.inc"
    {}  // an array may not be empty
#undef ISA_OPCODE
#undef ISA_GAP
};

constexpr IsaRefusal kRefusals[] = {
#define ISA_REFUSED(opcode, words, reason) {opcode, words, reason},
#include "emu/isa_refused.inc"
#undef ISA_REFUSED
};

}  // namespace

std::span<const IsaOpcode> isa_opcodes() { return kOpcodes; }
std::span<const IsaGap> isa_gaps() { return std::span(kGaps).first(std::size(kGaps) - 1); }
std::span<const IsaRefusal> isa_refusals() { return kRefusals; }

const char* refused(ptx::Op op) {
  using ptx::Op;
  switch (op) {
    case Op::tex:
    case Op::tld4:
    case Op::txq:
    case Op::suld:
    case Op::sust:
    case Op::sured:
    case Op::suq:
    case Op::istypep:
      return "textures and surfaces are not emulated";
    case Op::multimem_ld_reduce:
    case Op::multimem_red:
    case Op::multimem_st:
      return "multimem addresses several GPUs; one is emulated";
    case Op::vote:
    case Op::shfl:
      return "does not exist from sm_70 on; the form with .sync does";
    default:
      return nullptr;
  }
}

}  // namespace ptxbench::emu
