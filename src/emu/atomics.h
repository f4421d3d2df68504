#pragma once
// Read-modify-write operations of atom and red (PTX ISA "Parallel Synchronization and Communication
// Instructions: atom").

#include <cstdint>

#include "ptx/opcodes.h"

namespace ptxbench::emu {

enum class AtomicOp : uint8_t { add, min, max, and_, or_, xor_, exch, cas, inc, dec };

// The operation of an atom/red instruction; false: not implemented for this type.
bool atomic_op(const ptx::Modifiers& mods, ptx::Type type, AtomicOp* op);

// old -> new. b: the operand; c: the second operand of cas (b is compared, c is stored).
uint64_t atomic_result(AtomicOp op, ptx::Type type, uint64_t old, uint64_t b, uint64_t c);

}  // namespace ptxbench::emu
