#pragma once
// Short texts, printf style: the runtime libraries load nothing that formats.

#include <cstdarg>
#include <cstdio>
#include <string>

namespace ptxbench::cudart {

__attribute__((format(printf, 1, 2))) inline std::string text(const char* format, ...) {
  char buffer[400];
  va_list list;
  va_start(list, format);
  std::vsnprintf(buffer, sizeof buffer, format, list);
  va_end(list);
  return buffer;
}

}  // namespace ptxbench::cudart
