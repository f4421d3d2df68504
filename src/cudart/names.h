#pragma once
// Names of file-local device entities carry a hash of the compilation, which differs between a
// device-only and a host-only pass.

#include <algorithm>
#include <cctype>
#include <string>

namespace ptxbench::cudart {

// The name with every run of eight or more hexadecimal digits after an underscore blanked out.
inline std::string without_hashes(const std::string& name) {
  std::string out;
  for (size_t i = 0; i < name.size();) {
    size_t run = 0;
    while (i + run < name.size() && std::isxdigit(static_cast<unsigned char>(name[i + run]))) ++run;
    const bool hash = run >= 8 && i > 0 && name[i - 1] == '_';
    const size_t step = hash ? 8 : std::max<size_t>(run, 1);
    out += hash ? std::string(8, '#') : name.substr(i, step);
    i += step;
  }
  return out;
}

}  // namespace ptxbench::cudart
