#pragma once
// Two models (or runs) on the tasks that both tried, paired by task.

#include <string>
#include <vector>

#include "base/result.h"
#include "report/rates.h"

namespace ptxbench::report {

struct Comparison {
  std::string a, b, arch;
  uint64_t tasks = 0;                       // (definition, workload) that both tried
  double rate_a = 0, rate_b = 0;            // means over these tasks, at 8 turns
  Interval difference;                      // of rate_a - rate_b: paired bootstrap over tasks, 95 %
  uint64_t wins = 0, losses = 0, ties = 0;  // tasks where a's rate is higher, lower, equal
  double p = 1;                             // exact two-sided sign test of wins against losses
  uint64_t solved_both = 0;                 // tasks solved and timed by both
  double speedup_ratio = 0;  // geometric mean of a's best speed-up over b's; NaN: none
  uint64_t faster = 0, slower = 0;
  double p_speedup = 1;  // sign test of these
};

// Every pair of models (with prompt) with at least one task in common on the same architecture. Of
// more than 24 models the 24 with the most tasks.
std::vector<Comparison> compare_models(const Dataset& data, const std::vector<Rates>& rates);

// A name is a run's or a model's. Errors ("usage"): an unknown name, no common task.
Result<std::vector<Comparison>> compare_named(const Dataset& data, const std::vector<Rates>& rates,
                                              const std::string& a, const std::string& b);

Table comparisons_table(const std::vector<Comparison>& comparisons);

}  // namespace ptxbench::report
