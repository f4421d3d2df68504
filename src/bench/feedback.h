#pragma once
// What a model gets back about its candidate: short, the most useful first, its own source lines
// quoted.

#include <string>

#include "bench/verdict.h"

namespace ptxbench::bench {

// `source`: the candidate's text ("" for a plan).
std::string make_feedback(const Verdict& verdict, const std::string& source);

// Line `number` (from 1) of a text without surrounding blanks; "" if there is none.
std::string source_line(const std::string& source, int number);

// Whether a finding's file is the candidate itself, wherever it was compiled.
bool is_source_file(const std::string& file, const Verdict& verdict);

// "gemm.cu:42", with the chain of call sites that inlined it.
std::string place_of(const plan::Finding& finding);

}  // namespace ptxbench::bench
