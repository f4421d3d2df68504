#pragma once
// What a candidate's host library and kernels call that they may not: judged by the imports of the
// library and the kernels in the PTX, never by the source text.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "toolchain/compiler.h"

namespace ptxbench::toolchain {

struct SymbolReport {
  std::string failure_reason;  // "", "banned-call" or "undefined-symbol"
  std::vector<Diagnostic> diagnostics;
};

// Errors: "syntax" (not a shared object).
Result<SymbolReport> check_symbols(std::span<const uint8_t> host_library, std::string_view ptx);

// Why a host function may not be called ("cuBLAS", "host thread", …); "" if it may.
std::string banned_because(std::string_view symbol);

}  // namespace ptxbench::toolchain
