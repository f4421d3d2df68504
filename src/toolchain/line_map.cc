#include "toolchain/line_map.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>

namespace ptxbench::toolchain {
namespace {

constexpr size_t kMaxFiles = 4096;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

}  // namespace

LineMap::LineMap(std::string_view ptx) : ptx_(ptx) {
  for (size_t begin = 0; begin < ptx.size();) {
    const size_t end = std::min(ptx.find('\n', begin), ptx.size());
    line_starts_.push_back(begin);
    const int number = static_cast<int>(line_starts_.size());
    const std::string line(trimmed(ptx.substr(begin, std::min<size_t>(end - begin, 8192))));
    begin = end + 1;
    Mark mark{number, 0, 0, 0};
    int consumed = 0;
    if (sscanf(line.c_str(), ".loc %d %d %d", &mark.file, &mark.line, &mark.column) == 3) {
      marks_.push_back(mark);
    } else if (sscanf(line.c_str(), ".file %d %n", &mark.file, &consumed) == 1 && consumed > 0) {
      const size_t open = line.find('"'), close = line.rfind('"');
      if (open == std::string::npos || close <= open || mark.file < 0 ||
          static_cast<size_t>(mark.file) >= kMaxFiles)
        continue;
      if (files_.size() <= static_cast<size_t>(mark.file))
        files_.resize(static_cast<size_t>(mark.file) + 1);
      files_[static_cast<size_t>(mark.file)] = line.substr(open + 1, close - open - 1);
    }
  }
}

SourceLocation LineMap::source_of(int line) const {
  auto after = std::upper_bound(marks_.begin(), marks_.end(), line,
                                [](int l, const Mark& mark) { return l < mark.ptx_line; });
  if (after == marks_.begin()) return {};
  const Mark& mark = *--after;
  const auto file = static_cast<size_t>(mark.file);
  if (mark.file < 0 || file >= files_.size()) return {};
  return {std::filesystem::path(files_[file]).filename().string(), mark.line, mark.column};
}

std::string LineMap::text_of(int line) const {
  if (line < 1 || static_cast<size_t>(line) > line_starts_.size()) return "";
  const size_t begin = line_starts_[static_cast<size_t>(line) - 1];
  const size_t end = std::min(ptx_.find('\n', begin), ptx_.size());
  return std::string(trimmed(ptx_.substr(begin, end - begin)));
}

}  // namespace ptxbench::toolchain
