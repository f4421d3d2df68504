#pragma once
// A hash for the short names of PTX, eight bytes at a time.

#include <cstdint>
#include <cstring>
#include <string_view>

namespace ptxbench::ptx {

struct TextHash {
  size_t operator()(std::string_view text) const {
    uint64_t hash = text.size() * kOdd;
    for (; text.size() >= 8; text.remove_prefix(8)) hash = mixed(hash, text.data(), 8);
    return text.empty() ? hash : mixed(hash, text.data(), text.size());
  }

 private:
  static constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  static uint64_t mixed(uint64_t hash, const char* from, size_t bytes) {
    uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    hash = (hash ^ word) * kOdd;
    return hash ^ hash >> 32;
  }
};

}  // namespace ptxbench::ptx
