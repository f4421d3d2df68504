#include "bench/expression.h"

#include <fmt/format.h>

#include <cctype>

namespace ptxbench::bench {
namespace {

constexpr size_t kMaxLength = 1000;
constexpr int kMaxDepth = 50;

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Recursive descent; after the first error everything is 0 and the rest is not looked at.
class Parser {
 public:
  Parser(const std::string& text, const Names& names) : text_(text), names_(names) {}

  Result<int64_t> run() {
    const int64_t value = sum();
    skip_blanks();
    if (at_ < text_.size()) fail(fmt::format("unexpected '{}'", text_.substr(at_, 1)));
    if (!error_.empty())
      return Error{"expression", fmt::format("\"{}\": {}", text_.substr(0, 80), error_)};
    return value;
  }

 private:
  int64_t fail(const std::string& why) {
    if (error_.empty()) error_ = fmt::format("{} at character {}", why, at_ + 1);
    at_ = text_.size();
    return 0;
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  int64_t combine(char op, int64_t a, int64_t b) {
    int64_t out = 0;
    if (op == '+' && !__builtin_add_overflow(a, b, &out)) return out;
    if (op == '-' && !__builtin_sub_overflow(a, b, &out)) return out;
    if (op == '*' && !__builtin_mul_overflow(a, b, &out)) return out;
    if (op == '/' || op == '%') {
      if (b == 0) return fail("division by zero");
      if (!(b == -1 && a == INT64_MIN)) return op == '/' ? a / b : a % b;
    }
    return fail("the result does not fit 64 bits");
  }

  int64_t sum() {
    int64_t value = product();
    while (error_.empty()) {
      if (take('+')) {
        value = combine('+', value, product());
      } else if (take('-')) {
        value = combine('-', value, product());
      } else {
        break;
      }
    }
    return value;
  }

  int64_t product() {
    int64_t value = factor();
    while (error_.empty()) {
      const char op = take('*') ? '*' : take('/') ? '/' : take('%') ? '%' : 0;
      if (op == 0) break;
      value = combine(op, value, factor());
    }
    return value;
  }

  int64_t factor() {
    if (++depth_ > kMaxDepth) return fail("nested too deeply");
    const int64_t value = nested_factor();
    --depth_;
    return value;
  }

  int64_t nested_factor() {
    if (take('-')) return combine('-', 0, factor());
    if (take('(')) {
      const int64_t value = sum();
      return take(')') ? value : fail("expected ')'");
    }
    skip_blanks();
    const size_t begin = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    const std::string word = text_.substr(begin, at_ - begin);
    if (word.empty())
      return fail(at_ < text_.size() ? "expected a number or name" : "unexpected end");
    if (std::isdigit(static_cast<unsigned char>(word[0]))) return number(word);
    if (take('(')) return call(word);
    const auto name = names_.find(word);
    return name != names_.end() ? name->second : fail(fmt::format("unknown name '{}'", word));
  }

  int64_t number(const std::string& digits) {
    int64_t value = 0;
    for (char c : digits) {
      if (!std::isdigit(static_cast<unsigned char>(c)))
        return fail(fmt::format("'{}' is no decimal number", digits));
      value = combine('+', combine('*', value, 10), c - '0');
    }
    return value;
  }

  int64_t call(const std::string& function) {
    const int64_t a = sum();
    if (!take(',')) return fail(fmt::format("{} takes two arguments", function));
    const int64_t b = sum();
    if (!take(')')) return fail("expected ')'");
    if (function == "min") return std::min(a, b);
    if (function == "max") return std::max(a, b);
    if (function != "ceil_div") return fail(fmt::format("unknown function '{}'", function));
    if (a < 0 || b <= 0) return fail("ceil_div needs a >= 0 and b > 0");
    return a / b + (a % b != 0);
  }

  const std::string& text_;
  const Names& names_;
  size_t at_ = 0;
  int depth_ = 0;
  std::string error_;
};

}  // namespace

Result<int64_t> evaluate_expression(const std::string& text, const Names& names) {
  if (text.size() > kMaxLength) return Error{"expression", "an expression is too long"};
  return Parser(text, names).run();
}

}  // namespace ptxbench::bench
