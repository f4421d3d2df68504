#pragma once
// Errors as values. Library code neither throws across a room's border nor prints nor aborts: it
// returns a Result. Programmer errors are asserts.

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace ptxbench {

// Where in a user's file something is wrong; line and column count from 1, 0 = unknown.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;
};

struct Error {
  std::string
      kind;  // stable slug for programs: "syntax", "unsupported", "io", "usage", "timeout", ...
  std::string message;  // one line for people, no trailing full stop or newline
  SourceLocation where = {};

  // "file:line:column: message", leaving out what is unknown.
  std::string to_string() const;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() {
    assert(ok());
    return std::get<0>(state_);
  }
  const T& value() const {
    assert(ok());
    return std::get<0>(state_);
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T take() { return std::move(value()); }
  const Error& error() const {
    assert(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    assert(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace ptxbench

// Returns the error of a failed Result from the enclosing function.
#define PB_RETURN_IF_ERROR(expr)                                               \
  do {                                                                         \
    if (auto pb_result_ = (expr); !pb_result_.ok()) return pb_result_.error(); \
  } while (false)

#define PB_CONCAT_(a, b) a##b
#define PB_CONCAT(a, b) PB_CONCAT_(a, b)
// PB_ASSIGN_OR_RETURN(auto x, f()): x is the value, or the enclosing function returns the error.
#define PB_ASSIGN_OR_RETURN(decl, expr)                                                \
  auto PB_CONCAT(pb_tmp_, __LINE__) = (expr);                                          \
  if (!PB_CONCAT(pb_tmp_, __LINE__).ok()) return PB_CONCAT(pb_tmp_, __LINE__).error(); \
  decl = PB_CONCAT(pb_tmp_, __LINE__).take()
