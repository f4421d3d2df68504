#pragma once
// What reports are made of besides data: the page's own files, which are part of the program, and
// the charting library, which is read where scripts/setup.sh installed it.

#include <string>
#include <string_view>

#include "base/result.h"

namespace ptxbench::report::assets {

std::string_view release_dates();  // CSV
// Published instruction counts that the published turns do not give: CSV with run, definition,
// turns, correct_with_arch, n_trajectories.
std::string_view published_exceptions();
std::string_view page();    // HTML with {{placeholders}}
std::string_view style();   // CSS
std::string_view script();  // JavaScript, all files one after the other

// plotly.min.js from the private Python environment. Kind "not-found" names the remedy.
Result<std::string> plotly();

}  // namespace ptxbench::report::assets
