#pragma once
// Which registers an instruction reads and writes, by the roles in the instruction table.

#include <cstdint>

#include "ptx/ast.h"
#include "ptx/instruction_table.h"

namespace ptxbench::ptx {

namespace internal {

template <class F>
void visit_registers(const Operand& operand, bool read, bool write, F& f) {
  using Kind = Operand::Kind;
  switch (operand.kind) {
    case Kind::reg:
      if (read) f(operand.index, false);
      if (write) f(operand.index, true);
      break;
    case Kind::address:
      if (operand.base == Operand::Base::reg) f(operand.index, false);
      for (const Operand& e : operand.elements) visit_registers(e, true, false, f);
      break;
    case Kind::vector:
    case Kind::pair:
    case Kind::list:
      for (const Operand& e : operand.elements) visit_registers(e, read, write, f);
      break;
    default:
      break;
  }
}

}  // namespace internal

// Calls f(register, is_write) for each register that the instruction names; a register that is read
// and written is reported twice, the read first. The guard is a read. A guarded write leaves the
// old value where the guard is false, so it does not end a live range. Writes to one element (.x)
// of a vector register, and to a part of a video destination, leave the rest: reported as read and
// write. Operands that fit no form of the table (the verifier refuses them) count as read.
template <class F>
void for_each_register(const Instruction& instruction, F&& f) {
  if (instruction.guard != kNone) f(instruction.guard, false);
  if (instruction.op == Op::call) {
    for (size_t i = 1; i < instruction.operands.size(); ++i)
      internal::visit_registers(instruction.operands[i], true, false, f);
    if (!instruction.operands.empty())
      internal::visit_registers(instruction.operands[0], false, true, f);
    return;
  }
  const Form* form = matching_form(instruction);
  Assignment pattern_of{};
  if (form && !assign_operands(*form, instruction, &pattern_of)) form = nullptr;
  auto role = [&](size_t i) { return form ? form->operands[pattern_of[i]].role : Role::source; };
  auto writes = [&](size_t i) {
    Role r = role(i);
    return r == Role::destination || r == Role::in_out || r == Role::predicate_destination;
  };
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    const Operand& operand = instruction.operands[i];
    bool write = writes(i);
    bool read = !write || role(i) == Role::in_out || operand.selector != 0;
    if (read) internal::visit_registers(operand, true, false, f);
  }
  for (size_t i = 0; i < instruction.operands.size(); ++i)
    if (writes(i)) internal::visit_registers(instruction.operands[i], false, true, f);
}

}  // namespace ptxbench::ptx
