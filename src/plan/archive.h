#pragma once
// Little-endian writing and bounded reading for the plan's binary format. Both sides share one
// description of every type (fields() in serialize.cc): writer and reader cannot drift apart.

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ptxbench::plan {

class Writer {
 public:
  static constexpr bool kReading = false;

  template <std::integral T>
  void number(const T& v) {
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<uint8_t>(static_cast<uint64_t>(v) >> (8 * i)));
  }
  void length(uint64_t n, size_t /*least bytes per element*/) { number(n); }
  void raw(const void* data, size_t n) {
    const uint8_t* p = static_cast<const uint8_t*>(data);
    bytes_.insert(bytes_.end(), p, p + n);
  }
  bool ok() const { return true; }
  bool has(uint32_t /*version*/) const { return true; }  // always writes the newest format
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

// After the first failure every read gives zero, so callers check once at the end (loops check
// ok()).
class Reader {
 public:
  static constexpr bool kReading = true;

  Reader(const uint8_t* data, size_t size, uint32_t version = 0)
      : at_(data), end_(data + size), version_(version) {}

  // Whether the file has the fields that format `version` added.
  bool has(uint32_t version) const { return version_ >= version; }

  template <std::integral T>
  void number(T& v) {
    v = T{};
    if (!need(sizeof(T))) return;
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t{at_[i]} << (8 * i);
    v = static_cast<T>(value);
    at_ += sizeof(T);
  }
  void number(bool& v) {
    uint8_t byte = 0;
    number(byte);
    if (byte > 1) fail("a flag is neither 0 nor 1");
    v = byte == 1;
  }
  // A count of elements that take at least `least` bytes each; more than can follow is a failure,
  // which is what keeps a hostile length from becoming an allocation.
  uint64_t length(size_t least) {
    uint64_t n = 0;
    number(n);
    if (n > left() / least) {
      fail("a length goes past the end");
      return 0;
    }
    return n;
  }
  void raw(void* data, size_t n) {
    if (!need(n)) return;
    if (n > 0) std::memcpy(data, at_, n);
    at_ += n;
  }
  void fail(std::string_view why) {
    if (error_.empty()) error_ = why;
    at_ = end_;
  }
  bool ok() const { return error_.empty(); }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  const std::string& error() const { return error_; }

 private:
  bool need(size_t n) {
    if (left() >= n) return true;
    fail("it ends too early");
    return false;
  }

  const uint8_t* at_;
  const uint8_t* end_;
  uint32_t version_;
  std::string error_;
};

}  // namespace ptxbench::plan
