#pragma once
// PTX text to tokens, without copying: a token's text is a view into the source.

#include <cstdint>
#include <string_view>

namespace ptxbench::ptx {

struct Token {
  enum class Kind : uint8_t {
    end,
    identifier,  // foo, $L__BB0_1, %r1, _
    directive,   // .reg, .b32, .shared::cta: the text includes the dot
    number,      // as written; see parse_number
    string,      // text without the quotes
    punctuation,
    invalid,  // a byte that begins no token, or an unterminated string or comment
  };
  Kind kind = Kind::end;
  std::string_view text;
  uint32_t line = 1, column = 1;

  bool is(char punctuation) const {
    return kind == Kind::punctuation && text[0] == punctuation && text.size() == 1;
  }
  bool is_directive(std::string_view with_dot) const {
    return kind == Kind::directive && text == with_dot;
  }
  bool is_identifier(std::string_view word) const {
    return kind == Kind::identifier && text == word;
  }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text);

  const Token& peek() const { return token_; }
  Token next() {
    Token taken = token_;
    advance();
    return taken;
  }
  void skip() { advance(); }
  // Takes the current identifier together with the dotted words that follow it without a blank:
  // "ld.global.L2::128B.u32".
  Token next_mnemonic();

 private:
  void advance();
  void skip_blanks();
  bool skip_comment();
  void newline(size_t at);
  void take(Token::Kind kind, size_t end);
  size_t number_end() const;
  size_t word_end(size_t from) const;

  std::string_view text_;
  size_t position_ = 0;  // just after the current token
  size_t line_start_ = 0;
  uint32_t line_ = 1;
  Token token_;
};

// A literal's value. Integers: U suffix or not, decimal, 0x, 0b, leading 0 octal. Floats: 0f (32
// bits), 0d (64 bits), decimal (64 bits). False: malformed, or too big for 64 bits.
struct Number {
  bool is_float = false, is_f32 = false, is_unsigned = false;
  uint64_t bits = 0;
};
bool parse_number(std::string_view text, Number* out);

}  // namespace ptxbench::ptx
