#pragma once
// Integer expressions of a launch manifest: decimal numbers, names, + - * / % (division towards
// zero), parentheses, ceil_div(a, b), min(a, b), max(a, b). 64-bit; overflow is an error.

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"

namespace ptxbench::bench {

using Names = std::map<std::string, int64_t>;

// Error ("expression"): what is wrong, at which character.
Result<int64_t> evaluate_expression(const std::string& text, const Names& names);

}  // namespace ptxbench::bench
