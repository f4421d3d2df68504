#include "emu/isa.h"

namespace ptxbench::emu {

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
      return "does not exist from sm_70 on; vote.sync does";
    case Op::vadd2:
    case Op::vsub2:
    case Op::vavrg2:
    case Op::vabsdiff2:
    case Op::vmin2:
    case Op::vmax2:
    case Op::vset:
    case Op::vset2:
    case Op::vset4:
    case Op::vmad:
    case Op::vshl:
    case Op::vshr:
      return "this video instruction is not emulated";
    default:
      return nullptr;
  }
}

}  // namespace ptxbench::emu
