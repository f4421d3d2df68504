#include "emu/device_runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "emu/global_memory.h"

namespace ptxbench::emu {
namespace {

constexpr size_t kMaxText = 64 << 10;
constexpr uint32_t kMaxField = 4096;  // width and precision

struct Conversion {
  std::string flags;
  uint32_t width = 0, precision = 0;
  bool has_precision = false;
  bool wide = false;  // an argument of 8 bytes
  int narrow = 0;     // h or hh: bytes that count
  char type = 0;
};

uint32_t number_at(std::string_view text, size_t* at) {
  uint32_t value = 0;
  for (; *at < text.size() && text[*at] >= '0' && text[*at] <= '9'; ++*at)
    value = std::min(kMaxField, value * 10 + static_cast<uint32_t>(text[*at] - '0'));
  return value;
}

// Parses behind a '%'; false: no conversion, `at` unchanged.
bool parse_conversion(std::string_view text, size_t* at, Conversion* c) {
  size_t i = *at;
  while (i < text.size() && std::strchr("-+ #0", text[i]) && c->flags.size() < 5)
    c->flags += text[i++];
  c->width = number_at(text, &i);
  if (i < text.size() && text[i] == '.') {
    c->has_precision = true;
    c->precision = number_at(text, &++i);
  }
  for (; i < text.size() && std::strchr("hljztL", text[i]); ++i) {
    if (text[i] == 'h')
      c->narrow = c->narrow == 2 ? 1 : 2;
    else
      c->wide = true;
  }
  if (i >= text.size() || !std::strchr("diouxXeEfFgGaAcsp", text[i])) return false;
  c->type = text[i];
  *at = i + 1;
  return true;
}

std::string spec_of(const Conversion& c, const char* length) {
  std::string spec = "%" + c.flags;
  if (c.width) spec += std::to_string(c.width);
  if (c.has_precision) spec += "." + std::to_string(c.precision);
  return spec + length + c.type;
}

template <class T>
std::string formatted(const Conversion& c, const char* length, T value) {
  const std::string spec = spec_of(c, length);
  std::vector<char> buffer(2 * kMaxField + 512);
  const int n = std::snprintf(buffer.data(), buffer.size(), spec.c_str(), value);
  return n < 0 ? ""
               : std::string(buffer.data(),
                             std::min<size_t>(static_cast<size_t>(n), buffer.size() - 1));
}

// A zero-terminated string at a generic address.
bool read_text(uint64_t address, const GenericRead& read, std::string* out) {
  for (char c = 0; out->size() < kMaxText; *out += c) {
    if (!read(address + out->size(), &c, 1)) return false;
    if (c == 0) return true;
  }
  return true;
}

class Arguments {
 public:
  Arguments(uint64_t address, const GenericRead& read) : at_(address), read_(read) {}
  template <class T>
  bool next(T* out) {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    const bool good = at_ != 0 && read_(at_, out, sizeof(T));
    at_ += sizeof(T);
    return good;
  }

 private:
  uint64_t at_;
  const GenericRead& read_;
};

std::string integer(const Conversion& c, Arguments& arguments, bool* good) {
  const bool is_signed = c.type == 'd' || c.type == 'i';
  int64_t value = 0;
  if (c.wide) {
    *good = arguments.next(&value);
  } else {
    int32_t word = 0;
    *good = arguments.next(&word);
    value = word;
    if (c.narrow == 2) value = static_cast<int16_t>(word);
    if (c.narrow == 1) value = static_cast<int8_t>(word);
    if (!is_signed) {
      value = static_cast<uint32_t>(word);
      if (c.narrow) value &= c.narrow == 2 ? 0xffff : 0xff;
    }
  }
  return formatted(c, "ll", static_cast<long long>(value));
}

std::string converted(const Conversion& c, Arguments& arguments, const GenericRead& read,
                      bool* good) {
  if (std::strchr("diouxX", c.type)) return integer(c, arguments, good);
  if (c.type == 'c') {
    int32_t value = 0;
    *good = arguments.next(&value);
    return formatted(c, "", value);
  }
  if (c.type == 'p') {
    uint64_t value = 0;
    *good = arguments.next(&value);
    return formatted(c, "", reinterpret_cast<void*>(value));
  }
  if (c.type == 's') {
    uint64_t address = 0;
    std::string text;
    *good = arguments.next(&address) && read_text(address, read, &text);
    return formatted(c, "", text.c_str());
  }
  double value = 0;
  *good = arguments.next(&value);
  return formatted(c, "", value);
}

}  // namespace

std::string device_format(const std::string& format, uint64_t address, const GenericRead& read,
                          int* count) {
  Arguments arguments(address, read);
  std::string out;
  *count = 0;
  for (size_t i = 0; i < format.size() && out.size() < kMaxText;) {
    if (format[i] != '%') {
      out += format[i++];
      continue;
    }
    if (++i < format.size() && format[i] == '%') {
      out += format[i++];
      continue;
    }
    Conversion c;
    if (!parse_conversion(format, &i, &c)) {
      out += '%';  // not a conversion: as it stands
      continue;
    }
    bool good = false;
    const std::string text = converted(c, arguments, read, &good);
    out += good ? text : "(null)";
    ++*count;
  }
  if (out.size() > kMaxText) out.resize(kMaxText);
  return out;
}

void DeviceHeap::prepare() {
  std::lock_guard lock(mutex_);
  if (base_ || !memory_.fits(size_)) return;
  base_ = memory_.allocate("device heap", size_, true);
  free_[0] = size_;
}

uint64_t DeviceHeap::allocate(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (!base_ || bytes == 0 || bytes > size_) return 0;
  bytes = (bytes + 15) / 16 * 16;
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    if (block->second < bytes) continue;
    const auto [offset, size] = *block;
    free_.erase(block);
    if (size > bytes) free_[offset + bytes] = size - bytes;
    used_[offset] = bytes;
    std::memset(memory_.find(base_)->data + offset, 0xff, bytes);
    return base_ + offset;
  }
  return 0;
}

bool DeviceHeap::release(uint64_t address) {
  std::lock_guard lock(mutex_);
  const auto block = used_.find(address - base_);
  if (!base_ || address < base_ || block == used_.end()) return false;
  auto merged = free_.insert(*block).first;
  used_.erase(block);
  if (auto next = std::next(merged);
      next != free_.end() && merged->first + merged->second == next->first) {
    merged->second += next->second;
    free_.erase(next);
  }
  if (merged != free_.begin()) {
    auto before = std::prev(merged);
    if (before->first + before->second == merged->first) {
      before->second += merged->second;
      free_.erase(merged);
    }
  }
  return true;
}

}  // namespace ptxbench::emu
