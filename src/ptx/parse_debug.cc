// .loc chains and the DWARF sections, of which only .debug_str matters: it holds the names of
// inlined functions.

#include <fmt/format.h>

#include "ptx/parser_impl.h"

namespace ptxbench::ptx {
namespace {

uint64_t loc_key(const SourceLine& l) {
  return (uint64_t{l.file} << 48) ^ (uint64_t{l.line} << 16) ^ l.column;
}

}  // namespace

// .loc file line column {, function_name label {+ offset}, inlined_at file line column}
bool Parser::parse_loc() {
  const Token at = lexer_.next();
  SourceLine line;
  if (!parse_small(&line.file) || !parse_small(&line.line) || !parse_small(&line.column))
    return false;
  if (line.file > kMaxFile)
    return fail(at, fmt::format("file number {} is out of range", line.file));
  PendingLoc pending{kNone, {}, 0, at.line, at.column};
  if (accept(',') && !parse_inlined(&line, &pending)) return false;
  uint32_t index = static_cast<uint32_t>(module_.locations.size());
  module_.locations.push_back(line);
  if (!pending.label.empty()) {
    pending.loc = index;
    pending_locs_.push_back(pending);
  }
  last_loc_[loc_key(line)] = index;
  if (scopes_.empty()) {
    module_.order.push_back({TopLevel::Kind::loc, index});
    return true;
  }
  loc_ = index;
  function_.body.emplace_back(LocMark{index});
  return true;
}

bool Parser::parse_inlined(SourceLine* line, PendingLoc* pending) {
  Token word;
  if (!expect_identifier("function_name", &word)) return false;
  if (word.text == "function_name") {
    Token label;
    if (!expect_identifier("a label of .debug_str", &label)) return false;
    pending->label = label.text;
    int64_t offset = 0;
    if (lexer_.peek().is('+') && !parse_offset(&offset)) return false;
    pending->offset = static_cast<uint64_t>(offset);
    if (!expect(',') || !expect_identifier("inlined_at", &word)) return false;
  }
  if (word.text != "inlined_at")
    return fail(word, fmt::format("expected inlined_at, found '{}'", word.text));
  SourceLine site;
  if (!parse_small(&site.file) || !parse_small(&site.line) || !parse_small(&site.column))
    return false;
  if (site.file > kMaxFile)
    return fail(word, fmt::format("file number {} is out of range", site.file));
  auto [it, fresh] =
      last_loc_.try_emplace(loc_key(site), static_cast<uint32_t>(module_.locations.size()));
  if (fresh) module_.locations.push_back(site);
  line->inlined_at = it->second;
  return true;
}

// ".section" is taken. Contents: labels, data directives, constants, labels' differences.
bool Parser::parse_section() {
  const Token name = lexer_.next();
  if (name.kind != Token::Kind::directive && name.kind != Token::Kind::identifier)
    return fail(name, "expected a section's name");
  bool wanted = name.text == ".debug_str";
  const Token open = lexer_.peek();
  if (!expect('{')) return false;
  while (!lexer_.peek().is('}')) {
    if (lexer_.peek().kind == Token::Kind::end)
      return fail(open, fmt::format("section '{}' is not closed", name.text));
    if (wanted) {
      if (!parse_section_item(&debug_str_)) return false;
    } else {
      if (lexer_.peek().is('{')) return fail_expected("data");
      lexer_.next();
    }
  }
  const Token close = lexer_.next();
  size_t size = static_cast<size_t>(close.text.data() + 1 - open.text.data());
  module_.sections.push_back({std::string(name.text), std::string(open.text.data(), size)});
  return true;
}

bool Parser::parse_section_item(DebugStrings* section) {
  const Token token = lexer_.next();
  if (token.kind == Token::Kind::identifier && accept(':')) {
    section->labels.emplace(token.text, section->bytes.size());
    return true;
  }
  if (token.kind != Token::Kind::directive) return fail(token, "expected a label or data");
  WordMeaning meaning = find_word(token.text.substr(1));
  if (!meaning.known || meaning.word.kind != Modifiers::Word::Kind::type)
    return fail(token, fmt::format("expected a data type, found '{}'", token.text));
  bool bytes = token.text == ".b8";
  do {
    int64_t value = 0;
    if (!parse_integer("a number", &value)) return false;
    if (bytes) section->bytes.push_back(static_cast<char>(value));
  } while (accept(','));
  return true;
}

bool Parser::resolve_function_names() {
  std::unordered_map<size_t, uint32_t> known;  // offset in .debug_str to index of debug_strings
  for (const PendingLoc& p : pending_locs_) {
    auto it = debug_str_.labels.find(p.label);
    size_t offset = it == debug_str_.labels.end() ? 0 : it->second + p.offset;
    if (it == debug_str_.labels.end() || offset >= debug_str_.bytes.size()) {
      Token at{Token::Kind::identifier, p.label, p.line, p.column};
      return fail(at, fmt::format("'{}' is not a string of .debug_str", p.label));
    }
    auto [entry, fresh] =
        known.try_emplace(offset, static_cast<uint32_t>(module_.debug_strings.size()));
    if (fresh) {
      module_.debug_strings.emplace_back(debug_str_.bytes.c_str() + offset);
      module_.debug_labels.push_back(p.offset ? fmt::format("{}+{}", p.label, p.offset)
                                              : std::string(p.label));
    }
    module_.locations[p.loc].function_name = entry->second;
  }
  return true;
}

}  // namespace ptxbench::ptx
