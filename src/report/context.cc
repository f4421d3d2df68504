#include "report/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>

#include "report/assets.h"
#include "store/csv.h"
#include "store/labels.h"

namespace ptxbench::report {
namespace {

using Kind = Column::Kind;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using ModelKey = std::array<std::string, 3>;  // model, arch, prompt

std::optional<int> parse_date(const std::string& text) {
  int year = 0;
  unsigned month = 0, day = 0;
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto part = [&](size_t at, size_t length, auto& value) {
    const auto [end, error] = std::from_chars(&text[at], &text[at] + length, value);
    return error == std::errc() && end == &text[at] + length;
  };
  if (!part(0, 4, year) || !part(5, 2, month) || !part(8, 2, day)) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

std::string arch_family(const std::string& arch) {
  const std::string_view tag = store::required_tag(arch);
  return tag == "H" ? "hopper" : tag == "B" ? "blackwell" : arch;
}

bool is_attention(const std::string& definition) {
  return definition.find("mha") != std::string::npos || definition.find("gqa") != std::string::npos;
}

struct TokenSample {
  std::string kind;
  uint64_t known = 0, turns = 0;
  double total = 0;
  std::vector<double> correct, failed;
  std::vector<double> spent, best;  // per trajectory: its tokens, its best speed-up (0: unsolved)
  uint64_t solved = 0;
};

void sample_trajectory(const Dataset& data, const Trajectory& trajectory, TokenSample& sample) {
  double spent = 0, best = 0;
  bool known = true, solved = false;
  for (uint32_t i = 0; i < trajectory.count; ++i) {
    const Turn& turn = data.turns[trajectory.first + i];
    const int64_t tokens = tokens_of(turn);
    ++sample.turns;
    solved |= turn.correct;
    if (turn.correct && turn.speedup > best) best = turn.speedup;
    known &= tokens >= 0;
    if (tokens < 0) continue;
    ++sample.known;
    sample.kind = turn.reasoning_tokens >= 0 ? "reasoning" : "output";
    sample.total += static_cast<double>(tokens);
    spent += static_cast<double>(tokens);
    (turn.correct ? sample.correct : sample.failed).push_back(static_cast<double>(tokens));
  }
  sample.solved += solved;
  if (!known) return;
  sample.spent.push_back(spent);
  sample.best.push_back(best);
}

// Per task, over all runs of the model.
struct TaskResult {
  uint64_t trajectories = 0, correct = 0;
  double best = kNaN;
};

}  // namespace

Result<ReleaseDates> parse_release_dates(std::string_view csv, const std::string& name) {
  store::CsvReader reader(csv);
  std::vector<std::string> row;
  const std::vector<std::string> header = {"kind", "name", "arch", "date", "note"};
  if (!reader.next(row) || row != header)
    return Error{"csv", "expected the columns kind,name,arch,date,note", {name, 1}};
  ReleaseDates dates;
  while (reader.next(row)) {
    const SourceLocation where{name, static_cast<int>(reader.line())};
    if (row.size() != header.size())
      return Error{"csv", fmt::format("expected {} fields, found {}", header.size(), row.size()),
                   where};
    const auto day = parse_date(row[3]);
    if (!day)
      return Error{"csv", fmt::format("'{}' is no date (YYYY-MM-DD)", row[3].substr(0, 20)), where};
    if (row[0] == "model")
      dates.models[row[1]] = *day;
    else if (row[0] == "ptx")
      dates.ptx[row[2]] = *day;
    else if (row[0] == "attention")
      dates.attention[row[2]] = {row[1], *day};
    else
      return Error{"csv",
                   fmt::format("kind '{}' is none of model, ptx, attention", row[0].substr(0, 20)),
                   where};
  }
  return dates;
}

void merge(ReleaseDates& into, const ReleaseDates& more) {
  for (const auto& [name, day] : more.models) into.models[name] = day;
  for (const auto& [arch, day] : more.ptx) into.ptx[arch] = day;
  for (const auto& [arch, library] : more.attention) into.attention[arch] = library;
}

const ReleaseDates& known_release_dates() {
  static const ReleaseDates dates =
      parse_release_dates(assets::release_dates(), "release_dates.csv").take();
  return dates;
}

std::string date_text(int day) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

int64_t tokens_of(const Turn& turn) {
  return turn.reasoning_tokens >= 0 ? turn.reasoning_tokens : turn.output_tokens;
}

Table tokens_table(const Dataset& data) {
  Table table{"tokens",
              "Tokens and performance",
              "Reasoning tokens where the turns have them, else output tokens. The correlation is "
              "Spearman's, between a trajectory's tokens and its best speed-up (0 if it solved "
              "nothing).",
              {{"model", "model"},
               {"arch", "arch"},
               {"prompt", "prompt"},
               {"tokens", "tokens"},
               {"turns", "turns", Kind::count},
               {"turns_with_tokens", "with tokens", Kind::count},
               {"mean", "mean", Kind::number},
               {"median_correct", "median, correct", Kind::number},
               {"median_failed", "median, failed", Kind::number},
               {"per_solved_trajectory", "per solved trajectory", Kind::number},
               {"rank_correlation", "rank correlation", Kind::number}},
              {}};
  std::map<ModelKey, TokenSample> samples;
  for (const Trajectory& trajectory : data.trajectories) {
    const Group& g = data.group_of(trajectory);
    sample_trajectory(data, trajectory, samples[{g.model, g.arch, g.prompt}]);
  }
  for (const auto& [key, s] : samples)
    table.rows.push_back(
        {key[0], key[1], key[2], s.kind, static_cast<int64_t>(s.turns),
         static_cast<int64_t>(s.known),
         number(s.known ? s.total / static_cast<double>(s.known) : kNaN), number(median(s.correct)),
         number(median(s.failed)),
         number(s.solved && s.known ? s.total / static_cast<double>(s.solved) : kNaN),
         number(rank_correlation(s.spent, s.best))});
  return table;
}

Table dates_table(const Dataset& data, const std::vector<Rates>& rates, const ReleaseDates& dates,
                  std::vector<std::string>* undated) {
  Table table{
      "dates",
      "Results and release dates, at 8 turns",
      "Days from the release of the architecture's PTX, and of FlashAttention for it, to the "
      "release of the model: what a model can have read about before it was made.",
      {{"model", "model"},
       {"arch", "arch"},
       {"definition", "definition"},
       {"run", "run"},
       {"model_date", "released"},
       {"days_after_ptx", "days after PTX", Kind::count},
       {"attention_library", "library"},
       {"days_after_attention", "days after it", Kind::count},
       {"correctness_rate", "rate", Kind::ratio},
       {"correct_with_arch_rate", "with instr.", Kind::ratio},
       {"best_speedup", "best speed-up", Kind::number}},
      {}};
  std::set<std::string> missing;
  for (const Rates& r : rates) {
    if (r.turns != kTurnLimits.back()) continue;
    const Group& g = data.groups[r.group];
    const auto model = dates.models.find(g.model);
    if (model == dates.models.end()) {
      missing.insert(g.model);
      continue;
    }
    const auto ptx = dates.ptx.find(arch_family(g.arch));
    const auto library = is_attention(g.definition) ? dates.attention.find(arch_family(g.arch))
                                                    : dates.attention.end();
    const bool has_ptx = ptx != dates.ptx.end(), has_library = library != dates.attention.end();
    const double n = static_cast<double>(r.trajectories);
    table.rows.push_back(
        {g.model, g.arch, g.definition, g.run, date_text(model->second),
         known(has_ptx, has_ptx ? model->second - ptx->second : 0),
         has_library ? library->second.name : std::string(),
         known(has_library, has_library ? model->second - library->second.day : 0),
         static_cast<double>(r.correct) / n,
         number(r.arch_known ? static_cast<double>(r.correct_with_arch) / n : kNaN),
         number(r.best_speedup)});
  }
  if (undated) undated->assign(missing.begin(), missing.end());
  return table;
}

std::string family_of(const std::string& definition) {
  std::string family;
  for (size_t at = 0; at <= definition.size();) {
    const size_t end = std::min(definition.find('_', at), definition.size());
    const std::string part = definition.substr(at, end - at);
    // The first part stays whatever it holds: "fp8_mha" is not "mha".
    const bool variant = part == "causal" || part.find_first_of("0123456789") != std::string::npos;
    if (at == 0 || !variant) {
      if (at > 0) family += '_';
      family += part;
    }
    at = end + 1;
  }
  return family;
}

Table sizes_table(const Dataset& data, const std::vector<Rates>& rates) {
  Table table{
      "sizes",
      "Across sizes and variants, at 8 turns",
      "Tasks of one family (same operation; other sizes, heads or masks), trajectories of all "
      "runs pooled per task. The spread is the difference between the best and the worst "
      "task's rate.",
      {{"model", "model"},
       {"arch", "arch"},
       {"prompt", "prompt"},
       {"family", "family"},
       {"tasks", "tasks", Kind::count},
       {"solved", "solved", Kind::count},
       {"mean_rate", "mean rate", Kind::ratio},
       {"worst_rate", "worst", Kind::ratio},
       {"worst_task", "task"},
       {"best_rate", "best", Kind::ratio},
       {"best_task", "task"},
       {"spread", "spread", Kind::ratio},
       {"worst_speedup", "slowest solved", Kind::number},
       {"best_speedup", "fastest", Kind::number}},
      {}};
  std::map<std::pair<ModelKey, std::string>, std::map<std::string, TaskResult>> families;
  for (const Rates& r : rates) {
    if (r.turns != kTurnLimits.back()) continue;
    const Group& g = data.groups[r.group];
    TaskResult& task = families[{{g.model, g.arch, g.prompt}, family_of(g.definition)}][g.task()];
    task.trajectories += r.trajectories;
    task.correct += r.correct;
    if (r.correct) task.best = std::fmax(task.best, r.best_speedup);
  }
  for (const auto& [key, tasks] : families) {
    std::vector<double> values, speedups;
    std::vector<const std::string*> names;
    int64_t solved = 0;
    for (const auto& [name, task] : tasks) {
      values.push_back(static_cast<double>(task.correct) / static_cast<double>(task.trajectories));
      names.push_back(&name);
      solved += task.correct > 0;
      if (task.best > 0) speedups.push_back(task.best);
    }
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    std::sort(speedups.begin(), speedups.end());
    const auto& [model, family] = key;
    table.rows.push_back({model[0], model[1], model[2], family, static_cast<int64_t>(tasks.size()),
                          solved, mean(values), *low,
                          *names[static_cast<size_t>(low - values.begin())], *high,
                          *names[static_cast<size_t>(high - values.begin())], *high - *low,
                          number(speedups.empty() ? kNaN : speedups.front()),
                          number(speedups.empty() ? kNaN : speedups.back())});
  }
  return table;
}

}  // namespace ptxbench::report
