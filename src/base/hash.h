#pragma once
// Content hashes (XXH3, 128 bits) as 32 lower-case hex digits: names for cached and compared
// things, never a protection against someone who wants a collision.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ptxbench {

// Streaming. Each add() counts as one part: its length is hashed too, so that ("ab","c") and
// ("a","bc") differ. append() continues without a boundary.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  Hasher& add(std::string_view part);
  Hasher& add(std::span<const uint8_t> part);
  Hasher& add(uint64_t number);
  Hasher& append(std::string_view bytes);
  std::string hex() const;  // of all so far; more may be added afterwards

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The plain XXH128 of the bytes, as `xxh128sum` prints it.
std::string hash_hex(std::string_view bytes);
std::string hash_hex(std::span<const uint8_t> bytes);
// Of several parts, with boundaries (equal to Hasher::add for each).
std::string hash_parts(std::initializer_list<std::string_view> parts);

}  // namespace ptxbench
