// Variables with their initialisers, parameters, function heads.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ptx/parser_impl.h"

namespace ptxbench::ptx {
namespace {

Space space_of(const Token& t) {
  if (t.kind != Token::Kind::directive) return Space::generic;
  WordMeaning meaning = find_word(t.text.substr(1));
  if (!meaning.known || meaning.word.kind != Modifiers::Word::Kind::space) return Space::generic;
  return static_cast<Space>(meaning.word.value);
}

uint32_t element_bytes(Type type) { return static_cast<uint32_t>(std::max(1, bits(type) / 8)); }

uint64_t align_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

// The bytes that an integer or float constant leaves in an element.
uint64_t element_bits(const Constant& c, Type type) {
  uint64_t value = c.bits;
  if (type == Type::f32 && !(c.is_float && c.is_f32)) {
    value = std::bit_cast<uint32_t>(static_cast<float>(c.as_double()));
  } else if (type == Type::f64 && (!c.is_float || c.is_f32)) {
    value = std::bit_cast<uint64_t>(c.as_double());
  }
  int width = bits(type);
  return width >= 64 ? value : value & ((uint64_t{1} << width) - 1);
}

}  // namespace

bool Parser::parse_linkage(Linkage* out) {
  while (true) {
    if (accept_directive(".visible")) {
      *out = Linkage::visible;
    } else if (accept_directive(".extern")) {
      *out = Linkage::extern_;
    } else if (accept_directive(".weak")) {
      *out = Linkage::weak;
    } else if (accept_directive(".common")) {
      *out = Linkage::common;
    } else {
      return true;
    }
  }
}

// ".attribute" is taken.
bool Parser::parse_attribute(Declarator* out) {
  if (!expect('(')) return false;
  do {
    if (accept_directive(".managed")) {
      out->is_managed = true;
      continue;
    }
    if (!accept_directive(".unified")) return fail_expected("the attribute .managed or .unified");
    if (!expect('(')) return false;
    int64_t ignored = 0;
    if (!parse_integer("a number", &ignored) || !expect(',') ||
        !parse_integer("a number", &ignored) || !expect(')'))
      return false;
  } while (accept(','));
  return expect(')');
}

bool Parser::parse_align(uint32_t* out) {
  const Token at = lexer_.peek();
  int64_t align = 0;
  if (!parse_integer("an alignment", &align)) return false;
  if (align < 1 || align > (1 << 20) || !std::has_single_bit(static_cast<uint64_t>(align)))
    return fail(at, fmt::format("alignment {} is not a power of two", align));
  *out = static_cast<uint32_t>(align);
  return true;
}

// Everything between the linkage and the name; the space may be given by the caller beforehand.
bool Parser::parse_declarator(Declarator* out) {
  while (lexer_.peek().kind == Token::Kind::directive) {
    const Token token = lexer_.peek();
    if (accept_directive(".align")) {
      if (!parse_align(out->ptr ? &out->ptr_align : &out->align)) return false;
    } else if (accept_directive(".attribute")) {
      if (!parse_attribute(out)) return false;
    } else if (accept_directive(".ptr")) {
      out->ptr = true;
    } else if (token.text == ".v2" || token.text == ".v4" || token.text == ".v8") {
      out->vector = static_cast<uint8_t>(token.text[2] - '0');
      lexer_.next();
    } else if (Space space = space_of(token); space != Space::generic) {
      Space& slot = out->ptr ? out->ptr_space : out->space;
      if (slot != Space::generic)
        return fail(token, fmt::format("'{}' is a second state space", token.text));
      slot = space;
      lexer_.next();
    } else {
      WordMeaning meaning = find_word(token.text.substr(1));
      if (!meaning.known || meaning.word.kind != Modifiers::Word::Kind::type)
        return fail(token, fmt::format("expected a type or state space, found '{}'", token.text));
      out->type = static_cast<Type>(meaning.word.value);
      lexer_.next();
    }
  }
  if (out->type == Type::none) return fail_expected("a type such as .b32");
  return true;
}

bool Parser::parse_dims(Variable* v) {
  while (accept('[')) {
    int64_t dim = 0;
    const Token at = lexer_.peek();
    if (!at.is(']')) {
      if (!parse_integer("an array size", &dim)) return false;
      if (dim < 0) return fail(at, "an array size cannot be negative");
    } else if (!v->dims.empty()) {
      return fail(at, "only the first array size may be left out");
    }
    if (v->dims.size() >= kMaxBraces) return fail(at, "too many array dimensions");
    v->dims.push_back(static_cast<uint64_t>(dim));
    if (!expect(']')) return false;
  }
  return true;
}

// The name is taken; array sizes follow. Leaves size 0 where the first one is missing.
bool Parser::finish_variable(const Declarator& d, const Token& name, Variable* v) {
  v->name = name.text;
  v->space = d.space;
  v->type = d.type;
  v->vector = d.vector;
  v->linkage = d.linkage;
  v->is_managed = d.is_managed;
  v->ptr = d.ptr;
  v->ptr_space = d.ptr_space;
  v->ptr_align = d.ptr_align;
  v->line = name.line;
  uint64_t bytes = element_bytes(d.type) * d.vector;
  v->align = d.align ? d.align : static_cast<uint32_t>(std::bit_ceil(bytes));
  if (!parse_dims(v)) return false;
  for (uint64_t dim : v->dims) {
    if (dim != 0 && bytes > kMaxBytes / dim)
      return fail(name, fmt::format("'{}' is too big", name.text));
    bytes *= dim;
  }
  v->size = bytes;
  return true;
}

bool Parser::parse_module_variables(Linkage linkage) {
  Declarator d;
  d.linkage = linkage;
  const Token at = lexer_.peek();
  if (!parse_declarator(&d)) return false;
  if (d.space != Space::global && d.space != Space::const_ && d.space != Space::shared &&
      d.space != Space::tex)
    return fail(at, d.space == Space::local
                        ? "a variable at module scope cannot be .local"
                        : "a declaration at module scope needs .global, .const or .shared");
  do {
    Token name;
    Variable v;
    if (!expect_identifier("a variable's name", &name) || !finish_variable(d, name, &v))
      return false;
    if (accept('=') && !parse_initializer(&v)) return false;
    if (!add_module_variable(std::move(v), name)) return false;
  } while (accept(','));
  return expect(';');
}

bool Parser::add_module_variable(Variable v, const Token& name) {
  if (function_index_.contains(v.name))
    return fail(name, fmt::format("'{}' is already a function", v.name));
  auto [it, fresh] =
      variable_index_.emplace(v.name, static_cast<uint32_t>(module_.variables.size()));
  module_.order.push_back({TopLevel::Kind::variable, it->second});
  if (fresh) {
    module_.variables.push_back(std::move(v));
    return true;
  }
  Variable& old = module_.variables[it->second];
  bool redeclared = v.linkage == Linkage::extern_ || old.linkage == Linkage::extern_ ||
                    old.linkage == Linkage::weak || old.linkage == Linkage::common;
  if (!redeclared) return fail(name, fmt::format("'{}' is declared twice", v.name));
  if (v.linkage != Linkage::extern_) old = std::move(v);
  return true;
}

bool Parser::parse_initializer(Variable* v) {
  const Token at = lexer_.peek();
  if (v->space == Space::shared || v->space == Space::local || v->space == Space::param)
    return fail(
        at, fmt::format("'{}' lies in .{}, which has no initial values", v->name, name(v->space)));
  if (v->dims.empty() && v->vector == 1) {
    bool braced = accept('{');
    if (!parse_init_element(v) || (braced && !expect('}'))) return false;
    return true;
  }
  if (!parse_init_level(v, 0)) return false;
  uint64_t count = v->vector, known = v->vector;
  for (size_t i = 0; i < v->dims.size(); ++i) {
    count *= v->dims[i];
    if (i > 0) known *= v->dims[i];
  }
  if (!v->dims.empty() && v->dims[0] == 0 && known != 0) {
    uint64_t rows = (v->init.size() + known - 1) / known;
    v->size = rows * known * element_bytes(v->type);
  } else if (v->init.size() > count) {
    return fail(at,
                fmt::format("{} values for '{}', which holds {}", v->init.size(), v->name, count));
  }
  return true;
}

// One brace level; a level that is closed early is filled with zeros up to its size.
bool Parser::parse_init_level(Variable* v, size_t depth) {
  if (depth > kMaxBraces) return fail(lexer_.peek(), "the initialiser is nested too deeply");
  if (!expect('{')) return false;
  size_t begin = v->init.size();
  while (!lexer_.peek().is('}')) {
    bool ok = lexer_.peek().is('{') ? parse_init_level(v, depth + 1) : parse_init_element(v);
    if (!ok) return false;
    if (!accept(',')) break;
  }
  const Token at = lexer_.peek();
  if (!expect('}')) return false;
  if (depth == 0) return true;
  uint64_t stride = v->vector;
  for (size_t i = depth; i < v->dims.size(); ++i) stride *= v->dims[i];
  if (depth > v->dims.size()) stride = 1;
  if (v->init.size() - begin > stride) return fail(at, "too many values in these braces");
  if (begin + stride > kMaxInit) return fail(at, "the initialiser is too long");
  v->init.resize(begin + stride);
  return true;
}

bool Parser::parse_init_element(Variable* v) {
  const Token at = lexer_.peek();
  if (v->init.size() >= kMaxInit) return fail(at, "the initialiser is too long");
  InitElement e;
  if (at.kind == Token::Kind::identifier && !at.is_identifier("WARP_SZ")) {
    if (!parse_init_symbol(&e)) return false;
    v->init.push_back(e);
    return true;
  }
  if (!at_constant() && !at.is('!')) return fail_expected("a constant or a variable's name");
  Constant c;
  if (!parse_constant(&c)) return false;
  if (!lexer_.peek().is('(')) {
    e.value = element_bits(c, v->type);
    v->init.push_back(e);
    return true;
  }
  // mask(symbol): some bytes of an address
  uint64_t mask = c.bits;
  int low = mask ? std::countr_zero(mask) / 8 * 8 : 0;
  uint64_t ones = mask ? mask >> low : 0;
  int bytes = std::bit_width(ones) / 8;
  if (c.is_float || bytes == 0 || bytes > 8 ||
      ones != (bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1))
    return fail(at, "the mask of an address must cover whole adjoining bytes");
  lexer_.next();
  if (!parse_init_symbol(&e) || !expect(')')) return false;
  e.mask_shift = static_cast<uint8_t>(low);
  e.mask_bytes = static_cast<uint8_t>(bytes);
  v->init.push_back(e);
  return true;
}

bool Parser::parse_init_symbol(InitElement* e) {
  Token name;
  if (!expect_identifier("a variable's name", &name)) return false;
  if (name.text == "generic" && accept('(')) {
    e->generic = true;
    if (!expect_identifier("a variable's name", &name) || !expect(')')) return false;
  }
  e->is_symbol = true;
  if (auto it = variable_index_.find(std::string(name.text)); it != variable_index_.end()) {
    e->symbol = it->second;
  } else if (auto f = function_index_.find(std::string(name.text)); f != function_index_.end()) {
    e->symbol = f->second;
    e->symbol_is_function = true;
  } else {
    return fail(name, fmt::format("'{}' is not declared", name.text));
  }
  if (lexer_.peek().is('+') || lexer_.peek().is('-')) return parse_offset(&e->addend);
  return true;
}

bool Parser::parse_param(bool entry, Variable* out) {
  Declarator d;
  const Token at = lexer_.peek();
  if (!parse_declarator(&d)) return false;
  if (d.space != Space::param && (entry || d.space != Space::reg))
    return fail(at, "a parameter needs .param");
  Token name;
  if (!expect_identifier("a parameter's name", &name)) return false;
  const Token range = lexer_.peek();
  if (range.is('<')) return fail(range, "a parameter cannot be a range of names");
  return finish_variable(d, name, out);
}

bool Parser::parse_param_list(bool entry, std::vector<Variable>* out) {
  if (!expect('(')) return false;
  if (accept(')')) return true;
  do {
    out->emplace_back();
    if (!parse_param(entry, &out->back())) return false;
  } while (accept(','));
  return expect(')');
}

bool Parser::parse_small(uint32_t* out) {
  const Token at = lexer_.peek();
  int64_t value = 0;
  if (!parse_integer("a number", &value)) return false;
  if (value < 0 || value > INT32_MAX) return fail(at, fmt::format("{} is out of range", value));
  *out = static_cast<uint32_t>(value);
  return true;
}

bool Parser::parse_dims_list(std::vector<uint32_t>* out) {
  do {
    if (out->size() == 3) return fail(lexer_.peek(), "at most three dimensions");
    uint32_t value = 0;
    if (!parse_small(&value)) return false;
    out->push_back(value);
  } while (accept(','));
  return true;
}

// One of .abi_preserve and .abi_preserve_control with its number.
bool Parser::parse_abi_preserve(AbiPreserve* out) {
  const Token word = lexer_.next();
  std::optional<uint32_t>& slot = word.text == ".abi_preserve" ? out->data : out->control;
  if (slot) return fail(word, fmt::format("'{}' is given twice", word.text));
  const Token number = lexer_.next();
  Number value;
  if (number.kind != Token::Kind::number || !parse_number(number.text, &value) || value.is_float)
    return fail(number, fmt::format("expected the number of registers that '{}' keeps", word.text));
  if (value.bits > UINT32_MAX)
    return fail(number, fmt::format("{} registers are too many", number.text));
  slot = static_cast<uint32_t>(value.bits);
  if (lexer_.peek().is_directive(".noreturn"))
    return fail(lexer_.peek(), fmt::format("'.noreturn' must stand in front of '{}'", word.text));
  return true;
}

bool Parser::parse_directives(bool entry, PerformanceDirectives* out) {
  while (lexer_.peek().kind == Token::Kind::directive) {
    bool ok = true;
    if (accept_directive(".maxntid")) {
      ok = parse_dims_list(&out->maxntid);
    } else if (accept_directive(".reqntid")) {
      ok = parse_dims_list(&out->reqntid);
    } else if (accept_directive(".reqnctapercluster")) {
      ok = parse_dims_list(&out->reqnctapercluster);
    } else if (accept_directive(".minnctapersm")) {
      ok = parse_small(&out->minnctapersm);
    } else if (accept_directive(".maxnctapersm")) {
      uint32_t deprecated = 0;
      ok = parse_small(&deprecated);
    } else if (accept_directive(".maxnreg")) {
      ok = parse_small(&out->maxnreg);
    } else if (accept_directive(".maxclusterrank")) {
      ok = parse_small(&out->maxclusterrank);
    } else if (accept_directive(".explicitcluster")) {
      out->explicitcluster = true;
    } else if (accept_directive(".blocksareclusters")) {
      out->blocksareclusters = true;
    } else if (accept_directive(".noreturn")) {
      out->noreturn = true;
    } else if (!entry && at_abi_preserve(lexer_.peek())) {
      ok = parse_abi_preserve(&out->abi_preserve);
    } else if (accept_directive(".pragma")) {
      out->pragmas.emplace_back();
      ok = parse_pragma(&out->pragmas.back());
    } else {
      return fail(lexer_.peek(), fmt::format("unknown directive '{}'", lexer_.peek().text));
    }
    if (!ok) return false;
  }
  return true;
}

// Offsets by the rules of the .param space: each parameter at the next multiple of its alignment.
void Parser::layout_params(Function* f) {
  uint64_t offset = 0;
  for (const Variable& p : f->params) {
    offset = align_up(offset, p.align);
    f->param_offsets.push_back(static_cast<uint32_t>(offset));
    offset += p.size;
  }
  f->param_bytes = static_cast<uint32_t>(offset);
}

uint32_t Parser::function_slot(std::string_view name) {
  auto [it, fresh] =
      function_index_.emplace(std::string(name), static_cast<uint32_t>(module_.functions.size()));
  if (fresh) {
    Function placeholder;
    placeholder.name = name;
    placeholder.is_declaration = true;
    module_.functions.push_back(std::move(placeholder));
  }
  return it->second;
}

// ".entry" or ".func" is taken.
bool Parser::parse_function(Linkage linkage, bool entry) {
  Function f;
  f.linkage = linkage;
  f.is_entry = entry;
  while (accept_directive(".attribute")) {
    Declarator ignored;
    if (!parse_attribute(&ignored)) return false;
  }
  if (!entry && lexer_.peek().is('(') && !parse_param_list(false, &f.returns)) return false;
  Token name;
  if (!expect_identifier("a function's name", &name)) return false;
  f.name = name.text;
  f.line = name.line;
  if (lexer_.peek().is('(') && !parse_param_list(entry, &f.params)) return false;
  uint64_t bytes = 0;
  for (const Variable& p : f.params) bytes = align_up(bytes, p.align) + p.size;
  if (bytes > UINT32_MAX / 2)
    return fail(name, fmt::format("the parameters of '{}' are too big", f.name));
  layout_params(&f);
  if (!parse_directives(entry, &f.directives)) return false;
  if (variable_index_.contains(f.name))
    return fail(name, fmt::format("'{}' is already a variable", f.name));
  uint32_t slot = function_slot(name.text);
  const Function& before = module_.functions[slot];
  if (before.line != 0 && before.directives.abi_preserve != f.directives.abi_preserve)
    return fail(name, fmt::format("'{}' was declared with another .abi_preserve", f.name));
  if (accept(';')) {
    f.is_declaration = true;
    module_.order.push_back({TopLevel::Kind::declaration, slot});
    if (module_.functions[slot].is_declaration) module_.functions[slot] = std::move(f);
    return true;
  }
  if (!lexer_.peek().is('{')) return fail_expected("'{' or ';'");
  if (!module_.functions[slot].is_declaration)
    return fail(name, fmt::format("'{}' is defined twice", f.name));
  // A function may call itself: its head must be known before its body is read.
  module_.functions[slot] = f;
  module_.functions[slot].is_declaration = true;
  module_.order.push_back({TopLevel::Kind::function, slot});
  return begin_function(std::move(f), slot);
}

}  // namespace ptxbench::ptx
