#include "base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace ptxbench {

namespace {

std::string to_hex(XXH128_hash_t h) { return fmt::format("{:016x}{:016x}", h.high64, h.low64); }

struct FreeState {
  void operator()(XXH3_state_t* s) const { XXH3_freeState(s); }
};

}  // namespace

struct Hasher::State {
  std::unique_ptr<XXH3_state_t, FreeState> xxh{XXH3_createState()};
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh.get()); }
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::append(std::string_view bytes) {
  XXH3_128bits_update(state_->xxh.get(), bytes.data(), bytes.size());
  return *this;
}

Hasher& Hasher::add(uint64_t number) {
  XXH3_128bits_update(state_->xxh.get(), &number, sizeof number);
  return *this;
}

Hasher& Hasher::add(std::string_view part) { return add(uint64_t{part.size()}).append(part); }

Hasher& Hasher::add(std::span<const uint8_t> part) {
  return add(std::string_view(reinterpret_cast<const char*>(part.data()), part.size()));
}

std::string Hasher::hex() const { return to_hex(XXH3_128bits_digest(state_->xxh.get())); }

std::string hash_hex(std::string_view bytes) {
  return to_hex(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string hash_hex(std::span<const uint8_t> bytes) {
  return to_hex(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string hash_parts(std::initializer_list<std::string_view> parts) {
  Hasher hasher;
  for (std::string_view part : parts) hasher.add(part);
  return hasher.hex();
}

}  // namespace ptxbench
