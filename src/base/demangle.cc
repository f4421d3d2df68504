#include "base/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace ptxbench {

std::string demangle(const std::string& symbol) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : symbol;
}

std::string demangled_variable(const std::string& symbol) {
  std::string name = demangle(symbol);
  const size_t last = name.rfind("::");
  return last == std::string::npos ? name : name.substr(last + 2);
}

std::string demangled_function(const std::string& symbol) {
  std::string name = demangle(symbol);
  if (name == symbol) return name;
  for (const std::string anonymous = "(anonymous namespace)::"; name.find(anonymous) != name.npos;)
    name.erase(name.find(anonymous), anonymous.size());
  if (const size_t open = name.find('('); open != std::string::npos) name.resize(open);
  if (name.starts_with("void ")) name.erase(0, 5);
  return name;
}

}  // namespace ptxbench
