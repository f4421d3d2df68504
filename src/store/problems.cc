#include "store/problems.h"

#include <fmt/format.h>

namespace ptxbench::store {
namespace {

constexpr int kPlacesNamed = 5;
constexpr size_t kKinds = 200;  // a hostile file must not make a list as long as itself

// Length of the well-formed UTF-8 sequence at `at`, or 0.
size_t sequence(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  const unsigned second = byte(at + 1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool outside = (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90);
  return overlong || outside ? 0 : length;
}

bool printable(unsigned char c) { return c >= 0x20 ? c != 0x7f : c == '\t' || c == '\n'; }

}  // namespace

void Problems::add(const std::string& kind, const std::string& detail, size_t line,
                   uint64_t count) {
  auto found = index_.find({kind, detail});
  if (found == index_.end()) {
    // Beyond that many different ones, the rest are counted by kind alone.
    const std::string& kept =
        problems_.size() < kKinds ? detail : "further ones of this kind, not listed one by one";
    found = index_.emplace(std::pair(kind, kept), problems_.size()).first;
    if (found->second == problems_.size()) {
      problems_.push_back({kind, source_, kept, 0, ""});
      places_.push_back(0);
    }
  }
  Problem& problem = problems_[found->second];
  problem.count += count;
  int& named = places_[found->second];
  if (line == 0 || named > kPlacesNamed) return;
  if (named == kPlacesNamed)
    problem.places += ", ...";
  else
    problem.places += fmt::format("{}{}", named == 0 ? "line " : ", ", line);
  ++named;
}

bool make_printable(std::string& text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = sequence(text, at);
    if (length == 0 || (length == 1 && !printable(static_cast<unsigned char>(text[at])))) break;
    at += length;
  }
  if (at == text.size()) return false;
  std::string fixed = text.substr(0, at);
  while (at < text.size()) {
    const size_t length = sequence(text, at);
    if (length == 0 || (length == 1 && !printable(static_cast<unsigned char>(text[at])))) {
      fixed += "\xef\xbf\xbd";
      ++at;
    } else {
      fixed.append(text, at, length);
      at += length;
    }
  }
  text = std::move(fixed);
  return true;
}

}  // namespace ptxbench::store
