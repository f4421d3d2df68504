#pragma once
// Options of `ptxbench eval`, and its form for a folder of candidates.

#include <string>

#include "cli/candidate_options.h"

namespace ptxbench::cli {

struct EvalOptions : CandidateOptions {
  std::string plan, tensor, async = "late", schedule = "inorder", seed, races = "auto";
  std::string tile_map;  // file for the picture of wrong tiles, SVG
  std::string trace;     // file for the verdict as a FlashInfer trace
  int threads = 0, require = 5;
  int jobs = 0;       // candidates of a folder judged at once; 0 = all cores
  int launches = 25;  // timed ones, on a GPU
  double timeout_s = 0;
};

// Judges every candidate of the folder `options.file`, each in a process of its own, so that none
// can disturb another. --json gets one line a candidate, as soon as it is judged: {"file",
// "verdict"} or {"file", "infrastructure"}. Exit code 0: all reached --require; 1: some fell short;
// 2: some could not be judged, or there are none.
int eval_folder(const EvalOptions& options);

}  // namespace ptxbench::cli
