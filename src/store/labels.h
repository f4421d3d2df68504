#pragma once
// The published labels of a turn, and the architecture names that results go by.

#include <array>
#include <string_view>

namespace ptxbench::store {

constexpr std::string_view kCorrect = "Correct";
constexpr std::array<std::string_view, 9> kLabels = {
    "Correct",           "Numerical error",
    "Runtime error",     "Kernel Execution Timeout",
    "Sanitize Timeout",  "Profiling Service Timeout",
    "Compilation error", "Extraction error",
    "Other error"};

bool known_label(std::string_view label);

// Whether the tag list ("A, H") names the instructions that the architecture is bought for: "H" for
// hopper and sm_90*, "B" for blackwell and sm_100*, sm_103*. `required` empty: unknown
// architecture.
std::string_view required_tag(std::string_view arch);
bool has_tag(std::string_view tags, std::string_view wanted);

}  // namespace ptxbench::store
