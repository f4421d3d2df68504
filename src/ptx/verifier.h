#pragma once
// What the grammar alone cannot say: does the module's target have the instruction, do operands fit
// the instruction table, registers the type, variables the state space, calls the callee.

#include <string>
#include <string_view>

#include "base/result.h"
#include "ptx/ast.h"
#include "ptx/instruction_table.h"

namespace ptxbench::ptx {

// The first error, of kind "ptx-target" (an instruction that the target or PTX version lacks; the
// message names the counterpart where the architecture has one) or "ptx-operands".
Result<void> verify(const Module& module, std::string_view file_name = "");

struct Target {
  int sm = 0;       // 90
  char suffix = 0;  // 'a', 'f' or 0
};
// "sm_90a"; sm is 0 when the text is no target.
Target parse_target(std::string_view text);
bool satisfies(const Requirement& requirement, const Target& target);
// "sm_90a", "sm_100 or later", "sm_100a/f or sm_110a/f" (the targets of those families), ...
std::string to_string(const Requirement& requirement);

// What the instruction needs in this form, single modifiers and types included; and in the form
// that it fits.
Requirement requirement_of(const Instruction& instruction, const Form& form);
Requirement requirement_of(const Instruction& instruction);

}  // namespace ptxbench::ptx
