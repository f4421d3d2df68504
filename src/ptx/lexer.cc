#include "ptx/lexer.h"

#include <array>
#include <bit>
#include <charconv>

namespace ptxbench::ptx {
namespace {

enum : uint8_t { kBlank = 1, kStart = 2, kFollow = 4, kDigit = 8, kPunctuation = 16 };

constexpr std::array<uint8_t, 256> kClass = [] {
  std::array<uint8_t, 256> c{};
  for (int i = 'a'; i <= 'z'; ++i) c[i] = kStart | kFollow;
  for (int i = 'A'; i <= 'Z'; ++i) c[i] = kStart | kFollow;
  for (int i = '0'; i <= '9'; ++i) c[i] = kFollow | kDigit;
  c['_'] = c['$'] = kStart | kFollow;
  c['%'] = kStart;
  c[' '] = c['\t'] = c['\r'] = c['\n'] = c['\f'] = c['\v'] = kBlank;
  for (char ch : std::string_view("{}()[]<>,;:=+-*/%!~&|^?@."))
    c[static_cast<uint8_t>(ch)] |= kPunctuation;
  return c;
}();

bool is(char ch, uint8_t what) { return kClass[static_cast<uint8_t>(ch)] & what; }

bool hex_bits(std::string_view digits, size_t count, uint64_t* out) {
  if (digits.size() != count) return false;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *out, 16);
  return error == std::errc() && end == digits.data() + digits.size();
}

}  // namespace

Lexer::Lexer(std::string_view text) : text_(text) {
  if (text_.starts_with("\xEF\xBB\xBF")) position_ = line_start_ = 3;
  advance();
}

inline void Lexer::take(Token::Kind kind, size_t end) {
  token_.kind = kind;
  token_.text = text_.substr(position_, end - position_);
  position_ = end;
}

Token Lexer::next_mnemonic() {
  Token taken = token_;
  size_t begin = static_cast<size_t>(taken.text.data() - text_.data());
  size_t end = begin + taken.text.size();
  while (end < text_.size()) {
    bool dot = text_[end] == '.';
    bool colons = !dot && end + 2 < text_.size() && text_[end] == ':' && text_[end + 1] == ':';
    size_t word = end + (dot ? 1 : 2);
    if ((!dot && !colons) || word >= text_.size() || !is(text_[word], kFollow)) break;
    end = word_end(word);
  }
  taken.text = text_.substr(begin, end - begin);
  position_ = end;
  advance();
  return taken;
}

// Past identifier characters and "::" between them.
size_t Lexer::word_end(size_t i) const {
  while (i < text_.size()) {
    if (is(text_[i], kFollow)) {
      ++i;
    } else if (text_[i] == ':' && i + 2 < text_.size() && text_[i + 1] == ':' &&
               is(text_[i + 2], kFollow)) {
      i += 2;
    } else {
      break;
    }
  }
  return i;
}

void Lexer::newline(size_t at) {
  ++line_;
  line_start_ = at + 1;
}

// True: a comment was skipped. An unterminated one stays and becomes an invalid token.
bool Lexer::skip_comment() {
  if (position_ + 1 >= text_.size() || text_[position_] != '/') return false;
  if (text_[position_ + 1] == '/') {
    size_t end = text_.find('\n', position_);
    position_ = end == std::string_view::npos ? text_.size() : end;
    return true;
  }
  if (text_[position_ + 1] != '*') return false;
  size_t end = text_.find("*/", position_ + 2);
  if (end == std::string_view::npos) return false;
  for (size_t i = position_; i < end; ++i)
    if (text_[i] == '\n') newline(i);
  position_ = end + 2;
  return true;
}

void Lexer::skip_blanks() {
  while (position_ < text_.size()) {
    char ch = text_[position_];
    if (is(ch, kBlank)) {
      if (ch == '\n') newline(position_);
      ++position_;
    } else if (ch != '/' || !skip_comment()) {
      break;
    }
  }
}

size_t Lexer::number_end() const {
  auto digits = [&](size_t i) {
    while (i < text_.size() && is(text_[i], kDigit)) ++i;
    return i;
  };
  auto letters = [&](size_t i) {
    while (i < text_.size() && is(text_[i], kFollow)) ++i;
    return i;
  };
  char second = position_ + 1 < text_.size() ? text_[position_ + 1] : '\0';
  const char lower = static_cast<char>(second | 0x20);
  bool prefixed =
      text_[position_] == '0' && (lower == 'x' || lower == 'b' || lower == 'f' || lower == 'd');
  if (prefixed) return letters(position_);
  size_t i = digits(position_);
  if (i + 1 < text_.size() && text_[i] == '.' && is(text_[i + 1], kDigit)) i = digits(i + 1);
  if (i + 1 < text_.size() && (text_[i] == 'e' || text_[i] == 'E')) {
    size_t sign = i + 1 + (text_[i + 1] == '+' || text_[i + 1] == '-');
    if (sign < text_.size() && is(text_[sign], kDigit)) i = digits(sign);
  }
  return letters(i);
}

void Lexer::advance() {
  skip_blanks();
  token_.line = line_;
  token_.column = static_cast<uint32_t>(position_ - line_start_ + 1);
  if (position_ >= text_.size()) return take(Token::Kind::end, position_);
  char ch = text_[position_];
  bool follow = position_ + 1 < text_.size() && is(text_[position_ + 1], kFollow);
  if (is(ch, kStart) && (ch != '%' || follow)) {
    size_t end = position_ + 1;
    while (end < text_.size() && is(text_[end], kFollow)) ++end;
    return take(Token::Kind::identifier, end);
  }
  if (is(ch, kDigit)) return take(Token::Kind::number, number_end());
  if (ch == '.' && follow) return take(Token::Kind::directive, word_end(position_ + 1));
  if (ch == '"') {
    size_t end = text_.find_first_of("\"\n", position_ + 1);
    if (end == std::string_view::npos || text_[end] == '\n')
      return take(Token::Kind::invalid, position_ + 1);
    take(Token::Kind::string, end + 1);
    token_.text = token_.text.substr(1, token_.text.size() - 2);
    return;
  }
  char second = position_ + 1 < text_.size() ? text_[position_ + 1] : '\0';
  bool doubled = ch == '<' || ch == '>' || ch == '=' || ch == '&' || ch == '|';
  bool pair = (second == ch && doubled) || (second == '=' && (ch == '<' || ch == '>' || ch == '!'));
  if (pair) return take(Token::Kind::punctuation, position_ + 2);
  if (is(ch, kPunctuation) && (ch != '/' || second != '*'))
    return take(Token::Kind::punctuation, position_ + 1);
  take(Token::Kind::invalid, position_ + 1);
}

bool parse_number(std::string_view text, Number* out) {
  *out = {};
  char second = text.size() > 1 && text[0] == '0' ? text[1] : '\0';
  if (second == 'f' || second == 'F') {
    out->is_float = out->is_f32 = true;
    return hex_bits(text.substr(2), 8, &out->bits);
  }
  if (second == 'd' || second == 'D') {
    out->is_float = true;
    return hex_bits(text.substr(2), 16, &out->bits);
  }
  bool hex = second == 'x' || second == 'X', binary = second == 'b' || second == 'B';
  if (!hex && !binary && text.find_first_of(".eE") != std::string_view::npos) {
    double value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    out->is_float = true;
    out->bits = std::bit_cast<uint64_t>(value);
    return error == std::errc() && end == text.data() + text.size();
  }
  if (text.ends_with('U')) {
    out->is_unsigned = true;
    text.remove_suffix(1);
  }
  int base = 10;
  if (hex || binary) {
    base = hex ? 16 : 2;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
  }
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out->bits, base);
  if (out->bits > INT64_MAX) out->is_unsigned = true;
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

}  // namespace ptxbench::ptx
