#pragma once
// instructions.def as data: what each opcode allows, and what its operands are.

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/ast.h"
#include "ptx/opcodes.h"

namespace ptxbench::ptx {

enum class Role : uint8_t {
  destination,  // written
  in_out,       // read and written (accumulators of wgmma)
  predicate_destination,
  source,
  predicate_source,
  immediate,
  address,            // registers inside are read
  source_or_address,  // tcgen05.mma's A
  label,
  table,
  call,  // the operands of a call: list, target, list, prototype
};

struct OperandPattern {
  Role role{};
  bool optional = false;
  // The width of registers: none (anything), a fixed type, the instruction's type number `index`
  // exactly or at least, or that type doubled with .wide.
  enum class Width : uint8_t { none, fixed, exact, at_least, wide } width = Width::none;
  Type type{};
  uint8_t index = 0;
};

struct Form {
  bool conditional = false;  // only with this modifier
  Mod condition{};
  std::vector<OperandPattern> operands;
  size_t required = 0;
  std::string text;  // as in the table, for messages
};

// "sm_90" and later, exactly "sm_90a", "sm_90a" and any later a/f target, or a tcgen05 target.
struct Requirement {
  int ptx = 10;  // version x 10
  int sm = 10;
  enum class Kind : uint8_t { at_least, exactly_a, a_and_later, tcgen05 } kind = Kind::at_least;
};

struct InstructionInfo {
  std::vector<Form> forms;
  std::bitset<static_cast<size_t>(Mod::count_)> mods;
  uint64_t types = 0;   // bit per Type
  uint32_t spaces = 0;  // bit per Space
  bool shape = false;
  Requirement requirement;
  bool family_space = false;
  std::vector<Mod> family_mods;

  bool allows(Mod m) const { return mods[static_cast<size_t>(m)]; }
  bool allows(Type t) const { return (types >> static_cast<unsigned>(t)) & 1; }
  bool allows(Space s) const { return (spaces >> static_cast<unsigned>(s)) & 1; }
};

const InstructionInfo& info(Op op);

// The form of the table that the operands fit, or nullptr. Judges number and kind of operands, not
// widths.
const Form* matching_form(const Instruction& instruction);
bool fits(const OperandPattern& pattern, const Operand& operand);

// The name under which executions are counted: "ld.global", "wgmma.mma_async", "fence.proxy.async",
// "mbarrier.arrive.expect_tx", "bar.sync", "cp.async.bulk.tensor.load".
std::string family(const Instruction& instruction);

// What a word after the opcode means, whatever the opcode; nothing when it is no word of PTX.
struct WordMeaning {
  bool known = false;
  Modifiers::Word word;
};
WordMeaning find_word(std::string_view word);
bool parse_shape(std::string_view word, MatrixShape* shape);

// The opcode with the longest text that begins the dotted word; *length = its length. False: none.
bool find_opcode(std::string_view dotted, Op* op, size_t* length);
// For messages: the nearest opcode, or the nearest word that the opcode allows ("" when nothing is
// near).
std::string nearest_opcode(std::string_view dotted);
std::string nearest_word(Op op, std::string_view word);

}  // namespace ptxbench::ptx
