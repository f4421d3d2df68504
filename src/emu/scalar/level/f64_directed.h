#pragma once
// f64 arithmetic rounded toward zero, down or up; the mode stands in MicroOp::imm.
#include "emu/scalar/row.h"

namespace ptxbench::emu::scalar::PTXBENCH_LEVEL {

void directed_add(RegisterView& v, const MicroOp& op, uint32_t mask);
void directed_sub(RegisterView& v, const MicroOp& op, uint32_t mask);
void directed_mul(RegisterView& v, const MicroOp& op, uint32_t mask);
void directed_fma(RegisterView& v, const MicroOp& op, uint32_t mask);
void directed_div(RegisterView& v, const MicroOp& op, uint32_t mask);
void directed_rcp(RegisterView& v, const MicroOp& op, uint32_t mask);
void directed_sqrt(RegisterView& v, const MicroOp& op, uint32_t mask);

}  // namespace ptxbench::emu::scalar::PTXBENCH_LEVEL
