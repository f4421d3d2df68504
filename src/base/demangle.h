#pragma once
// C++ symbol names as people write them. A name that is not mangled comes back as it is.

#include <string>

namespace ptxbench {

std::string demangle(const std::string& symbol);
// Of a variable: "tile" of a mangled "kernel(...)::tile".
std::string demangled_variable(const std::string& symbol);
// Of a function: no return type, parameters or anonymous namespaces, "gemm<256, 2>".
std::string demangled_function(const std::string& symbol);

}  // namespace ptxbench
