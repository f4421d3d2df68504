#pragma once
// From a line of compiler-made PTX to the CUDA line it came from, by the .file and .loc directives.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ptxbench::toolchain {

class LineMap {
 public:
  explicit LineMap(std::string_view ptx);

  // The source of PTX line `line` (from 1): that of the last .loc above it. Unknown: line 0.
  SourceLocation source_of(int line) const;
  // The line's text, trimmed; "" if there is none.
  std::string text_of(int line) const;

 private:
  struct Mark {
    int ptx_line, file, line, column;
  };
  std::string_view ptx_;
  std::vector<size_t> line_starts_;
  std::vector<Mark> marks_;
  std::vector<std::string> files_;  // by number
};

}  // namespace ptxbench::toolchain
