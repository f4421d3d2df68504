#pragma once
// Read-modify-write operations of atom and red (PTX ISA "Parallel Synchronization and Communication
// Instructions: atom").

#include <cstdint>

#include "ptx/opcodes.h"

namespace ptxbench::emu {

enum class AtomicOp : uint8_t { add, min, max, inc, dec, and_, or_, xor_, exch, cas };

// The operation that the modifiers name; false: none.
bool atomic_op(const ptx::Modifiers& mods, AtomicOp* op);
// Whether atom and red have it for the type.
bool exists(AtomicOp op, ptx::Type type);

// old -> new, for types of up to 64 bits. b: the operand; c: the second operand of cas (b is
// compared, c is stored). flush: an f32 addition in global memory, which flushes subnormals.
uint64_t atomic_result(AtomicOp op, ptx::Type type, uint64_t old, uint64_t b, uint64_t c,
                       bool flush = false);

}  // namespace ptxbench::emu
