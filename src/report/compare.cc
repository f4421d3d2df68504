#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

namespace ptxbench::report {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kModelsCompared = 24;

struct TaskResult {
  uint64_t trajectories = 0, correct = 0;
  double best = kNaN;
  double rate() const { return static_cast<double>(correct) / static_cast<double>(trajectories); }
};
using Tasks = std::map<std::pair<std::string, std::string>, TaskResult>;  // definition, workload
using ByArch = std::map<std::string, Tasks>;

void add(ByArch& results, const Group& group, const Rates& rates) {
  TaskResult& task = results[group.arch][{group.definition, group.workload}];
  task.trajectories += rates.trajectories;
  task.correct += rates.correct;
  if (rates.correct) task.best = std::fmax(task.best, rates.best_speedup);
}

Comparison compare(const std::string& a, const Tasks& of_a, const std::string& b, const Tasks& of_b,
                   const std::string& arch) {
  Comparison c;
  c.a = a, c.b = b, c.arch = arch;
  std::vector<double> rates_a, rates_b, differences, ratios;
  for (const auto& [task, result_a] : of_a) {
    const auto other = of_b.find(task);
    if (other == of_b.end()) continue;
    const TaskResult& result_b = other->second;
    ++c.tasks;
    rates_a.push_back(result_a.rate());
    rates_b.push_back(result_b.rate());
    differences.push_back(rates_a.back() - rates_b.back());
    // Compared as fractions of integers: 1/3 of 12 and of 24 trajectories are equal.
    const uint64_t left = result_a.correct * result_b.trajectories,
                   right = result_b.correct * result_a.trajectories;
    ++(left > right ? c.wins : left < right ? c.losses : c.ties);
    if (!(result_a.best > 0 && result_b.best > 0)) continue;
    ratios.push_back(result_a.best / result_b.best);
    c.faster += result_a.best > result_b.best;
    c.slower += result_a.best < result_b.best;
  }
  c.rate_a = mean(rates_a);
  c.rate_b = mean(rates_b);
  c.difference = bootstrap_mean(differences);
  c.p = sign_test(c.wins, c.losses);
  c.solved_both = ratios.size();
  c.speedup_ratio = geometric_mean(ratios);
  c.p_speedup = sign_test(c.faster, c.slower);
  return c;
}

void compare_all(const std::string& a, const ByArch& of_a, const std::string& b, const ByArch& of_b,
                 std::vector<Comparison>& list) {
  for (const auto& [arch, tasks] : of_a) {
    const auto other = of_b.find(arch);
    if (other == of_b.end()) continue;
    Comparison c = compare(a, tasks, b, other->second, arch);
    if (c.tasks > 0) list.push_back(std::move(c));
  }
}

}  // namespace

std::vector<Comparison> compare_models(const Dataset& data, const std::vector<Rates>& rates) {
  std::map<std::string, ByArch> models;
  for (const Rates& r : rates) {
    if (r.turns != kTurnLimits.back()) continue;
    const Group& g = data.groups[r.group];
    add(models[g.prompt.empty() ? g.model : g.model + " [" + g.prompt + "]"], g, r);
  }
  std::vector<std::pair<size_t, std::string>> by_size;
  for (const auto& [name, archs] : models) {
    size_t tasks = 0;
    for (const auto& [arch, of_arch] : archs) tasks += of_arch.size();
    by_size.emplace_back(tasks, name);
  }
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  by_size.resize(std::min(by_size.size(), kModelsCompared));
  std::vector<std::string> names;
  for (const auto& [tasks, name] : by_size) names.push_back(name);
  std::sort(names.begin(), names.end());
  std::vector<Comparison> list;
  for (size_t i = 0; i < names.size(); ++i)
    for (size_t j = i + 1; j < names.size(); ++j)
      compare_all(names[i], models[names[i]], names[j], models[names[j]], list);
  return list;
}

Result<std::vector<Comparison>> compare_named(const Dataset& data, const std::vector<Rates>& rates,
                                              const std::string& a, const std::string& b) {
  std::map<std::string, ByArch> named;
  for (const std::string* name : {&a, &b}) {
    for (const Rates& r : rates) {
      const Group& g = data.groups[r.group];
      if (r.turns == kTurnLimits.back() && (g.run == *name || g.model == *name))
        add(named[*name], g, r);
    }
    if (!named.contains(*name))
      return Error{"usage", fmt::format("no run or model is called '{}'", *name)};
  }
  std::vector<Comparison> list;
  compare_all(a, named[a], b, named[b], list);
  if (list.empty())
    return Error{"usage", fmt::format("'{}' and '{}' have no task in common", a, b)};
  return list;
}

Table comparisons_table(const std::vector<Comparison>& comparisons) {
  using Kind = Column::Kind;
  Table table{
      "comparisons",
      "Compared in pairs, at 8 turns",
      "Paired by task; the rates are means over the common tasks. Difference: paired bootstrap "
      "over tasks, 95 %. p: exact two-sided sign test (McNemar's, where each has one "
      "trajectory per task), ties left out. Not corrected for the number of comparisons.",
      {{"a", "a"},
       {"b", "b"},
       {"arch", "arch"},
       {"tasks", "tasks", Kind::count},
       {"rate_a", "rate a", Kind::ratio},
       {"rate_b", "rate b", Kind::ratio},
       {"difference", "a - b", Kind::ratio},
       {"difference_low", "from", Kind::ratio},
       {"difference_high", "to", Kind::ratio},
       {"wins", "a better", Kind::count},
       {"losses", "b better", Kind::count},
       {"ties", "equal", Kind::count},
       {"p", "p", Kind::number},
       {"solved_both", "both timed", Kind::count},
       {"speedup_ratio", "speed a / b", Kind::number},
       {"faster", "a faster", Kind::count},
       {"slower", "b faster", Kind::count},
       {"p_speedup", "p", Kind::number}},
      {}};
  const auto n = [](uint64_t value) { return Cell(static_cast<int64_t>(value)); };
  for (const Comparison& c : comparisons)
    table.rows.push_back({c.a, c.b, c.arch, n(c.tasks), c.rate_a, c.rate_b, c.rate_a - c.rate_b,
                          number(c.difference.low), number(c.difference.high), n(c.wins),
                          n(c.losses), n(c.ties), c.p, n(c.solved_both), number(c.speedup_ratio),
                          n(c.faster), n(c.slower), c.p_speedup});
  return table;
}

}  // namespace ptxbench::report
