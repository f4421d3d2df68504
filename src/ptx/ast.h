#pragma once
// The typed AST of a PTX module (PTX ISA 9.0). Built by ptx::parse, checked by ptx::verify.
//
// Names are resolved while parsing: every register, variable, label and function is an index, so a
// pass never looks at strings. Scopes stay visible as ScopeBegin/ScopeEnd statements so that the
// printer can give the text back, but each declaration (also of the same name in sibling scopes)
// has its own index.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ptx/opcodes.h"
#include "ptx/operand.h"

namespace ptxbench::ptx {

struct Instruction {
  SharedModifiers mods;
  // In PTX order; a call always has list (ret), function or reg, list (args), and for an indirect
  // call a string (prototype or .calltargets table).
  OperandList operands;
  Op op{};
  // The form of info(op).forms that modifiers and operand kinds fit, noted by the parser to save
  // the search; kNoForm when none does, or when the instruction was built or changed elsewhere.
  static constexpr uint16_t kNoForm = 0xffff;
  uint16_t form = kNoForm;
  uint32_t guard = kNone;         // predicate register of @p / @!p
  uint32_t line = 0, column = 0;  // in the PTX text, from 1
  uint32_t loc = kNone;           // index into Module::locations: the .loc in force
  bool guard_negated = false;
  bool operator==(const Instruction&) const = default;
};

// ------------------------------------------------------------------------------------------
// declarations
struct Register {
  std::string name;    // with the leading %
  Type type{};         // as declared: pred, b16, f32, b128, ...
  uint8_t vector = 1;  // .v2/.v4 registers
  bool operator==(const Register&) const = default;
};

// A piece of an initializer: bytes, or the address of something.
struct InitElement {
  uint64_t value = 0;      // integer or float bits, truncated to the element size
  bool is_symbol = false;  // address of a variable or function, plus addend
  bool symbol_is_function = false;
  bool generic = false;     // generic(var)
  uint32_t symbol = kNone;  // Module::variables or Module::functions
  int64_t addend = 0;
  uint8_t mask_shift = 0;  // 0xff(sym) style byte extraction: bits to shift right
  uint8_t mask_bytes = 0;  // 0 = whole address
  bool operator==(const InitElement&) const = default;
};

struct Variable {
  std::string name;
  Space space{};  // global, const_, shared, local, param
  Type type{};
  uint8_t vector = 1;
  uint32_t align = 1;  // bytes, explicit or natural
  std::vector<uint64_t>
      dims;           // empty: scalar; a leading 0 = [] (size from the initializer or the launch)
  uint64_t size = 0;  // bytes; 0 for extern shared []
  Linkage linkage{};  // none, visible, extern_, weak, common
  bool is_managed = false;
  bool ptr = false;  // .ptr parameter attribute; then ptr_space and ptr_align hold
  Space ptr_space{};
  uint32_t ptr_align = 0;
  uint32_t reg = kNone;           // a .reg parameter or result of a .func: Function::registers
  std::vector<InitElement> init;  // flattened over dims; shorter than the variable: rest is zero
  uint32_t line = 0;
  bool operator==(const Variable&) const = default;
};

struct Label {
  std::string name;
  uint32_t statement = kNone;  // index into Function::body of the LabelMark, or of the
                               // BranchTargets, CallTargets or CallPrototype that it names
  bool operator==(const Label&) const = default;
};

struct LabelMark {
  uint32_t label;
  bool operator==(const LabelMark&) const = default;
};
struct ScopeBegin {
  bool operator==(const ScopeBegin&) const = default;
};
struct ScopeEnd {
  bool operator==(const ScopeEnd&) const = default;
};
struct RegisterDecl {  // Function::registers[first, first+count)
  uint32_t first, count;
  bool range = false;  // written as %r<count>
  bool operator==(const RegisterDecl&) const = default;
};
struct VariableDecl {  // Function::variables
  uint32_t variable;
  bool operator==(const VariableDecl&) const = default;
};
struct Pragma {
  std::string text;
  bool operator==(const Pragma&) const = default;
};
struct LocMark {  // Module::locations
  uint32_t loc;
  bool operator==(const LocMark&) const = default;
};
struct BranchTargets {
  uint32_t label;
  std::vector<uint32_t> targets;  // Function::labels
  bool operator==(const BranchTargets&) const = default;
};
struct CallPrototype {
  uint32_t label;
  uint32_t prototype;  // Function::prototypes
  bool operator==(const CallPrototype&) const = default;
};
struct CallTargets {
  uint32_t label;
  std::vector<uint32_t> functions;  // Module::functions
  bool operator==(const CallTargets&) const = default;
};

using Statement =
    std::variant<Instruction, LabelMark, ScopeBegin, ScopeEnd, RegisterDecl, VariableDecl, Pragma,
                 LocMark, BranchTargets, CallPrototype, CallTargets>;
static_assert(sizeof(Statement) <= 48, "there is one for every line of text");

// .abi_preserve and .abi_preserve_control: how many data and control registers the callers of a
// function keep across the call (PTX ISA 9.0, 11.4).
struct AbiPreserve {
  std::optional<uint32_t> data, control;
  bool given() const { return data || control; }
  bool operator==(const AbiPreserve&) const = default;
};

struct PerformanceDirectives {  // 0 or empty = absent
  std::vector<uint32_t> maxntid, reqntid, reqnctapercluster;
  uint32_t minnctapersm = 0, maxnreg = 0, maxclusterrank = 0;
  bool explicitcluster = false, noreturn = false, blocksareclusters = false;
  std::vector<std::string> pragmas;
  AbiPreserve abi_preserve;  // of a .func
  bool operator==(const PerformanceDirectives&) const = default;
};

struct Prototype {  // of an indirect call
  std::vector<Variable> returns, params;
  bool noreturn = false;
  AbiPreserve abi_preserve;
  bool operator==(const Prototype&) const = default;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_declaration = false;  // no body
  Linkage linkage{};
  std::vector<Variable> returns;        // .func results (param or reg space)
  std::vector<Variable> params;         // entry: offset of params[i] is param_offsets[i]
  std::vector<uint32_t> param_offsets;  // bytes within the .param block
  uint32_t param_bytes = 0;
  PerformanceDirectives directives;
  std::vector<Register> registers;
  std::vector<Variable> variables;  // declared in the body: shared, local, param (call arguments)
  std::vector<Label> labels;
  std::vector<Prototype> prototypes;
  std::vector<Statement> body;
  uint32_t line = 0;
  bool operator==(const Function&) const = default;
};

struct SourceLine {   // one .loc
  uint32_t file = 0;  // Module::files
  uint32_t line = 0, column = 0;
  uint32_t function_name = kNone;  // Module::debug_strings, of the inlined function
  uint32_t inlined_at = kNone;     // Module::locations
  bool operator==(const SourceLine&) const = default;
};

struct Alias {  // .alias name, target; both Module::functions
  uint32_t name = kNone, target = kNone;
  bool operator==(const Alias&) const = default;
};

// One declaration at module scope, in the order of the text. A variable or function that is
// declared first and defined later has one index and two entries here.
struct TopLevel {
  enum class Kind : uint8_t { variable, declaration, function, alias, pragma, loc } kind{};
  uint32_t index = 0;  // variables, functions (declaration, function), aliases, pragmas, locations
  bool operator==(const TopLevel&) const = default;
};

struct DebugSection {  // .section .debug_info { ... }, kept as text with its braces
  std::string name, text;
  bool operator==(const DebugSection&) const = default;
};

struct Module {
  int version_major = 0, version_minor = 0;  // .version
  std::string target;                        // "sm_90a"
  std::vector<std::string> target_options;   // "debug", "texmode_independent", ...
  int address_size = 64;
  std::vector<Variable> variables;  // module scope
  std::vector<Function> functions;
  std::vector<std::string> files;  // .file, indexed by SourceLine::file
  std::vector<SourceLine> locations;
  std::vector<std::string> debug_strings;
  std::vector<std::string>
      debug_labels;  // of debug_strings: where they stand in .debug_str ("label+8")
  std::vector<DebugSection> sections;
  std::vector<Alias> aliases;
  std::vector<std::string> pragmas;
  std::vector<TopLevel> order;
  bool operator==(const Module&) const = default;

  const Function* find_function(std::string_view name) const;
  const Variable* find_variable(std::string_view name) const;
};

}  // namespace ptxbench::ptx
