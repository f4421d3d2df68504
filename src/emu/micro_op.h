#pragma once
// The decoded form of an instruction and the register view its handler sees.
//
// A register is 32 lanes side by side: 32 x u16 (64 bytes), 32 x u32 (128), 32 x u64 (256) or 32 x
// 16 bytes (512, lane-major). A predicate register is one 32-bit mask, bit i = lane i. Immediates
// are splat into the kernel's constant pool at decode time, already converted to the type in which
// the handler reads them, so that a handler never sees an immediate.

#include <array>
#include <cstdint>

#include "ptx/opcodes.h"

namespace ptxbench::ptx {
struct Instruction;
}

namespace ptxbench::emu {

struct MicroOp;

// What every handler may touch. The core's Warp derives from this; a core handler casts down.
//
// Overlap: a destination slot is either the very slot of a source or disjoint from it when both
// have the same width; registers of different widths may overlap in any way.
struct RegisterView {
  uint8_t* regs = nullptr;          // 64-byte aligned
  const uint8_t* consts = nullptr;  // 64-byte aligned
  uint32_t* preds = nullptr;        // [0] all ones, [1] zero, [2] write-only sink, [3] carry flag
};

// Executes `op` for the lanes in `mask` (never 0; guard already applied). Lanes outside the mask
// keep their destination's old value.
using Handler = void (*)(RegisterView& view, const MicroOp& op, uint32_t mask);

// Where an operand lives. Value registers: >= 0 byte offset into the warp's registers, < 0: ~offset
// into the kernel's constant pool. Predicates: index into Warp::preds.
using Slot = int32_t;

struct MicroOp {
  Handler handler = nullptr;
  std::array<Slot, 8>
      operand{};        // leaves of the PTX operands, depth first (pairs and vectors flattened)
  uint8_t negated = 0;  // bit i: predicate operand i is !p
  uint8_t guard_negated = 0;
  uint16_t flags = 0;  // core: see emu/decode.h
  uint32_t guard = 0;  // index into preds; preds[0] is all ones
  uint32_t extra = 0;  // core: index into the kernel's side table
  uint64_t imm = 0;    // free for the handler's own use (set by its finder)
};

// Always inlined: handlers are compiled for several instruction-set levels, and a shared
// out-of-line copy could be the one for a newer CPU.
template <class T>
[[gnu::always_inline]] inline const T* source(const RegisterView& v, Slot slot) {
  return reinterpret_cast<const T*>(slot >= 0 ? v.regs + slot : v.consts + ~slot);
}
template <class T>
[[gnu::always_inline]] inline T* destination(const RegisterView& v, Slot slot) {
  return reinterpret_cast<T*>(v.regs + slot);  // sinks get a slot of their own
}
[[gnu::always_inline]] inline uint32_t predicate(const RegisterView& v, const MicroOp& op, int i) {
  uint32_t p = v.preds[op.operand[i]];
  return (op.negated >> i) & 1 ? ~p : p;
}

// ------------------------------------------------------------------------------------- scalar
// handlers A leaf operand as the finder needs to know it.
struct LeafInfo {
  enum class Kind : uint8_t { reg, pred, immediate, sink } kind = Kind::sink;
  uint8_t bytes = 0;  // register width: 2, 4, 8, 16 (8-bit registers occupy 2)
};

struct ScalarSpec {
  Handler handler = nullptr;  // nullptr: this form is not implemented
  uint8_t leaves = 0;
  uint8_t destinations = 0;         // the first n leaves are written
  std::array<ptx::Type, 8> type{};  // how leaf i is read or written: decides the width and
                                    // conversion of an immediate; pred for predicate leaves
  uint64_t imm = 0;                 // copied to MicroOp::imm
};

// The handler for an instruction that works on registers alone (arithmetic, conversions,
// comparisons, selection, bit operations, packing moves, warp shuffles, votes, matches, redux,
// elect), at the best instruction-set level of this CPU. Leaves as in MicroOp::operand.
ScalarSpec find_scalar(const ptx::Instruction& instruction, const std::array<LeafInfo, 8>& leaves,
                       int count);

}  // namespace ptxbench::emu
