// Instructions: the dotted opcode by the instruction table, then the operands.

#include <fmt/format.h>

#include <bit>

#include "ptx/parser_impl.h"

namespace ptxbench::ptx {
namespace {

const std::unordered_map<std::string_view, Special>& specials() {
  static const auto* map = new std::unordered_map<std::string_view, Special>{
#define PTX_SREG(name, text, type, components) {text, Special::name},
#include "ptx/sregs.def"
#undef PTX_SREG
  };
  return *map;
}

// Ops of which a word may appear twice, meaning different things by position.
bool may_repeat(Op op, Mod mod) {
  if (stands_twice(mod)) return true;
  if (op == Op::mma || op == Op::wmma_mma) return mod == Mod::row || mod == Mod::col;
  return op == Op::createpolicy_fractional || op == Op::createpolicy_range;
}

// .b3210 and .h10 of the SIMD video instructions: four bytes, or two halves, out of two registers
// (as a mask: any of .b3210's digits). Kept as selector 11 and 12 with an octal digit for each part
// in value.
bool simd_selector(std::string_view text, Operand* out) {
  bool bytes = text.starts_with(".b");
  size_t most = bytes ? 4 : 2;
  if ((!bytes && !text.starts_with(".h")) || text.size() < 4 || text.size() > most + 2)
    return false;
  uint64_t value = 1;  // a leading one keeps leading zeros
  for (char ch : text.substr(2)) {
    if (ch < '0' || ch > (bytes ? '7' : '3')) return false;
    value = value << 3 | static_cast<uint64_t>(ch - '0');
  }
  out->selector = bytes ? 11 : 12;
  out->value = value;
  return true;
}

}  // namespace

bool Parser::decode_word(std::string_view word, const Token& at, DecodedOpcode* out) {
  const InstructionInfo& row = info(out->op);
  Modifiers& mods = out->mods.edit();
  using Kind = Modifiers::Word::Kind;
  MatrixShape shape;
  WordMeaning meaning = find_word(word);
  bool allowed = false, repeated = false;
  if (row.shape && parse_shape(word, &shape)) {
    meaning = {true, {Kind::shape, 0}};
    allowed = true;
    repeated = mods.shape.m != 0;
    mods.shape = shape;
    if (word == "m8n8") mods.set(Mod::m8n8);
  } else if (meaning.known && meaning.word.kind == Kind::mod) {
    Mod mod = static_cast<Mod>(meaning.word.value);
    const bool known_here =
        row.allows(mod) && mod != Mod::unified;  // that stands behind the address
    allowed = known_here || stands_anywhere(mod);
    repeated = mods.has(mod) && !may_repeat(out->op, mod);
    if (known_here) mods.set(mod);
  } else if (meaning.known && meaning.word.kind == Kind::type) {
    allowed = row.allows(static_cast<Type>(meaning.word.value));
    mods.types.push_back(static_cast<Type>(meaning.word.value));
  } else if (meaning.known) {
    allowed = row.allows(static_cast<Space>(meaning.word.value));
    mods.spaces.push_back(static_cast<Space>(meaning.word.value));
  }
  Token where = at;
  where.column += static_cast<uint32_t>(word.data() - at.text.data());
  if (!allowed) {
    std::string near = nearest_word(out->op, word);
    return fail(where, fmt::format("'.{}' is no modifier of {}{}", word, name(out->op),
                                   near.empty() ? "" : fmt::format("; did you mean '.{}'?", near)));
  }
  if (repeated) return fail(where, fmt::format("'.{}' is given twice", word));
  if (mods.spelled == Modifiers::kMaxWords) return fail(where, "too many modifiers");
  mods.spelling[mods.spelled++] = meaning.word;
  return true;
}

Parser::DecodedOpcode* Parser::decode(const Token& mnemonic) {
  auto [it, fresh] = opcodes_.try_emplace(mnemonic.text);
  DecodedOpcode& out = it->second;
  if (!fresh) return &out;
  size_t length = 0;
  if (!find_opcode(mnemonic.text, &out.op, &length)) {
    std::string near = nearest_opcode(mnemonic.text);
    fail(mnemonic, fmt::format("unknown instruction '{}'{}", mnemonic.text.substr(0, 80),
                               near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
    return nullptr;
  }
  std::string_view rest = mnemonic.text.substr(length);
  while (!rest.empty()) {
    rest.remove_prefix(rest[0] == '.' ? 1 : 2);
    std::string_view word = rest.substr(0, rest.find('.'));
    if (!decode_word(word, mnemonic, &out)) return nullptr;
    rest.remove_prefix(word.size());
  }
  return &out;
}

// The first form that modifiers and operands fit.
uint16_t Parser::find_form(DecodedOpcode* decoded, const Instruction& instruction) {
  const std::vector<Form>& forms = info(decoded->op).forms;
  for (size_t k = 0;; ++k) {
    while (k == decoded->forms.size()) {
      if (decoded->looked_at == forms.size()) return Instruction::kNoForm;
      if (modifiers_fit(forms[decoded->looked_at], decoded->mods))
        decoded->forms.push_back(decoded->looked_at);
      ++decoded->looked_at;
    }
    const uint16_t i = decoded->forms[k];
    if (!operands_fit(forms[i], instruction)) continue;
    // a word behind the address, which the mnemonic has not
    if (instruction.mods.has(Mod::unified) && !modifiers_fit(forms[i], instruction.mods)) continue;
    return i;
  }
}

bool Parser::parse_instruction(const Token& mnemonic, uint32_t guard, bool guard_negated) {
  DecodedOpcode* decoded = decode(mnemonic);
  if (!decoded) return false;
  Instruction instruction;
  instruction.op = decoded->op;
  instruction.mods = decoded->mods;
  instruction.guard = guard;
  instruction.guard_negated = guard_negated;
  instruction.line = mnemonic.line;
  instruction.column = mnemonic.column;
  instruction.loc = loc_;
  bool ok = instruction.op == Op::call ? parse_call(&instruction) : parse_operands(&instruction);
  if (!ok || !expect(';')) return false;
  instruction.form = find_form(decoded, instruction);
  function_.body.emplace_back(std::move(instruction));
  return true;
}

bool Parser::parse_operands(Instruction* out) {
  if (lexer_.peek().is(';')) return true;
  const size_t first = operands_.size();
  do {
    const size_t position = operands_.size() - first;
    if (position >= 16) return fail(lexer_.peek(), "too many operands");
    Operand operand;
    if (out->op == Op::bra) {
      if (!parse_label_operand(Operand::Kind::label, position, &operand)) return false;
    } else if (out->op == Op::brx_idx && position == 1) {
      if (!parse_label_operand(Operand::Kind::string, position, &operand)) return false;
    } else {
      if (!parse_operand(&operand, 0)) return false;
      bool address = operand.kind == Operand::Kind::address;
      if (address && info(out->op).allows(Mod::unified) && accept_directive(".unified"))
        out->mods.edit().set(Mod::unified);
    }
    operands_.push_back(std::move(operand));
  } while (accept(','));
  out->operands = take_operands(first);
  return true;
}

// Those from `first` on, which leave the parser's stack.
OperandList Parser::take_operands(size_t first) {
  OperandList list = OperandList::taken_from(std::span(operands_).subspan(first));
  operands_.resize(first);
  return list;
}

// A label, table or prototype by name, bound when its scope closes.
bool Parser::parse_label_operand(Operand::Kind kind, size_t position, Operand* out) {
  Token name;
  if (!expect_identifier("a label", &name)) return false;
  pending_.push_back({PendingLabel::Where::operand, name.text,
                      static_cast<uint32_t>(function_.body.size()), static_cast<uint32_t>(position),
                      name.line, name.column});
  out->kind = kind;
  return true;
}

// An operand, or two joined by "|".
bool Parser::parse_operand(Operand* out, size_t depth) {
  if (!parse_simple_operand(out, depth)) return false;
  if (!accept('|')) return true;
  Operand both[2] = {std::move(*out), {}};
  if (!parse_simple_operand(&both[1], depth)) return false;
  for (const Operand& e : both)
    if (e.kind != Operand::Kind::reg && e.kind != Operand::Kind::sink)
      return fail(lexer_.peek(), "'|' joins two registers");
  *out = Operand();
  out->kind = Operand::Kind::pair;
  out->elements = OperandList::taken_from(both);
  return true;
}

bool Parser::parse_simple_operand(Operand* out, size_t depth) {
  const Token token = lexer_.peek();
  if (token.kind == Token::Kind::identifier && token.text != "WARP_SZ")
    return parse_name_operand(out);
  if (token.is('{')) return parse_vector(out, depth);
  if (token.is('[')) return parse_address(out, depth);
  if (accept('!')) {
    if (lexer_.peek().kind != Token::Kind::identifier) return fail_expected("a predicate register");
    out->negated = true;
    if (!parse_name_operand(out)) return false;
    if (out->kind != Operand::Kind::reg) return fail(token, "'!' applies to a predicate register");
    return true;
  }
  if (token.is('-')) {  // -%r3.b1, of vmad
    Lexer before = lexer_;
    lexer_.next();
    bool name = lexer_.peek().kind == Token::Kind::identifier;
    out->negated = name && !lexer_.peek().is_identifier("WARP_SZ");
    if (out->negated) {
      if (!parse_name_operand(out)) return false;
      if (out->kind != Operand::Kind::reg) return fail(token, "'-' applies to a register");
      return true;
    }
    lexer_ = before;
  }
  if (at_constant()) {
    Constant c;
    if (!parse_constant(&c)) return false;
    out->kind = c.is_float ? Operand::Kind::floating : Operand::Kind::integer;
    out->is_f32 = c.is_f32;
    out->value = c.bits;
    return true;
  }
  return fail_expected("an operand");
}

bool Parser::parse_name_operand(Operand* out) {
  const Token token = lexer_.next();
  if (token.text == "_") {
    out->kind = Operand::Kind::sink;
    return true;
  }
  uint32_t offset = 0;
  if (const Symbol* symbol = find_symbol(token.text, &offset))
    return set_symbol(*symbol, offset, token, out);
  if (token.text[0] == '%') return parse_special(token, out);
  std::string name(token.text);
  if (auto it = variable_index_.find(name); it != variable_index_.end()) {
    out->kind = Operand::Kind::variable;
    out->index = it->second;
    return (!lexer_.peek().is('+') && !lexer_.peek().is('-')) || parse_offset(&out->offset);
  }
  if (auto it = function_index_.find(name); it != function_index_.end()) {
    out->kind = Operand::Kind::function;
    out->index = it->second;
    return true;
  }
  Op op;
  size_t length = 0;
  if (find_opcode(token.text, &op, &length))
    return fail(token,
                fmt::format("expected ';' or an operand, found the instruction '{}'", token.text));
  return fail(token, fmt::format("'{}' is not declared", token.text));
}

bool Parser::set_symbol(const Symbol& symbol, uint32_t offset, const Token&, Operand* out) {
  switch (symbol.kind) {
    case Symbol::Kind::reg:
    case Symbol::Kind::range:
      out->kind = Operand::Kind::reg;
      out->index = symbol.index + offset;
      return parse_selector(out);
    case Symbol::Kind::param:
      out->is_param = true;
      break;
    case Symbol::Kind::ret:
      out->is_return = true;
      break;
    case Symbol::Kind::variable:
      break;
  }
  out->kind = Operand::Kind::variable;
  out->is_local = true;
  out->index = symbol.index;
  return (!lexer_.peek().is('+') && !lexer_.peek().is('-')) || parse_offset(&out->offset);
}

bool Parser::parse_selector(Operand* out) {
  const Token token = lexer_.peek();
  if (token.kind != Token::Kind::directive) return true;
  static constexpr std::string_view kSelectors[] = {".x",  ".y",  ".z",  ".w",  ".b0",
                                                    ".b1", ".b2", ".b3", ".h0", ".h1"};
  for (uint8_t i = 0; i < std::size(kSelectors); ++i) {
    if (token.text != kSelectors[i]) continue;
    if (i < 4 && i >= function_.registers[out->index].vector)
      return fail(token, fmt::format("'{}' has no element '{}'",
                                     function_.registers[out->index].name, token.text));
    out->selector = static_cast<uint8_t>(i + 1);
    lexer_.next();
    return true;
  }
  if (simd_selector(token.text, out)) {
    lexer_.next();
    return true;
  }
  return fail(token, fmt::format("'{}' selects nothing of a register", token.text));
}

bool Parser::parse_special(const Token& token, Operand* out) {
  auto it = specials().find(token.text);
  out->kind = Operand::Kind::special;
  if (it == specials().end()) {
    for (auto [special, count] : {std::pair{Special::envreg, 32}, std::pair{Special::pm, 8}}) {
      std::string_view prefix = name(special);
      if (!token.text.starts_with(prefix)) continue;
      Number number;
      if (!parse_number(token.text.substr(prefix.size()), &number) || number.is_float ||
          number.bits >= static_cast<uint64_t>(count))
        continue;
      out->index = static_cast<uint32_t>(special);
      out->component = static_cast<uint8_t>(number.bits);
      return true;
    }
    return fail(token,
                fmt::format("'{}' is neither a declared nor a special register", token.text));
  }
  out->index = static_cast<uint32_t>(it->second);
  if (components(it->second) == 1) return true;
  static constexpr std::string_view kComponents[] = {".x", ".y", ".z", ".w"};
  const Token component = lexer_.peek();
  for (uint8_t i = 0; i < 4; ++i) {
    if (component.kind != Token::Kind::directive || component.text != kComponents[i]) continue;
    out->component = i;
    lexer_.next();
    return true;
  }
  return fail(component, fmt::format("'{}' needs .x, .y or .z", token.text));
}

bool Parser::parse_vector(Operand* out, size_t depth) {
  const Token open = lexer_.next();
  if (depth > 2) return fail(open, "vectors are nested too deeply");
  out->kind = Operand::Kind::vector;
  if (accept('}')) return true;
  const size_t first = operands_.size();
  do {
    if (operands_.size() - first >= kMaxElements) return fail(open, "the vector is too long");
    Operand element;
    if (!parse_operand(&element, depth + 1)) return false;
    operands_.push_back(std::move(element));
  } while (accept(','));
  out->elements = take_operands(first);
  return expect('}');
}

// A sum of signed constants: "+16", "+-16", "-8".
bool Parser::parse_offset(int64_t* out) {
  const Token sign = lexer_.next();
  const Token at = lexer_.peek();
  Constant c;
  if (!at_constant()) return fail_expected("a byte offset");
  if (!parse_constant(&c)) return false;
  if (c.is_float) return fail(at, "a byte offset cannot be a floating-point number");
  *out = static_cast<int64_t>(sign.is('-') ? -c.bits : c.bits);
  return true;
}

bool Parser::parse_address(Operand* out, size_t depth) {
  const Token open = lexer_.next();
  if (depth > 0) return fail(open, "an address cannot stand inside another operand");
  out->kind = Operand::Kind::address;
  if (at_constant()) {
    if (!parse_integer("an address", &out->offset)) return false;
  } else {
    const Token at = lexer_.peek();
    if (at.kind != Token::Kind::identifier) return fail_expected("an address");
    Operand base;
    if (!parse_name_operand(&base)) return false;
    if (base.kind != Operand::Kind::reg && base.kind != Operand::Kind::variable)
      return fail(at, fmt::format("'{}' is neither a register nor a variable", at.text));
    bool is_reg = base.kind == Operand::Kind::reg;
    out->base = is_reg ? Operand::Base::reg : Operand::Base::variable;
    out->index = base.index;
    out->is_local = base.is_local;
    out->is_param = base.is_param;
    out->is_return = base.is_return;
    if (base.selector > 4) return fail(at, "an address cannot be a part of a register");
    out->selector = base.selector;
    out->offset = base.offset;
    if ((lexer_.peek().is('+') || lexer_.peek().is('-')) && !parse_offset(&out->offset))
      return false;
  }
  if (!lexer_.peek().is(',')) return expect(']');
  const size_t first = operands_.size();
  while (accept(',')) {
    if (operands_.size() - first >= 16) return fail(open, "the address has too many parts");
    Operand part;
    if (!parse_operand(&part, depth + 1)) return false;
    operands_.push_back(std::move(part));
  }
  out->elements = take_operands(first);
  return expect(']');
}

bool Parser::parse_call_list(Operand* out) {
  out->kind = Operand::Kind::list;
  if (!expect('(')) return false;
  if (accept(')')) return true;
  const size_t first = operands_.size();
  do {
    if (operands_.size() - first >= kMaxElements) return fail(lexer_.peek(), "too many arguments");
    Operand argument;
    if (!parse_operand(&argument, 1)) return false;
    operands_.push_back(std::move(argument));
  } while (accept(','));
  out->elements = take_operands(first);
  return expect(')');
}

// call (ret), target, (args), prototype; brought to the shape [list, target, list {, string}].
bool Parser::parse_call(Instruction* out) {
  Operand all[4];
  Operand &results = all[0], &target = all[1], &arguments = all[2];
  results.kind = arguments.kind = Operand::Kind::list;
  if (lexer_.peek().is('(') && (!parse_call_list(&results) || !expect(','))) return false;
  const Token at = lexer_.peek();
  if (at.kind != Token::Kind::identifier) return fail_expected("a function");
  if (!parse_name_operand(&target)) return false;
  if (target.kind != Operand::Kind::function && target.kind != Operand::Kind::reg)
    return fail(at, fmt::format("'{}' is not a function", at.text));
  bool more = accept(',');
  if (more && lexer_.peek().is('(')) {
    if (!parse_call_list(&arguments)) return false;
    more = accept(',');
  }
  if (more && !parse_label_operand(Operand::Kind::string, 3, &all[3])) return false;
  out->operands = OperandList::taken_from(std::span(all).first(more ? 4 : 3));
  return true;
}

}  // namespace ptxbench::ptx
