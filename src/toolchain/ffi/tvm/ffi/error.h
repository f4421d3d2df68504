#ifndef PTXBENCH_FFI_ERROR_H_
#define PTXBENCH_FFI_ERROR_H_
// Errors and checks. The published headers build messages with <sstream>, which costs the compiler
// half a second; this text buffer does the same for what host functions print.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

#include <exception>

namespace tvm {
namespace ffi {

namespace detail {

class Text {
 public:
  Text() = default;
  Text(const Text& other) { append(other.c_str(), other.size_); }
  Text& operator=(const Text& other) {
    if (this != &other) {
      size_ = 0;
      append(other.c_str(), other.size_);
    }
    return *this;
  }
  ~Text() { free(data_); }

  const char* c_str() const { return data_ ? data_ : ""; }
  size_t size() const { return size_; }
  void append(const char* text, size_t size) {
    char* grown = static_cast<char*>(realloc(data_, size_ + size + 1));
    if (grown == nullptr) return;
    data_ = grown;
    if (size != 0) memcpy(data_ + size_, text, size);
    size_ += size;
    data_[size_] = '\0';
  }

  Text& operator<<(const char* text) {
    if (text == nullptr) text = "(null)";
    append(text, strlen(text));
    return *this;
  }
  Text& operator<<(char value) {
    append(&value, 1);
    return *this;
  }
  Text& operator<<(bool value) { return *this << (value ? 1 : 0); }
  Text& operator<<(int value) { return *this << static_cast<long long>(value); }
  Text& operator<<(long value) { return *this << static_cast<long long>(value); }
  Text& operator<<(long long value) { return print("%lld", value); }
  Text& operator<<(unsigned value) { return *this << static_cast<unsigned long long>(value); }
  Text& operator<<(unsigned long value) { return *this << static_cast<unsigned long long>(value); }
  Text& operator<<(unsigned long long value) { return print("%llu", value); }
  Text& operator<<(short value) { return *this << static_cast<long long>(value); }
  Text& operator<<(unsigned short value) { return *this << static_cast<unsigned long long>(value); }
  Text& operator<<(signed char value) { return *this << static_cast<char>(value); }
  Text& operator<<(unsigned char value) { return *this << static_cast<char>(value); }
  Text& operator<<(double value) { return print("%g", value); }
  Text& operator<<(const void* value) { return print("%p", value); }
  Text& operator<<(DLDataType value) {
    return print3("dtype(code=%d, bits=%d, lanes=%d)", value.code, value.bits, value.lanes);
  }
  Text& operator<<(DLDevice value) {
    return print3("device(%d:%d)%.0d", value.device_type, value.device_id, 0);
  }
  Text& operator<<(DLDeviceType value) { return *this << static_cast<int>(value); }
  // std::string and its like.
  template <class S, class = decltype(static_cast<const char*>(((const S*)nullptr)->c_str()))>
  Text& operator<<(const S& text) {
    append(text.c_str(), text.size());
    return *this;
  }

 private:
  template <class T>
  Text& print(const char* format, T value) {
    char buffer[64];
    append(buffer, static_cast<size_t>(snprintf(buffer, sizeof buffer, format, value)));
    return *this;
  }
  Text& print3(const char* format, int a, int b, int c) {
    char buffer[96];
    append(buffer, static_cast<size_t>(snprintf(buffer, sizeof buffer, format, a, b, c)));
    return *this;
  }

  char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace detail

class Error : public std::exception {
 public:
  Error(const char* kind, const char* message, const char* /*backtrace*/ = "") {
    kind_ << kind;
    message_ << message;
  }
  const char* kind() const { return kind_.c_str(); }
  const char* message() const { return message_.c_str(); }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  detail::Text kind_, message_;
};

namespace detail {

// Collects a message and throws it when the full expression ends.
class ErrorBuilder {
 public:
  explicit ErrorBuilder(const char* kind) : kind_(kind) {}
  [[noreturn]] ~ErrorBuilder() noexcept(false) { throw Error(kind_, text_.c_str()); }
  Text& stream() { return text_; }

 private:
  const char* kind_;
  Text text_;
};

// The two sides of a failed comparison; empty if it held.
struct Comparison {
  bool failed;
  Text values;
  explicit operator bool() const { return failed; }
};

template <class X, class Y>
Comparison compared(bool holds, const X& x, const Y& y) {
  Comparison result{!holds, {}};
  if (!holds) result.values << " (" << x << " vs. " << y << ") ";
  return result;
}

}  // namespace detail
}  // namespace ffi
}  // namespace tvm

#define TVM_FFI_THROW(ErrorKind) ::tvm::ffi::detail::ErrorBuilder(#ErrorKind).stream()
#define TVM_FFI_LOG_AND_THROW(ErrorKind) TVM_FFI_THROW(ErrorKind)

#define TVM_FFI_CHECK(cond, ErrorKind) \
  if (!(cond)) TVM_FFI_THROW(ErrorKind) << "Check failed: (" #cond << ") is false: "
#define TVM_FFI_CHECK_BINARY_OP(op, x, y, ErrorKind)              \
  if (auto ptxbench_compared = [](const auto& a, const auto& b) { \
        return ::tvm::ffi::detail::compared(a op b, a, b);        \
      }(x, y))                                                    \
  TVM_FFI_THROW(ErrorKind) << "Check failed: " #x " " #op " " #y  \
                           << ptxbench_compared.values.c_str() << ": "
#define TVM_FFI_CHECK_LT(x, y, ErrorKind) TVM_FFI_CHECK_BINARY_OP(<, x, y, ErrorKind)
#define TVM_FFI_CHECK_GT(x, y, ErrorKind) TVM_FFI_CHECK_BINARY_OP(>, x, y, ErrorKind)
#define TVM_FFI_CHECK_LE(x, y, ErrorKind) TVM_FFI_CHECK_BINARY_OP(<=, x, y, ErrorKind)
#define TVM_FFI_CHECK_GE(x, y, ErrorKind) TVM_FFI_CHECK_BINARY_OP(>=, x, y, ErrorKind)
#define TVM_FFI_CHECK_EQ(x, y, ErrorKind) TVM_FFI_CHECK_BINARY_OP(==, x, y, ErrorKind)
#define TVM_FFI_CHECK_NE(x, y, ErrorKind) TVM_FFI_CHECK_BINARY_OP(!=, x, y, ErrorKind)
#define TVM_FFI_CHECK_NOTNULL(x, ErrorKind) \
  ((x) == nullptr ? TVM_FFI_THROW(ErrorKind) << "Check not null: " #x << ' ', (x) : (x))

#define TVM_FFI_ICHECK(x) TVM_FFI_CHECK(x, InternalError)
#define TVM_FFI_ICHECK_LT(x, y) TVM_FFI_CHECK_LT(x, y, InternalError)
#define TVM_FFI_ICHECK_GT(x, y) TVM_FFI_CHECK_GT(x, y, InternalError)
#define TVM_FFI_ICHECK_LE(x, y) TVM_FFI_CHECK_LE(x, y, InternalError)
#define TVM_FFI_ICHECK_GE(x, y) TVM_FFI_CHECK_GE(x, y, InternalError)
#define TVM_FFI_ICHECK_EQ(x, y) TVM_FFI_CHECK_EQ(x, y, InternalError)
#define TVM_FFI_ICHECK_NE(x, y) TVM_FFI_CHECK_NE(x, y, InternalError)
#define TVM_FFI_ICHECK_NOTNULL(x) TVM_FFI_CHECK_NOTNULL(x, InternalError)

#define TVM_FFI_DCHECK(x) TVM_FFI_ICHECK(x)
#define TVM_FFI_DCHECK_LT(x, y) TVM_FFI_ICHECK_LT(x, y)
#define TVM_FFI_DCHECK_GT(x, y) TVM_FFI_ICHECK_GT(x, y)
#define TVM_FFI_DCHECK_LE(x, y) TVM_FFI_ICHECK_LE(x, y)
#define TVM_FFI_DCHECK_GE(x, y) TVM_FFI_ICHECK_GE(x, y)
#define TVM_FFI_DCHECK_EQ(x, y) TVM_FFI_ICHECK_EQ(x, y)
#define TVM_FFI_DCHECK_NE(x, y) TVM_FFI_ICHECK_NE(x, y)

#endif  // PTXBENCH_FFI_ERROR_H_
