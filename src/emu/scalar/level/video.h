#pragma once
// Handlers of video instructions.
#include "emu/micro_op.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {

// `sources`: 2, or 3 with c; the form (scalar/video.h) is in MicroOp::imm. Null: no such
// instruction.
Handler video(ptx::Op op, int sources);

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
