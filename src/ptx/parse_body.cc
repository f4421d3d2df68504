// Function bodies: statements, nested scopes, declarations, labels.

#include <fmt/format.h>

#include "ptx/parser_impl.h"

namespace ptxbench::ptx {
namespace {

// "%r12" -> "%r" and 12. False where the name does not end in a number written the usual way.
bool split_range(std::string_view name, std::string_view* prefix, uint32_t* number) {
  size_t digits = 0;
  while (digits < name.size() && digits < 10 && name[name.size() - 1 - digits] >= '0' &&
         name[name.size() - 1 - digits] <= '9')
    ++digits;
  if (digits == 0 || digits == name.size() || digits > 8) return false;
  *prefix = name.substr(0, name.size() - digits);
  std::string_view text = name.substr(prefix->size());
  if (digits > 1 && text[0] == '0') return false;
  uint32_t value = 0;
  for (char ch : text) value = value * 10 + static_cast<uint32_t>(ch - '0');
  *number = value;
  return true;
}

// The fundamental types; packed and narrow formats live in .bN registers.
bool is_register_type(Type type) {
  switch (type) {
    case Type::pred:
    case Type::f16:
    case Type::f16x2:
    case Type::f32:
    case Type::f64:
      return true;
    case Type::b1:
    case Type::u2:
    case Type::s2:
    case Type::u4:
    case Type::s4:
    case Type::b1024:
      return false;
    default:
      return type < Type::u16x2;
  }
}

}  // namespace

bool Parser::begin_function(Function f, uint32_t slot) {
  function_ = std::move(f);
  symbols_.clear();
  undo_.clear();
  labels_.clear();
  pending_.clear();
  scopes_.clear();
  numbered_registers_ = false;
  loc_ = kNone;
  function_.body.reserve(128);  // given back at the end where it is too much
  open_scope();
  auto declare_all = [&](std::vector<Variable>& list, Symbol::Kind kind) {
    for (uint32_t i = 0; i < list.size(); ++i) {
      Variable& v = list[i];
      if (v.name == "_") continue;
      Symbol symbol{kind, i, 0, 0};
      if (v.space == Space::reg) {
        v.reg = static_cast<uint32_t>(function_.registers.size());
        function_.registers.push_back({v.name, v.type, v.vector});
        symbol = {Symbol::Kind::reg, v.reg, 0, 0};
      }
      // the names live as long as function_.params does
      Token name{Token::Kind::identifier, v.name, v.line, 1};
      if (!declare(name, symbol)) return false;
    }
    return true;
  };
  if (!declare_all(function_.returns, Symbol::Kind::ret) ||
      !declare_all(function_.params, Symbol::Kind::param) || !parse_body())
    return false;
  symbols_.clear();
  function_.body.shrink_to_fit();
  function_.registers.shrink_to_fit();
  function_.labels.shrink_to_fit();
  module_.functions[slot] = std::move(function_);
  function_ = {};
  return true;
}

void Parser::open_scope() { scopes_.push_back({undo_.size(), labels_.size(), pending_.size()}); }

bool Parser::close_scope() {
  Scope scope = scopes_.back();
  scopes_.pop_back();
  while (undo_.size() > scope.first_undo) {
    auto& [name, old] = undo_.back();
    if (old) {
      symbols_[name] = *old;
    } else {
      symbols_.erase(name);
    }
    undo_.pop_back();
  }
  return resolve_labels(scope);
}

// Binds the references made in the scope to its labels; the others wait for the scopes around it.
bool Parser::resolve_labels(const Scope& scope) {
  size_t kept = scope.first_pending;
  std::unordered_map<std::string_view, uint32_t> here;
  for (size_t i = scope.first_label; i < labels_.size(); ++i) {
    const auto& [name, label] = labels_[i];
    if (!here.emplace(name.text, label).second)
      return fail(name, fmt::format("label '{}' is declared twice in this scope", name.text));
  }
  for (size_t i = scope.first_pending; i < pending_.size(); ++i) {
    auto it = here.find(pending_[i].name);
    if (it != here.end()) {
      bind(pending_[i], it->second);
    } else if (scopes_.empty()) {
      const PendingLabel& p = pending_[i];
      Token at{Token::Kind::identifier, p.name, p.line, p.column};
      return fail(at, fmt::format("no label '{}' in this function", p.name));
    } else {
      pending_[kept++] = pending_[i];
    }
  }
  pending_.resize(kept);
  labels_.erase(labels_.begin() + static_cast<ptrdiff_t>(scope.first_label), labels_.end());
  return true;
}

void Parser::bind(const PendingLabel& pending, uint32_t label) {
  Statement& s = function_.body[pending.statement];
  if (pending.where == PendingLabel::Where::targets) {
    std::get<BranchTargets>(s).targets[pending.operand] = label;
  } else {
    std::get<Instruction>(s).operands[pending.operand].index = label;
  }
}

bool Parser::declare(const Token& name, Symbol symbol) {
  symbol.scope = static_cast<uint32_t>(scopes_.size());
  std::string_view prefix;
  uint32_t number = 0;
  numbered_registers_ |= name.text[0] == '%' && symbol.kind != Symbol::Kind::range &&
                         split_range(name.text, &prefix, &number);
  auto [it, fresh] = symbols_.try_emplace(name.text, symbol);
  if (fresh) {
    undo_.emplace_back(name.text, std::nullopt);
    return true;
  }
  if (it->second.scope == symbol.scope)
    return fail(name, fmt::format("'{}' is declared twice in this scope", name.text));
  undo_.emplace_back(name.text, it->second);
  it->second = symbol;
  return true;
}

// *offset is the position within a range of registers.
const Parser::Symbol* Parser::find_symbol(std::string_view name, uint32_t* offset) const {
  *offset = 0;
  const Symbol* found = nullptr;
  std::string_view prefix;
  uint32_t number = 0;
  const bool numbered = split_range(name, &prefix, &number);
  if (!numbered || name[0] != '%' || numbered_registers_)
    if (auto it = symbols_.find(name);
        it != symbols_.end() && it->second.kind != Symbol::Kind::range)
      found = &it->second;
  if (!numbered) return found;
  auto range = symbols_.find(prefix);
  if (range == symbols_.end() || range->second.kind != Symbol::Kind::range ||
      number >= range->second.count || (found && found->scope >= range->second.scope))
    return found;
  *offset = number;
  return &range->second;
}

// The current token is the body's "{".
bool Parser::parse_body() {
  const Token open = lexer_.next();
  while (true) {
    const Token token = lexer_.peek();
    if (token.kind == Token::Kind::end)
      return fail(token, fmt::format("the body of '{}' that begins in line {} is not closed",
                                     function_.name, open.line));
    if (token.is('}')) {
      lexer_.next();
      if (!close_scope()) return false;
      if (scopes_.empty()) return true;
      function_.body.emplace_back(ScopeEnd{});
    } else if (!parse_statement()) {
      return false;
    }
  }
}

bool Parser::parse_statement() {
  const Token token = lexer_.peek();
  if (accept('{')) {
    if (scopes_.size() >= kMaxScopes) return fail(token, "scopes are nested too deeply");
    open_scope();
    function_.body.emplace_back(ScopeBegin{});
    return true;
  }
  if (accept('@')) {
    bool negated = accept('!');
    Token name;
    if (!expect_identifier("a predicate register", &name)) return false;
    uint32_t offset = 0;
    const Symbol* symbol = find_symbol(name.text, &offset);
    if (!symbol || (symbol->kind != Symbol::Kind::reg && symbol->kind != Symbol::Kind::range))
      return fail(name, fmt::format("'{}' is not a declared register", name.text));
    if (lexer_.peek().kind != Token::Kind::identifier) return fail_expected("an instruction");
    return parse_instruction(lexer_.next_mnemonic(), symbol->index + offset, negated);
  }
  if (token.kind == Token::Kind::identifier) {
    Token word = lexer_.next_mnemonic();
    if (lexer_.peek().is(':')) return parse_labelled(word);
    return parse_instruction(word, kNone, false);
  }
  if (token.kind == Token::Kind::directive) return parse_body_directive();
  return fail_expected("a statement");
}

// A name and ":" that marks a place, or names a table or a prototype.
bool Parser::parse_labelled(const Token& name) {
  lexer_.next();
  if (name.text.find('.') != std::string_view::npos)
    return fail(name, fmt::format("'{}' is not a label", name.text));
  uint32_t label = static_cast<uint32_t>(function_.labels.size());
  function_.labels.push_back(
      {std::string(name.text), static_cast<uint32_t>(function_.body.size())});
  labels_.push_back({name, label});
  if (accept_directive(".branchtargets")) return parse_branch_targets(label);
  if (accept_directive(".calltargets")) return parse_call_targets(label);
  if (accept_directive(".callprototype")) return parse_call_prototype(label);
  function_.body.emplace_back(LabelMark{label});
  return true;
}

bool Parser::parse_branch_targets(uint32_t label) {
  BranchTargets table{label, {}};
  uint32_t statement = static_cast<uint32_t>(function_.body.size());
  do {
    Token name;
    if (!expect_identifier("a label", &name)) return false;
    pending_.push_back({PendingLabel::Where::targets, name.text, statement,
                        static_cast<uint32_t>(table.targets.size()), name.line, name.column});
    table.targets.push_back(kNone);
  } while (accept(','));
  function_.body.emplace_back(std::move(table));
  return expect(';');
}

bool Parser::parse_call_targets(uint32_t label) {
  CallTargets table{label, {}};
  do {
    Token name;
    if (!expect_identifier("a function's name", &name)) return false;
    auto it = function_index_.find(std::string(name.text));
    if (it == function_index_.end())
      return fail(name, fmt::format("'{}' is not a declared function", name.text));
    table.functions.push_back(it->second);
  } while (accept(','));
  function_.body.emplace_back(std::move(table));
  return expect(';');
}

bool Parser::parse_call_prototype(uint32_t label) {
  Prototype prototype;
  if (lexer_.peek().is('(') && !parse_param_list(false, &prototype.returns)) return false;
  Token name;
  if (!expect_identifier("'_'", &name)) return false;
  if (lexer_.peek().is('(') && !parse_param_list(false, &prototype.params)) return false;
  prototype.noreturn = accept_directive(".noreturn");
  while (at_abi_preserve(lexer_.peek()))
    if (!parse_abi_preserve(&prototype.abi_preserve)) return false;
  function_.body.emplace_back(
      CallPrototype{label, static_cast<uint32_t>(function_.prototypes.size())});
  function_.prototypes.push_back(std::move(prototype));
  return expect(';');
}

bool Parser::parse_body_directive() {
  const Token token = lexer_.peek();
  if (accept_directive(".reg")) return parse_registers();
  if (token.text == ".loc") return parse_loc();
  if (accept_directive(".pragma")) {
    Pragma pragma;
    if (!parse_pragma(&pragma.text)) return false;
    function_.body.emplace_back(std::move(pragma));
    return true;
  }
  for (Space space : {Space::shared, Space::local, Space::param, Space::global, Space::const_})
    if (token.text.substr(1) == name(space)) return parse_local_variables();
  return fail(token, fmt::format("unknown directive '{}'", token.text));
}

// ".reg" is taken: .type %r<37>, p, q;
bool Parser::parse_registers() {
  Declarator d;
  d.space = Space::reg;
  const Token at = lexer_.peek();
  if (!parse_declarator(&d)) return false;
  if (!is_register_type(d.type))
    return fail(at, fmt::format("there are no registers of type .{}; .b{} holds them",
                                ptx::name(d.type), bits(d.type)));
  do {
    Token name;
    if (!expect_identifier("a register's name", &name)) return false;
    uint32_t first = static_cast<uint32_t>(function_.registers.size());
    if (!accept('<')) {
      if (first >= kMaxRegisters) return fail(name, "too many registers");
      if (!declare(name, {Symbol::Kind::reg, first, 0, 0})) return false;
      function_.registers.push_back({std::string(name.text), d.type, d.vector});
      function_.body.emplace_back(RegisterDecl{first, 1, false});
      continue;
    }
    const Token count_token = lexer_.next();
    Number count;
    if (count_token.kind != Token::Kind::number || !parse_number(count_token.text, &count) ||
        count.is_float || count.bits == 0)
      return fail(count_token, "expected the number of registers");
    if (count.bits > kMaxRegisters - first)
      return fail(count_token, fmt::format("{} registers are too many", count_token.text));
    if (!expect('>')) return false;
    uint32_t n = static_cast<uint32_t>(count.bits);
    if (!declare(name, {Symbol::Kind::range, first, n, 0})) return false;
    function_.registers.reserve(first + n);
    std::string numbered(name.text);
    for (uint32_t i = 0; i < n; ++i) {
      numbered.resize(name.text.size());
      const fmt::format_int digits(i);
      numbered.append(digits.data(), digits.size());
      function_.registers.push_back({numbered, d.type, d.vector});
    }
    function_.body.emplace_back(RegisterDecl{first, n, true});
  } while (accept(','));
  return expect(';');
}

bool Parser::parse_local_variables() {
  Declarator d;
  if (!parse_declarator(&d)) return false;
  do {
    Token name;
    Variable v;
    if (!expect_identifier("a variable's name", &name) || !finish_variable(d, name, &v))
      return false;
    if (accept('=') && !parse_initializer(&v)) return false;
    uint32_t index = static_cast<uint32_t>(function_.variables.size());
    if (!declare(name, {Symbol::Kind::variable, index, 0, 0})) return false;
    function_.variables.push_back(std::move(v));
    function_.body.emplace_back(VariableDecl{index});
  } while (accept(','));
  return expect(';');
}

}  // namespace ptxbench::ptx
