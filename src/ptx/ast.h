#pragma once
// The typed AST of a PTX module (PTX ISA 9.0). Built by ptx::parse, checked by ptx::verify.
//
// Names are resolved while parsing: every register, variable, label and function is an index, so a pass
// never looks at strings. Scopes stay visible as ScopeBegin/ScopeEnd statements so that the printer can
// give the text back, but each declaration (also of the same name in sibling scopes) has its own index.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ptx/opcodes.h"

namespace ptxbench::ptx {

constexpr uint32_t kNone = 0xffffffffu;

// ---------------------------------------------------------------------------------------------- operands
struct Operand {
  enum class Kind : uint8_t {
    reg,       // index: Function::registers
    special,   // special register; index: Special, component 0..3 = .x.y.z.w (tid, ctaid, ...)
    integer,   // value (two's complement, 64 bits)
    floating,  // value = bits of an f64 (is_f32 false) or of an f32 (0f…, is_f32 true)
    variable,  // address of a variable used as a value (mov.u64 %rd, var); index: see is_local, offset
    label,     // index: Function::labels (bra target)
    function,  // index: Module::functions (call target, or address taken)
    address,   // [base+offset] or [base, {coords}...]; see base*, elements
    vector,    // {a, b, ...}: elements
    sink,      // _
    pair,      // d|p: elements[0], elements[1] (either may be a sink)
    list,      // (a, b, ...) of a call: elements
    string,    // text, e.g. prototype or table name of an indirect call/branch: index into Function::labels
  };
  Kind kind = Kind::sink;
  bool negated = false;      // !p on a predicate operand; unary minus on a register does not exist in PTX
  bool is_f32 = false;
  bool is_local = false;     // variable belongs to the function (Function::variables), else to the module
  uint8_t component = 0;
  uint32_t index = kNone;
  uint64_t value = 0;
  // address: base is a register, a variable, or neither (absolute)
  enum class Base : uint8_t { none, reg, variable } base = Base::none;
  int64_t offset = 0;        // byte offset of address or variable operands
  std::vector<Operand> elements;  // see Kind; of an address: further comma-separated parts in the brackets
                                  // ([tensorMap, {c0, c1}]), each a vector or a register
};

struct Instruction {
  Op op{};
  Modifiers mods;
  std::vector<Operand> operands;   // in PTX order; a call's (ret), target, (args) are list, function, list
  uint32_t guard = kNone;          // predicate register of @p / @!p
  bool guard_negated = false;
  uint32_t line = 0, column = 0;   // in the PTX text, from 1
  uint32_t loc = kNone;            // index into Module::locations: the .loc in force
};

// ------------------------------------------------------------------------------------------ declarations
struct Register {
  std::string name;     // with the leading %
  Type type{};          // as declared: pred, b16, f32, b128, ...
  uint8_t vector = 1;   // .v2/.v4 registers
};

// A piece of an initializer: bytes, or the address of something.
struct InitElement {
  uint64_t value = 0;          // integer or float bits, truncated to the element size
  bool is_symbol = false;      // address of a variable or function, plus addend
  bool symbol_is_function = false;
  bool generic = false;        // generic(var)
  uint32_t symbol = kNone;     // Module::variables or Module::functions
  int64_t addend = 0;
  uint8_t mask_shift = 0;      // 0xff(sym) style byte extraction: bits to shift right
  uint8_t mask_bytes = 0;      // 0 = whole address
};

struct Variable {
  std::string name;
  Space space{};               // global, const_, shared, local, param
  Type type{};
  uint8_t vector = 1;
  uint32_t align = 1;          // bytes, explicit or natural
  std::vector<uint64_t> dims;  // empty: scalar; a leading 0 = [] (size from the initializer or the launch)
  uint64_t size = 0;           // bytes; 0 for extern shared []
  Linkage linkage{};           // none, visible, extern_, weak, common
  bool is_managed = false;
  std::vector<InitElement> init;
  uint32_t line = 0;
};

struct Label {
  std::string name;
  uint32_t statement = kNone;  // index into Function::body of the LabelMark
};

struct LabelMark { uint32_t label; };
struct ScopeBegin {};
struct ScopeEnd {};
struct RegisterDecl { uint32_t first, count; };           // Function::registers[first, first+count)
struct VariableDecl { uint32_t variable; };               // Function::variables
struct Pragma { std::string text; };
struct LocMark { uint32_t loc; };                         // Module::locations
struct BranchTargets { uint32_t label; std::vector<uint32_t> targets; };        // .branchtargets
struct CallPrototype { uint32_t label; std::vector<Variable> returns, params; bool noreturn = false; };

using Statement = std::variant<Instruction, LabelMark, ScopeBegin, ScopeEnd, RegisterDecl, VariableDecl,
                               Pragma, LocMark, BranchTargets, CallPrototype>;

struct PerformanceDirectives {           // 0 or empty = absent
  std::vector<uint32_t> maxntid, reqntid, reqnctapercluster;
  uint32_t minnctapersm = 0, maxnreg = 0, maxclusterrank = 0;
  bool explicitcluster = false, noreturn = false, blocksareclusters = false;
  std::vector<std::string> pragmas;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_declaration = false;           // no body
  Linkage linkage{};
  std::vector<Variable> returns;         // .func results (param or reg space)
  std::vector<Variable> params;          // entry: offset of params[i] is param_offsets[i]
  std::vector<uint32_t> param_offsets;   // bytes within the .param block
  uint32_t param_bytes = 0;
  PerformanceDirectives directives;
  std::vector<Register> registers;
  std::vector<Variable> variables;       // declared in the body: shared, local, param (call arguments)
  std::vector<Label> labels;
  std::vector<Statement> body;
  uint32_t line = 0;
};

struct SourceLine {                      // one .loc
  uint32_t file = 0;                     // Module::files
  uint32_t line = 0, column = 0;
  uint32_t function_name = kNone;        // Module::debug_strings, of the inlined function
  uint32_t inlined_at = kNone;           // Module::locations
};

struct Module {
  int version_major = 0, version_minor = 0;   // .version
  std::string target;                         // "sm_90a"
  std::vector<std::string> target_options;    // "debug", "texmode_independent", ...
  int address_size = 64;
  std::vector<Variable> variables;            // module scope
  std::vector<Function> functions;
  std::vector<std::string> files;             // .file, indexed by SourceLine::file
  std::vector<SourceLine> locations;
  std::vector<std::string> debug_strings;

  const Function* find_function(std::string_view name) const;
  const Variable* find_variable(std::string_view name) const;
};

}  // namespace ptxbench::ptx
