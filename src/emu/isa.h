#pragma once
// The instruction coverage of the emulator, for people: what tests have executed, and what is left
// out on purpose.

#include "ptx/opcodes.h"

namespace ptxbench::emu {

// Why no form of the opcode is executed, as one phrase; null: it is executed.
const char* refused(ptx::Op op);

}  // namespace ptxbench::emu
