#pragma once
// The verifier behind ptx::verify. Its parts: verifier.cc (functions, which form),
// verify_header.cc (the module's head), diagnose.cc (why no form fits), operand_types.cc (registers
// and constants against a form), verify_rules.cc (what the instruction table cannot say).

#include <optional>
#include <string>
#include <string_view>

#include "ptx/verifier.h"

namespace ptxbench::ptx {

// What a check found wrong, as a sentence; nothing when all is well.
using Complaint = std::optional<std::string>;

// "destination, source, {source}"
std::string describe(const Form& form, const Modifiers& mods);
// "; its counterpart on Blackwell (sm_100a) is ...", or nothing
std::string_view counterpart(Op op, const Target& target);
// Why the modifiers fit no form of the opcode, by the form that they miss least.
std::string diagnose_modifiers(const Instruction& instruction);

// May a register of type `have` stand where the instruction works on `want`? Relaxed: as in ld, st
// and cvt, where registers may be wider.
bool agrees(Type have, Type want, bool relaxed);

// An instruction with what its operands refer to.
struct Context {
  const Module& module;
  const Function& function;
  const Instruction& instruction;
  Target target;
  int version;  // of PTX, x 10

  const Variable& variable(const Operand& operand) const;
  const Register& reg(const Operand& operand) const { return function.registers[operand.index]; }
};

// Version, target and its options, address size, pragmas at module and kernel scope.
Complaint check_header(const Module& module, const Target& target, int version);
// .abi_preserve and .abi_preserve_control of a function, or of a prototype in it.
Complaint check_abi_preserve(const AbiPreserve& preserve, const Target& target, int version);
// The size of all .const variables.
Complaint check_constant_bank(const Module& module);
// The operands, whose kinds fit the form, against its types.
Complaint check_operand_types(const Context& context, const Form& form);
// The rules of single instructions.
Complaint check_rules(const Context& context, const Form& form);

}  // namespace ptxbench::ptx
