#pragma once
// A verdict for people.

#include <string>

#include "bench/causes/causes.h"
#include "bench/verdict.h"
#include "cli/output.h"

namespace ptxbench::cli {

// `source`: the candidate's text, to quote lines from ("" for a plan).
std::string verdict_text(const bench::Verdict& verdict, const std::string& source, int first_line,
                         const Style& style);

// An estimate of time and its causes, for people.
std::string speed_text(const bench::SpeedReport& report);

}  // namespace ptxbench::cli
