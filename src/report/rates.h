#pragma once
// Rates at 1, 4 and 8 turns, by the published definitions: a trajectory counts once, "at n turns"
// means in any of its first n, and rates are over all trajectories of the group.

#include <array>
#include <vector>

#include "report/dataset.h"
#include "report/statistics.h"
#include "report/table.h"

namespace ptxbench::report {

constexpr std::array<int, 3> kTurnLimits = {1, 4, 8};
constexpr std::array<uint64_t, 4> kDraws = {1, 2, 4, 8};             // k of pass@k
constexpr std::array<double, 4> kSpeedups = {0.25, 0.5, 0.75, 1.0};  // p of fast_p

struct Rates {
  uint32_t group = 0;
  int turns = 0;  // n
  uint64_t trajectories = 0, correct = 0, correct_with_arch = 0;
  bool arch_known = true;
  // Best speed-up of a correct turn; 0 if no turn is correct, NaN if none that is was timed.
  double best_speedup = 0;
  Interval correct_interval, arch_interval;
  std::array<double, kDraws.size()> pass{};     // NaN where k exceeds the trajectories
  std::array<double, kSpeedups.size()> fast{};  // share with a correct turn faster than p
  // Over solved and timed trajectories: geometric mean of each one's best speed-up.
  double geometric_speedup = 0;
  uint64_t timed = 0;
};

Rates rates_of(const Dataset& data, uint32_t group, int turns);
std::vector<Rates> all_rates(const Dataset& data);  // by group, then turns

// Exactly the columns model, arch, definition, workload, run, turns, n_trajectories, correct,
// correctness_rate, correct_with_arch, correct_with_arch_rate, best_speedup.
Table rates_table(const Dataset& data, const std::vector<Rates>& rates);
// For people: one row per run and task, "9/12" for counts.
Table results_table(const Dataset& data, const std::vector<Rates>& rates);
// Intervals, pass@k, fast_p, geometric means, one row per row of the rates.
Table statistics_table(const Dataset& data, const std::vector<Rates>& rates);

// Per model, architecture and prompt at 8 turns, over tasks: what was solved, how fast.
struct ModelSummary {
  std::string model, arch, prompt;
  uint64_t tasks = 0, solved = 0, solved_with_arch = 0, trajectories = 0, correct = 0,
           correct_with_arch = 0;
  double best_speedup = 0, geometric_speedup = 0;  // over solved and timed tasks; NaN: none
  uint64_t correct_turns = 0, generic_turns = 0;   // generic: correct without the instructions
};
std::vector<ModelSummary> model_summaries(const Dataset& data, const std::vector<Rates>& rates);
Table models_table(const std::vector<ModelSummary>& models);

}  // namespace ptxbench::report
