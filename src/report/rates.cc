#include "report/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "store/labels.h"

namespace ptxbench::report {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Outcome {  // of one trajectory's first n turns
  bool correct = false, with_arch = false;
  double best = kNaN;  // of its correct turns
};

Outcome outcome(const Dataset& data, const Trajectory& trajectory, int turns) {
  Outcome result;
  for (uint32_t i = 0; i < trajectory.count; ++i) {
    const Turn& turn = data.turns[trajectory.first + i];
    if (turn.index >= turns) break;
    if (!turn.correct) continue;
    result.correct = true;
    result.with_arch |= turn.with_arch;
    result.best = std::fmax(result.best, turn.speedup);
  }
  return result;
}

std::string prompt_suffix(const std::string& prompt) {
  return prompt.empty() ? "" : " [" + prompt + "]";
}

double share(uint64_t part, uint64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : kNaN;
}

Cell count(uint64_t value) { return static_cast<int64_t>(value); }

}  // namespace

Rates rates_of(const Dataset& data, uint32_t group_index, int turns) {
  const Group& group = data.groups[group_index];
  Rates r;
  r.group = group_index;
  r.turns = turns;
  r.trajectories = group.count;
  r.arch_known = !store::required_tag(group.arch).empty();
  double best = kNaN;
  std::vector<double> solved;
  std::array<uint64_t, kSpeedups.size()> fast{};
  for (uint32_t i = 0; i < group.count; ++i) {
    const Outcome one = outcome(data, data.trajectories[group.first + i], turns);
    r.correct += one.correct;
    r.correct_with_arch += one.with_arch;
    best = std::fmax(best, one.best);
    if (one.best > 0) solved.push_back(one.best);
    for (size_t p = 0; p < kSpeedups.size(); ++p) fast[p] += one.best > kSpeedups[p];
  }
  r.best_speedup = r.correct == 0 ? 0 : best;
  r.correct_interval = wilson(r.correct, r.trajectories);
  r.arch_interval = wilson(r.correct_with_arch, r.trajectories);
  for (size_t k = 0; k < kDraws.size(); ++k)
    r.pass[k] = pass_at_k(r.trajectories, r.correct, kDraws[k]);
  for (size_t p = 0; p < kSpeedups.size(); ++p) r.fast[p] = share(fast[p], r.trajectories);
  r.geometric_speedup = geometric_mean(solved);
  r.timed = solved.size();
  return r;
}

std::vector<Rates> all_rates(const Dataset& data) {
  std::vector<Rates> rates;
  for (uint32_t group = 0; group < data.groups.size(); ++group)
    for (const int turns : kTurnLimits) rates.push_back(rates_of(data, group, turns));
  return rates;
}

Table rates_table(const Dataset& data, const std::vector<Rates>& rates) {
  using Kind = Column::Kind;
  Table table{
      "rates",
      "Rates at 1, 4 and 8 turns",
      "A trajectory counts once, where any of its first n turns is right; rates are over all "
      "trajectories of the run.",
      {{"model", "model"},
       {"arch", "arch"},
       {"definition", "definition"},
       {"workload", "workload"},
       {"run", "run"},
       {"turns", "turns", Kind::count},
       {"n_trajectories", "trajectories", Kind::count},
       {"correct", "correct", Kind::count},
       {"correctness_rate", "rate", Kind::ratio},
       {"correct_with_arch", "with instr.", Kind::count},
       {"correct_with_arch_rate", "rate", Kind::ratio},
       {"best_speedup", "best speed-up", Kind::number}},
      {}};
  for (const Rates& r : rates) {
    const Group& g = data.groups[r.group];
    table.rows.push_back({g.model + prompt_suffix(g.prompt), g.arch, g.definition, g.workload,
                          g.run, int64_t{r.turns}, count(r.trajectories), count(r.correct),
                          number(share(r.correct, r.trajectories)),
                          known(r.arch_known, static_cast<int64_t>(r.correct_with_arch)),
                          number(r.arch_known ? share(r.correct_with_arch, r.trajectories) : kNaN),
                          number(r.best_speedup)});
  }
  return table;
}

Table results_table(const Dataset& data, const std::vector<Rates>& rates) {
  using Kind = Column::Kind;
  Table table{"results",
              "Right trajectories at 1, 4 and 8 turns (with the architecture's instructions)",
              "",
              {{"model", "model"}, {"arch", "arch"}, {"task", "task"}, {"run", "run"}},
              {}};
  for (const int turns : kTurnLimits)
    table.columns.push_back({fmt::format("at_{}", turns), fmt::format("at {}", turns)});
  table.columns.push_back({"best_speedup", "best speed-up", Kind::number});
  for (size_t i = 0; i < rates.size(); i += kTurnLimits.size()) {
    const Group& g = data.groups[rates[i].group];
    std::vector<Cell> row = {g.model + prompt_suffix(g.prompt), g.arch, g.task(), g.run};
    for (size_t l = 0; l < kTurnLimits.size(); ++l)
      row.push_back(fmt::format("{}/{} ({})", rates[i + l].correct, rates[i + l].trajectories,
                                rates[i + l].correct_with_arch));
    row.push_back(number(rates[i + kTurnLimits.size() - 1].best_speedup));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table statistics_table(const Dataset& data, const std::vector<Rates>& rates) {
  using Kind = Column::Kind;
  Table table{
      "statistics",
      "Intervals, pass@k, fast_p",
      "Wilson score intervals at 95 %; pass@k: unbiased estimate that k fresh trajectories "
      "hold a right one; fast_p: share of trajectories with a right answer faster than p "
      "times the library; geometric mean over solved and timed trajectories only, the solved "
      "share beside it.",
      {{"model", "model"},
       {"arch", "arch"},
       {"definition", "definition"},
       {"workload", "workload"},
       {"run", "run"},
       {"turns", "turns", Kind::count},
       {"correctness_low", "rate from", Kind::ratio},
       {"correctness_high", "to", Kind::ratio},
       {"correct_with_arch_low", "with instr. from", Kind::ratio},
       {"correct_with_arch_high", "to", Kind::ratio}},
      {}};
  for (const uint64_t k : kDraws)
    table.columns.push_back({fmt::format("pass_at_{}", k), fmt::format("pass@{}", k), Kind::ratio});
  for (const double p : kSpeedups)
    table.columns.push_back({fmt::format("fast_{}", p), fmt::format("fast_{}", p), Kind::ratio});
  table.columns.push_back({"solved_share", "solved", Kind::ratio});
  table.columns.push_back({"timed", "timed", Kind::count});
  table.columns.push_back({"geometric_mean_speedup", "geo. mean", Kind::number});
  for (const Rates& r : rates) {
    const Group& g = data.groups[r.group];
    std::vector<Cell> row = {g.model + prompt_suffix(g.prompt),
                             g.arch,
                             g.definition,
                             g.workload,
                             g.run,
                             int64_t{r.turns},
                             r.correct_interval.low,
                             r.correct_interval.high,
                             number(r.arch_known ? r.arch_interval.low : kNaN),
                             number(r.arch_known ? r.arch_interval.high : kNaN)};
    for (const double value : r.pass) row.push_back(number(value));
    for (const double value : r.fast) row.push_back(number(value));
    row.push_back(number(share(r.correct, r.trajectories)));
    row.push_back(count(r.timed));
    row.push_back(number(r.geometric_speedup));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<ModelSummary> model_summaries(const Dataset& data, const std::vector<Rates>& rates) {
  struct Task {
    bool solved = false, with_arch = false;
    double best = kNaN;
  };
  std::map<std::array<std::string, 3>, std::map<std::pair<std::string, std::string>, Task>> tasks;
  std::map<std::array<std::string, 3>, ModelSummary> summaries;
  for (const Rates& r : rates) {
    if (r.turns != kTurnLimits.back()) continue;
    const Group& g = data.groups[r.group];
    const std::array<std::string, 3> key = {g.model, g.arch, g.prompt};
    Task& task = tasks[key][{g.definition, g.workload}];
    task.solved |= r.correct > 0;
    task.with_arch |= r.correct_with_arch > 0;
    if (r.correct > 0) task.best = std::fmax(task.best, r.best_speedup);
    ModelSummary& s = summaries[key];
    s.trajectories += r.trajectories;
    s.correct += r.correct;
    s.correct_with_arch += r.correct_with_arch;
    for (uint32_t i = 0; i < g.count; ++i) {
      const Trajectory& t = data.trajectories[g.first + i];
      for (uint32_t j = 0; j < t.count; ++j) {
        const Turn& turn = data.turns[t.first + j];
        s.correct_turns += turn.correct;
        s.generic_turns += turn.correct && !turn.with_arch;
      }
    }
  }
  std::vector<ModelSummary> list;
  for (auto& [key, s] : summaries) {
    s.model = key[0], s.arch = key[1], s.prompt = key[2];
    std::vector<double> speedups;
    for (const auto& [name, task] : tasks[key]) {
      ++s.tasks;
      s.solved += task.solved;
      s.solved_with_arch += task.with_arch;
      if (task.best > 0) speedups.push_back(task.best);
    }
    s.geometric_speedup = geometric_mean(speedups);
    s.best_speedup = speedups.empty() ? kNaN : *std::max_element(speedups.begin(), speedups.end());
    list.push_back(s);
  }
  return list;
}

Table models_table(const std::vector<ModelSummary>& models) {
  using Kind = Column::Kind;
  Table table{
      "models",
      "Models at 8 turns",
      "A task is solved where any trajectory of any run is right within 8 turns. The geometric "
      "mean is over solved and timed tasks only; generic answers are right without the "
      "architecture's instructions.",
      {{"model", "model"},
       {"arch", "arch"},
       {"prompt", "prompt"},
       {"tasks", "tasks", Kind::count},
       {"solved", "solved", Kind::count},
       {"solved_with_arch", "with instr.", Kind::count},
       {"n_trajectories", "trajectories", Kind::count},
       {"correctness_rate", "rate", Kind::ratio},
       {"correct_with_arch_rate", "with instr.", Kind::ratio},
       {"geometric_mean_speedup", "geo. mean", Kind::number},
       {"best_speedup", "best", Kind::number},
       {"generic_share", "generic answers", Kind::ratio}},
      {}};
  for (const ModelSummary& m : models)
    table.rows.push_back(
        {m.model, m.arch, m.prompt, count(m.tasks), count(m.solved), count(m.solved_with_arch),
         count(m.trajectories), number(share(m.correct, m.trajectories)),
         number(share(m.correct_with_arch, m.trajectories)), number(m.geometric_speedup),
         number(m.best_speedup), number(share(m.generic_turns, m.correct_turns))});
  return table;
}

}  // namespace ptxbench::report
