#pragma once
// instructions.def as data: the forms of each opcode, their modifiers, operands, PTX version and
// targets.

#include <array>
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
  bool conditional = false;  // there exactly when the instruction has `condition`
  Mod condition{};
  bool may_sink = false;  // "_"
  bool elements_may_sink = false;
  bool must_sink = false;
  bool may_pair = false;  // d|p
  bool must_pair = false;
  bool constant = true;        // a source may be a constant
  bool integers_only = false;  // no f16x2 register, no floating-point constant
  bool special = false;        // a source may be a special register
  bool any_value = false;      // a source may be a variable or a function
  bool parts = false;          // an address may have further parts, [map, {x, y}]
  // The type of registers: none (anything), a fixed type, the instruction's type number `index`
  // exactly or at least as wide, or that type doubled with .wide.
  enum class Width : uint8_t { none, fixed, exact, at_least, wide } width = Width::none;
  Type type{};
  uint8_t index = 0;
  // How many elements: one register, a vector of `count`, as .v2/.v4/.v8 says, or any number.
  enum class Elements : uint8_t { one, fixed, by_vector_word, any } elements = Elements::one;
  uint8_t count = 1;
  bool ranged = false;  // of a constant
  int64_t low = 0, high = 0;
};

// PTX version and targets. A target with suffix 0 means that one and all later ones; 'a' exactly
// that one; 'f' the a and f targets of its family, from that number on.
struct TargetChoice {
  int16_t sm = 0;
  char suffix = 0;
  bool operator==(const TargetChoice&) const = default;
};
struct Requirement {
  int ptx = 10;  // version x 10
  uint8_t count = 0;
  std::array<TargetChoice, 6> any_of{};
  bool operator==(const Requirement&) const = default;
};

// The words of which exactly one (or, optional, at most one) must stand.
struct ModSlot {
  ModSet any_of;
  bool optional = false;
  bool repeats = false;  // one or more
};
struct TypeSlot {
  uint64_t any_of = 0;  // bit per Type
  bool optional = false;
};
struct SpaceSlot {
  uint32_t any_of = 0;  // bit per Space
  bool optional = false;
};

// One line of syntax in the ISA.
struct Form {
  std::vector<ModSlot> slots;
  ModSet allowed;  // of all slots
  std::vector<TypeSlot> types;
  std::vector<SpaceSlot> spaces;
  std::vector<MatrixShape> shapes;  // empty and no any_shape: none
  bool any_shape = false;
  bool two_layouts = false;  // .row/.col for A and for B
  std::vector<OperandPattern> operands;
  uint8_t required = 0;  // operands that must be there
  Requirement requirement;
  std::string_view modifiers_text, operands_text;  // as in the table
};

struct WordNeed {  // a word that asks for more than its form does
  ModSet mods;
  uint64_t types = 0;
  uint32_t spaces = 0;
  Requirement requirement;
};

struct InstructionInfo {
  std::vector<Form> forms;
  std::vector<WordNeed> needs;
  ModSet mods;          // of all forms
  uint64_t types = 0;   // bit per Type
  uint32_t spaces = 0;  // bit per Space
  bool shape = false;
  bool family_space = false;
  std::vector<Mod> family_mods;
  std::string_view proxy, alignment;  // of its accesses, see PTX_MEMORY

  bool allows(Mod m) const { return mods[static_cast<size_t>(m)]; }
  bool allows(Type t) const { return (types >> static_cast<unsigned>(t)) & 1; }
  bool allows(Space s) const { return (spaces >> static_cast<unsigned>(s)) & 1; }
};

const InstructionInfo& info(Op op);
// What words ask for in any instruction.
const std::vector<WordNeed>& common_needs();
// Is the word overlooked by ptxas in instructions that do not have it?
bool stands_anywhere(Mod mod);
// May the word stand more than once in one instruction, as far as ptxas looks?
bool stands_twice(Mod mod);

// Do the modifiers, types, spaces and shape fit the form?
bool modifiers_fit(const Form& form, const Modifiers& mods);
// Do number and kind of the operands fit (not the types of registers)?
bool operands_fit(const Form& form, const Instruction& instruction);
bool fits(const OperandPattern& pattern, const Operand& operand);
// Which pattern each operand has when conditional and optional ones are absent; false: too many or
// too few.
using Assignment = std::array<uint8_t, 16>;
bool assign_operands(const Form& form, const Instruction& instruction, Assignment* pattern_of);

// The form that modifiers and operand kinds fit, else one whose operands fit, else nullptr.
const Form* matching_form(const Instruction& instruction);

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
