#include "ptx/parser.h"

#include <fmt/format.h>

#include "ptx/parser_impl.h"

namespace ptxbench::ptx {
namespace {

std::string printable(std::string_view text) {
  std::string out;
  for (char ch : text.substr(0, 40)) {
    unsigned char byte = static_cast<unsigned char>(ch);
    if (byte >= 0x20 && byte < 0x7f) {
      out += ch;
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  if (text.size() > 40) out += "...";
  return out;
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::end:
      return "the end of the text";
    case Token::Kind::string:
      return fmt::format("the string \"{}\"", printable(token.text));
    default:
      return fmt::format("'{}'", printable(token.text));
  }
}

}  // namespace

Result<Module> parse(std::string_view text, std::string_view file_name) {
  constexpr size_t kMaxText = size_t{1} << 30;
  if (text.size() > kMaxText)
    return Error{"ptx-syntax",
                 fmt::format("PTX text of {} bytes is over the limit of 1 GiB", text.size()),
                 {std::string(file_name), 0, 0}};
  return Parser(text, file_name).run();
}

const Function* Module::find_function(std::string_view name) const {
  for (const Function& f : functions)
    if (f.name == name) return &f;
  return nullptr;
}

const Variable* Module::find_variable(std::string_view name) const {
  for (const Variable& v : variables)
    if (v.name == name) return &v;
  return nullptr;
}

Result<Module> Parser::run() {
  if (!parse_module() || !resolve_function_names()) return *error_;
  return std::move(module_);
}

bool Parser::fail(const Token& at, std::string message) {
  if (!error_)
    error_ = Error{"ptx-syntax",
                   std::move(message),
                   {file_, static_cast<int>(at.line), static_cast<int>(at.column)}};
  return false;
}

bool Parser::fail_expected(std::string_view expected) {
  const Token& at = lexer_.peek();
  return fail(at, fmt::format("expected {}, found {}", expected, describe(at)));
}

bool Parser::fail_missing(char punctuation) {
  return fail_expected(fmt::format("'{}'", punctuation));
}

bool Parser::expect_identifier(std::string_view what, Token* out) {
  if (lexer_.peek().kind != Token::Kind::identifier) return fail_expected(what);
  *out = lexer_.next();
  return true;
}

bool Parser::parse_module() {
  if (!parse_version() || !parse_target()) return false;
  if (accept_directive(".address_size")) {
    int64_t size = 0;
    Token at = lexer_.peek();
    if (!parse_integer("32 or 64", &size)) return false;
    if (size != 32 && size != 64) return fail(at, "the address size must be 32 or 64");
    module_.address_size = static_cast<int>(size);
  }
  while (lexer_.peek().kind != Token::Kind::end)
    if (!parse_top_level()) return false;
  return true;
}

bool Parser::parse_version() {
  if (!accept_directive(".version")) return fail_expected("'.version', with which PTX begins");
  Token number = lexer_.peek();
  int parts[2] = {0, 0}, digits[2] = {0, 0}, part = 0;
  for (char ch : number.text) {
    if (ch == '.') {
      if (++part > 1) break;
    } else if (ch >= '0' && ch <= '9' && digits[part] < 3) {
      parts[part] = parts[part] * 10 + ch - '0';
      ++digits[part];
    } else {
      part = 2;
      break;
    }
  }
  if (number.kind != Token::Kind::number || part != 1 || !digits[0] || !digits[1])
    return fail_expected("a PTX version such as 9.0");
  lexer_.next();
  module_.version_major = parts[0];
  module_.version_minor = parts[1];
  return true;
}

bool Parser::parse_target() {
  if (!accept_directive(".target")) return fail_expected("'.target'");
  do {
    Token word;
    if (!expect_identifier("a target such as sm_90a", &word)) return false;
    if (module_.target.empty() && word.text.starts_with("sm_")) {
      module_.target = word.text;
    } else {
      module_.target_options.emplace_back(word.text);
    }
  } while (accept(','));
  if (module_.target.empty()) return fail_expected("a target such as sm_90a");
  return true;
}

bool Parser::parse_top_level() {
  const Token at = lexer_.peek();
  if (accept_directive(".file")) return parse_file();
  if (accept_directive(".section")) return parse_section();
  if (accept_directive(".alias")) return parse_alias();
  if (lexer_.peek().is_directive(".loc")) return parse_loc();
  if (accept_directive(".pragma")) {
    std::string text;
    if (!parse_pragma(&text)) return false;
    module_.order.push_back(
        {TopLevel::Kind::pragma, static_cast<uint32_t>(module_.pragmas.size())});
    module_.pragmas.push_back(std::move(text));
    return true;
  }
  Linkage linkage{};
  if (!parse_linkage(&linkage)) return false;
  if (accept_directive(".entry")) return parse_function(linkage, true);
  if (accept_directive(".func")) return parse_function(linkage, false);
  if (lexer_.peek().kind != Token::Kind::directive)
    return fail(at, fmt::format("expected a declaration, found {}", describe(lexer_.peek())));
  return parse_module_variables(linkage);
}

bool Parser::parse_alias() {
  Alias alias;
  for (uint32_t* slot : {&alias.name, &alias.target}) {
    Token name;
    if (!expect_identifier("a function's name", &name)) return false;
    auto it = function_index_.find(std::string(name.text));
    if (it == function_index_.end())
      return fail(name, fmt::format("'{}' is not a declared function", name.text));
    *slot = it->second;
    if (slot == &alias.name && !expect(',')) return false;
  }
  module_.order.push_back({TopLevel::Kind::alias, static_cast<uint32_t>(module_.aliases.size())});
  module_.aliases.push_back(alias);
  return expect(';');
}

bool Parser::parse_file() {
  Token at = lexer_.peek();
  int64_t index = 0;
  if (!parse_integer("a file number", &index)) return false;
  if (index < 0 || static_cast<uint64_t>(index) > kMaxFile)
    return fail(at, fmt::format("file number {} is out of range", index));
  if (lexer_.peek().kind != Token::Kind::string) return fail_expected("a file name in quotes");
  if (module_.files.size() <= static_cast<size_t>(index)) module_.files.resize(index + 1);
  module_.files[index] = lexer_.next().text;
  for (int i = 0; i < 2 && accept(','); ++i) {  // time stamp and size: nobody needs them
    int64_t ignored = 0;
    if (!parse_integer("a number", &ignored)) return false;
  }
  return true;
}

bool Parser::parse_pragma(std::string* out) {
  do {
    if (lexer_.peek().kind != Token::Kind::string) return fail_expected("a pragma in quotes");
    if (!out->empty()) *out += "\", \"";
    *out += lexer_.next().text;
  } while (accept(','));
  return expect(';');
}

}  // namespace ptxbench::ptx
