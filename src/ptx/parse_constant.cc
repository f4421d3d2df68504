// Constant expressions: 64-bit signed and unsigned integers and doubles with C's operators.

#include <fmt/format.h>

#include <bit>

#include "ptx/parser_impl.h"

namespace ptxbench::ptx {
namespace {

// How tightly a binary operator binds, 0 the loosest; -1: the token is none.
int level_of(const Token& token) {
  if (token.kind != Token::Kind::punctuation) return -1;
  bool twice = token.text.size() == 2;
  switch (token.text[0]) {
    case '|':
      return twice ? 0 : 2;
    case '&':
      return twice ? 1 : 4;
    case '^':
      return 3;
    case '=':
    case '!':
      return twice ? 5 : -1;
    case '<':
    case '>':
      return twice && token.text[1] != '=' ? 7 : 6;
    case '+':
    case '-':
      return 8;
    case '*':
    case '/':
    case '%':
      return 9;
    default:
      return -1;
  }
}

Constant from_double(double value) { return {true, false, false, std::bit_cast<uint64_t>(value)}; }
Constant from_bool(bool value) { return {false, false, false, value ? uint64_t{1} : 0}; }

bool truth(const Constant& c) { return c.is_float ? c.as_double() != 0 : c.bits != 0; }

uint64_t shift(bool left, const Constant& value, uint64_t count) {
  bool negative = !value.is_unsigned && static_cast<int64_t>(value.bits) < 0;
  if (count > 63) return !left && negative ? ~uint64_t{0} : 0;
  if (left) return value.bits << count;
  return value.is_unsigned ? value.bits >> count
                           : static_cast<uint64_t>(static_cast<int64_t>(value.bits) >> count);
}

Constant apply_double(std::string_view op, double a, double b, bool* known) {
  if (op == "+") return from_double(a + b);
  if (op == "-") return from_double(a - b);
  if (op == "*") return from_double(a * b);
  if (op == "/") return from_double(a / b);
  if (op == "==") return from_bool(a == b);
  if (op == "!=") return from_bool(a != b);
  if (op == "<") return from_bool(a < b);
  if (op == "<=") return from_bool(a <= b);
  if (op == ">") return from_bool(a > b);
  if (op == ">=") return from_bool(a >= b);
  *known = false;
  return {};
}

bool less(const Constant& a, const Constant& b) {
  if (a.is_unsigned || b.is_unsigned) return a.bits < b.bits;
  return static_cast<int64_t>(a.bits) < static_cast<int64_t>(b.bits);
}

// The divisor is not zero.
uint64_t divide(bool remainder, const Constant& a, const Constant& b) {
  if (a.is_unsigned || b.is_unsigned) return remainder ? a.bits % b.bits : a.bits / b.bits;
  int64_t x = static_cast<int64_t>(a.bits), y = static_cast<int64_t>(b.bits);
  if (y == -1) return remainder ? 0 : -a.bits;  // INT64_MIN / -1 overflows in C++
  return static_cast<uint64_t>(remainder ? x % y : x / y);
}

uint64_t apply_integer(std::string_view op, const Constant& a, const Constant& b) {
  if (op == "+") return a.bits + b.bits;
  if (op == "-") return a.bits - b.bits;
  if (op == "*") return a.bits * b.bits;
  if (op == "/") return divide(false, a, b);
  if (op == "%") return divide(true, a, b);
  if (op == "&") return a.bits & b.bits;
  if (op == "|") return a.bits | b.bits;
  if (op == "^") return a.bits ^ b.bits;
  if (op == "<<") return shift(true, a, b.bits);
  if (op == ">>") return shift(false, a, b.bits);
  if (op == "==") return a.bits == b.bits;
  if (op == "!=") return a.bits != b.bits;
  if (op == "<") return less(a, b);
  if (op == ">") return less(b, a);
  if (op == "<=") return !less(b, a);
  return !less(a, b);  // >=
}

}  // namespace

double Constant::as_double() const {
  if (is_f32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (is_float) return std::bit_cast<double>(bits);
  return is_unsigned ? static_cast<double>(bits) : static_cast<double>(static_cast<int64_t>(bits));
}

bool Parser::at_constant() const {
  const Token& t = lexer_.peek();
  return t.kind == Token::Kind::number || t.is('-') || t.is('+') || t.is('~') || t.is('(') ||
         t.is_identifier("WARP_SZ");
}

bool Parser::parse_integer(std::string_view what, int64_t* out) {
  Token at = lexer_.peek();
  if (!at_constant() && !at.is('!')) return fail_expected(what);
  Constant value;
  if (!parse_constant(&value)) return false;
  if (value.is_float)
    return fail(at, fmt::format("expected {}, found a floating-point number", what));
  *out = static_cast<int64_t>(value.bits);
  return true;
}

bool Parser::parse_ternary(Constant* out, size_t depth) {
  if (depth > kMaxExpression) return fail(lexer_.peek(), "the expression is nested too deeply");
  if (!parse_binary(out, 0, depth)) return false;
  if (!accept('?')) return true;
  Constant yes, no;
  if (!parse_ternary(&yes, depth + 1) || !expect(':') || !parse_ternary(&no, depth + 1))
    return false;
  *out = truth(*out) ? yes : no;
  return true;
}

// Operators that bind at least as tightly as `lowest`.
bool Parser::parse_binary(Constant* out, int lowest, size_t depth) {
  if (!parse_unary(out, depth)) return false;
  while (true) {
    int level = level_of(lexer_.peek());
    if (level < lowest) return true;
    const Token op = lexer_.next();
    Constant right;
    if (!parse_binary(&right, level + 1, depth) || !apply(op, out, right)) return false;
  }
}

bool Parser::apply(const Token& op, Constant* left, const Constant& right) {
  if (op.text == "||" || op.text == "&&") {
    bool both = truth(*left) && truth(right), any = truth(*left) || truth(right);
    *left = from_bool(op.text == "||" ? any : both);
    return true;
  }
  if (left->is_float || right.is_float) {
    bool known = true;
    *left = apply_double(op.text, left->as_double(), right.as_double(), &known);
    return known || fail(op, fmt::format("'{}' does not apply to floating-point numbers", op.text));
  }
  if ((op.text == "/" || op.text == "%") && right.bits == 0) return fail(op, "division by zero");
  bool is_shift = op.text == "<<" || op.text == ">>";
  bool is_compare = op.text == "==" || op.text == "!=" || op.text[0] == '<' || op.text[0] == '>';
  uint64_t bits = apply_integer(op.text, *left, right);
  bool is_unsigned = is_shift     ? left->is_unsigned
                     : is_compare ? false
                                  : left->is_unsigned || right.is_unsigned;
  *left = {false, false, is_unsigned, bits};
  return true;
}

bool Parser::parse_unary(Constant* out, size_t depth) {
  if (depth > kMaxExpression) return fail(lexer_.peek(), "the expression is nested too deeply");
  const Token op = lexer_.peek();
  if (!op.is('-') && !op.is('+') && !op.is('~') && !op.is('!')) return parse_primary(out, depth);
  lexer_.next();
  if (!parse_unary(out, depth + 1)) return false;
  if (op.text == "+") return true;
  if (op.text == "!") {
    *out = from_bool(!truth(*out));
  } else if (op.text == "-") {
    if (out->is_float) {
      out->bits ^= out->is_f32 ? uint64_t{1} << 31 : uint64_t{1} << 63;
    } else {
      out->bits = -out->bits;
    }
  } else if (out->is_float) {
    return fail(op, "'~' does not apply to floating-point numbers");
  } else {
    out->bits = ~out->bits;
  }
  return true;
}

bool Parser::parse_primary(Constant* out, size_t depth) {
  const Token token = lexer_.peek();
  if (token.kind == Token::Kind::number) {
    Number number;
    if (!parse_number(token.text, &number))
      return fail(token,
                  fmt::format("'{}' is not a number that fits 64 bits", token.text.substr(0, 40)));
    lexer_.next();
    *out = {number.is_float, number.is_f32, number.is_unsigned, number.bits};
    return true;
  }
  if (token.is_identifier("WARP_SZ")) {
    lexer_.next();
    *out = {false, false, false, 32};
    return true;
  }
  if (!accept('(')) return fail_expected("a constant");
  if (lexer_.peek().kind == Token::Kind::directive) return parse_cast(out, depth);
  return parse_ternary(out, depth + 1) && expect(')');
}

// "(" is taken: .s64) or .u64) and what is cast.
bool Parser::parse_cast(Constant* out, size_t depth) {
  bool to_signed = accept_directive(".s64");
  if (!to_signed && !accept_directive(".u64")) return fail_expected("a cast to .s64 or .u64");
  if (!expect(')') || !parse_unary(out, depth + 1)) return false;
  if (out->is_float) {
    double value = out->as_double();
    if (!(value > -9.2e18 && value < 1.8e19)) return fail(lexer_.peek(), "the cast overflows");
    out->bits = value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value))
                          : static_cast<uint64_t>(value);
  }
  out->is_float = out->is_f32 = false;
  out->is_unsigned = !to_signed;
  return true;
}

}  // namespace ptxbench::ptx
