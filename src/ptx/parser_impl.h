#pragma once
// The recursive-descent parser behind ptx::parse. Its parts: parser.cc (module, error handling),
// parse_declaration.cc (variables, parameters, functions), parse_body.cc (statements, scopes,
// labels), parse_instruction.cc (opcodes, operands, calls), parse_constant.cc (expressions),
// parse_debug.cc.
//
// Every parse_… function returns false after fail(); the first error wins and ends the parse.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ptx/ast.h"
#include "ptx/instruction_table.h"
#include "ptx/lexer.h"
#include "ptx/text_hash.h"

namespace ptxbench::ptx {

inline bool at_abi_preserve(const Token& token) {
  return token.is_directive(".abi_preserve") || token.is_directive(".abi_preserve_control");
}

struct Constant {
  bool is_float = false, is_f32 = false, is_unsigned = false;
  uint64_t bits = 0;
  double as_double() const;
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : file_(file), lexer_(text) {
    opcodes_.reserve(128);
  }
  Result<Module> run();

 private:
  // Bounds that keep hostile text from exhausting stack or memory; real code is far below them.
  static constexpr size_t kMaxScopes = 128, kMaxExpression = 128, kMaxBraces = 16;
  static constexpr size_t kMaxRegisters = 1 << 21, kMaxInit = 1 << 23, kMaxElements = 1 << 11;
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 40;
  static constexpr uint64_t kMaxFile = 1 << 16;

  struct Symbol {
    enum class Kind : uint8_t { reg, range, variable, param, ret } kind{};
    uint32_t index = 0, count = 0;
    uint32_t scope = 0;
  };
  struct PendingLabel {
    enum class Where : uint8_t { operand, targets } where{};
    std::string_view name;
    uint32_t statement = 0, operand = 0;
    uint32_t line = 0, column = 0;
  };
  struct Scope {
    size_t first_undo = 0, first_label = 0, first_pending = 0;
  };
  struct DecodedOpcode {
    Op op{};
    SharedModifiers mods;
    // Of info(op).forms, which the modifiers fit, as far as they have been looked for.
    std::vector<uint16_t> forms;
    uint16_t looked_at = 0;
  };
  struct Declarator {  // what precedes a variable's name
    Space space{};
    Linkage linkage{};
    Type type{};
    uint8_t vector = 1;
    uint32_t align = 0;
    bool is_managed = false, ptr = false;
    Space ptr_space{};
    uint32_t ptr_align = 0;
  };
  struct PendingLoc {
    uint32_t loc = 0;
    std::string_view label;
    uint64_t offset = 0;
    uint32_t line = 0, column = 0;
  };
  struct DebugStrings {
    std::string bytes;
    std::unordered_map<std::string_view, size_t> labels;
  };

  // ------------------------------------------------------------------------------------- parser.cc
  bool fail(const Token& at, std::string message);
  bool fail_expected(std::string_view expected);  // "expected X, found Y" at the current token
  bool expect(char punctuation) { return accept(punctuation) || fail_missing(punctuation); }
  bool fail_missing(char punctuation);
  bool accept(char punctuation) {
    if (!lexer_.peek().is(punctuation)) return false;
    lexer_.skip();
    return true;
  }
  bool accept_directive(std::string_view with_dot) {
    if (!lexer_.peek().is_directive(with_dot)) return false;
    lexer_.skip();
    return true;
  }
  bool expect_identifier(std::string_view what, Token* out);
  bool parse_module();
  bool parse_version();
  bool parse_target();
  bool parse_top_level();
  bool parse_alias();
  bool parse_file();
  bool parse_pragma(std::string* out);

  // -------------------------------------------------------------------------- parse_declaration.cc
  bool parse_linkage(Linkage* out);
  bool parse_attribute(Declarator* out);
  bool parse_declarator(Declarator* out);
  bool parse_align(uint32_t* out);
  bool parse_dims(Variable* v);
  bool finish_variable(const Declarator& d, const Token& name, Variable* v);
  bool parse_module_variables(Linkage linkage);
  bool add_module_variable(Variable v, const Token& name);
  bool parse_initializer(Variable* v);
  bool parse_init_level(Variable* v, size_t depth);
  bool parse_init_element(Variable* v);
  bool parse_init_symbol(InitElement* e);
  bool parse_param(bool entry, Variable* out);
  bool parse_param_list(bool entry, std::vector<Variable>* out);
  bool parse_function(Linkage linkage, bool entry);
  bool parse_directives(bool entry, PerformanceDirectives* out);
  bool parse_abi_preserve(AbiPreserve* out);
  bool parse_dims_list(std::vector<uint32_t>* out);
  bool parse_small(uint32_t* out);
  void layout_params(Function* f);
  uint32_t function_slot(std::string_view name);

  // --------------------------------------------------------------------------------- parse_body.cc
  bool begin_function(Function f, uint32_t slot);
  bool parse_body();
  bool parse_statement();
  bool parse_labelled(const Token& name);
  bool parse_body_directive();
  bool parse_registers();
  bool parse_local_variables();
  bool parse_branch_targets(uint32_t label);
  bool parse_call_targets(uint32_t label);
  bool parse_call_prototype(uint32_t label);
  void open_scope();
  bool close_scope();
  bool resolve_labels(const Scope& scope);
  bool declare(const Token& name, Symbol symbol);
  const Symbol* find_symbol(std::string_view name, uint32_t* offset) const;
  void bind(const PendingLabel& pending, uint32_t label);

  // ---------------------------------------------------------------------------
  // parse_instruction.cc
  bool parse_instruction(const Token& mnemonic, uint32_t guard, bool guard_negated);
  DecodedOpcode* decode(const Token& mnemonic);
  static uint16_t find_form(DecodedOpcode* decoded, const Instruction& instruction);
  bool decode_word(std::string_view word, const Token& at, DecodedOpcode* out);
  bool parse_operands(Instruction* out);
  OperandList take_operands(size_t first);
  bool parse_operand(Operand* out, size_t depth);
  bool parse_simple_operand(Operand* out, size_t depth);
  bool parse_name_operand(Operand* out);
  bool parse_special(const Token& name, Operand* out);
  bool parse_selector(Operand* out);
  bool parse_vector(Operand* out, size_t depth);
  bool parse_address(Operand* out, size_t depth);
  bool parse_offset(int64_t* out);
  bool parse_label_operand(Operand::Kind kind, size_t position, Operand* out);
  bool parse_call(Instruction* out);
  bool parse_call_list(Operand* out);
  bool set_symbol(const Symbol& symbol, uint32_t offset, const Token& at, Operand* out);

  // ------------------------------------------------------------------------------
  // parse_constant.cc
  bool at_constant() const;
  bool parse_constant(Constant* out) { return parse_ternary(out, 0); }
  bool parse_integer(std::string_view what, int64_t* out);
  bool parse_ternary(Constant* out, size_t depth);
  bool parse_binary(Constant* out, int lowest, size_t depth);
  bool parse_unary(Constant* out, size_t depth);
  bool parse_primary(Constant* out, size_t depth);
  bool parse_cast(Constant* out, size_t depth);
  bool apply(const Token& op, Constant* left, const Constant& right);

  // ---------------------------------------------------------------------------------
  // parse_debug.cc
  bool parse_loc();
  bool parse_inlined(SourceLine* line, PendingLoc* pending);
  bool parse_section();
  bool parse_section_item(DebugStrings* section);
  bool resolve_function_names();

  std::string file_;
  Lexer lexer_;
  Module module_;
  std::optional<Error> error_;

  std::unordered_map<std::string, uint32_t> variable_index_, function_index_;
  std::unordered_map<std::string_view, DecodedOpcode, TextHash> opcodes_;

  // The function being parsed.
  Function function_;
  std::unordered_map<std::string_view, Symbol, TextHash> symbols_;
  // Names such as %r5 that were declared singly, in this function.
  bool numbered_registers_ = false;
  std::vector<std::pair<std::string_view, std::optional<Symbol>>> undo_;
  std::vector<std::pair<Token, uint32_t>> labels_;  // declared in open scopes
  std::vector<PendingLabel> pending_;
  std::vector<Scope> scopes_;
  std::vector<Operand> operands_;  // of the lists being read, the innermost last

  uint32_t loc_ = kNone;
  std::unordered_map<uint64_t, uint32_t> last_loc_;  // key: loc_key
  std::vector<PendingLoc> pending_locs_;
  DebugStrings debug_str_;
};

}  // namespace ptxbench::ptx
