#include "base/result.h"

#include <fmt/format.h>

namespace ptxbench {

std::string Error::to_string() const {
  std::string prefix;
  if (!where.file.empty()) prefix += where.file + ":";
  if (where.line > 0) prefix += fmt::format("{}:", where.line);
  if (where.line > 0 && where.column > 0) prefix += fmt::format("{}:", where.column);
  return prefix.empty() ? message : prefix + " " + message;
}

}  // namespace ptxbench
