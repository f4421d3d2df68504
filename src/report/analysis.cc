#include "report/analysis.h"

#include <fmt/format.h>

#include <cassert>
#include <set>

#include "report/assets.h"
#include "store/csv.h"

namespace ptxbench::report {
namespace {

using Kind = Column::Kind;

Table problems_table(const std::vector<store::Problem>& problems) {
  Table table{"problems",
              "What to know about the sources",
              "Everything that was not taken as it stands, with how often and where first.",
              {{"kind", "kind"},
               {"detail", "what"},
               {"count", "count", Kind::count},
               {"source", "source"},
               {"places", "where"}},
              {}};
  for (const store::Problem& p : problems)
    table.rows.push_back({p.kind, p.detail, static_cast<int64_t>(p.count), p.source, p.places});
  return table;
}

// Correct turns whose tag list is empty: whether the instructions ran is not known; they count as
// not.
void add_unknown_tags(const Dataset& data, std::vector<store::Problem>& problems) {
  std::map<std::string, uint64_t> untagged, untimed;
  for (const Trajectory& t : data.trajectories)
    for (uint32_t i = 0; i < t.count; ++i) {
      const Turn& turn = data.turns[t.first + i];
      if (!turn.correct) continue;
      const std::string& run = data.group_of(t).run;
      if (data.tags[turn.tag].empty()) ++untagged[run];
      if (!(turn.speedup == turn.speedup)) ++untimed[run];
    }
  for (const auto& [run, count] : untagged)
    problems.push_back({"no-tag", "all sources",
                        fmt::format("correct turns of run '{}' without an instruction tag: counted "
                                    "as without the architecture's instructions",
                                    run),
                        count, ""});
  for (const auto& [run, count] : untimed)
    problems.push_back({"not-timed", "all sources",
                        fmt::format("correct turns of run '{}' without a speed-up", run), count,
                        ""});
}

// Published rows whose instruction count rests on evidence that is not in the per-turn file.
void add_published_exceptions(const Dataset& data, const std::vector<Rates>& rates,
                              std::vector<store::Problem>& problems) {
  store::CsvReader reader(assets::published_exceptions());
  std::vector<std::string> row;
  reader.next(row);  // the header
  while (reader.next(row))
    for (const Rates& r : rates) {
      const Group& g = data.groups[r.group];
      if (g.run != row[0] || g.definition != row[1] || std::to_string(r.turns) != row[2] ||
          std::to_string(r.trajectories) != row[4] || std::to_string(r.correct_with_arch) == row[3])
        continue;
      problems.push_back(
          {"published-differs", "examples/published/rates.csv",
           fmt::format("run '{}' at {} turns: {} of {} trajectories with the "
                       "architecture's instructions; published with other evidence: {}",
                       g.run, r.turns, r.correct_with_arch, r.trajectories, row[3]),
           1, ""});
    }
}

Cell tokens(int64_t value) { return known(value >= 0, value); }

}  // namespace

const Table& Analysis::table(std::string_view name) const {
  for (const Table& table : tables)
    if (table.name == name) return table;
  assert(!"no table of this name");
  return tables.front();
}

Result<Analysis> analyse(const Dataset& data, const AnalysisOptions& options) {
  Analysis a;
  a.rates = all_rates(data);
  a.progress = all_progress(data);
  a.models = model_summaries(data, a.rates);
  if (options.compare) {
    PB_ASSIGN_OR_RETURN(a.comparisons, compare_named(data, a.rates, options.compare->first,
                                                     options.compare->second));
  }
  for (Comparison& comparison : compare_models(data, a.rates))
    a.comparisons.push_back(std::move(comparison));
  std::vector<store::Problem> problems = data.problems;
  add_unknown_tags(data, problems);
  add_published_exceptions(data, a.rates, problems);
  std::vector<std::string> undated;
  Table dates = dates_table(data, a.rates, options.dates, &undated);
  for (const std::string& model : undated)
    problems.push_back(
        {"no-date", "release dates",
         fmt::format("model '{}' has no release date: left out of the table of dates", model), 1,
         ""});
  a.tables = {models_table(a.models),
              rates_table(data, a.rates),
              statistics_table(data, a.rates),
              levels_table(data, a.progress),
              transitions_table(data, a.progress),
              repairs_table(data, a.progress),
              tokens_table(data),
              sizes_table(data, a.rates),
              std::move(dates),
              comparisons_table(a.comparisons),
              problems_table(problems)};
  return a;
}

Table turns_table(const Dataset& data) {
  Table table{"turns",
              "All turns",
              "",
              {{"model", "model"},
               {"arch", "arch"},
               {"definition", "definition"},
               {"workload", "workload"},
               {"workload_name", "workload_name"},
               {"run", "run"},
               {"prompt", "prompt"},
               {"trajectory_id", "trajectory"},
               {"turn", "turn", Kind::count},
               {"correctness", "label"},
               {"speedup", "speed-up", Kind::number},
               {"level", "level", Kind::count},
               {"reason", "reason"},
               {"arch_tag", "tag"},
               {"input_tokens", "input tokens", Kind::count},
               {"output_tokens", "output tokens", Kind::count},
               {"reasoning_tokens", "reasoning tokens", Kind::count},
               {"reasoning_token_source", "token source"}},
              {}};
  std::set<std::string> families;
  for (const auto& [turn, counts] : data.families)
    for (const auto& [family, count] : counts) families.insert(family);
  for (const std::string& family : families)
    for (const char* kind : {"static", "warps", "threads"})
      table.columns.push_back({family + ":" + kind, family + " " + kind, Kind::count});
  for (const Trajectory& t : data.trajectories) {
    const Group& g = data.group_of(t);
    for (uint32_t i = t.first; i < t.first + t.count; ++i) {
      const Turn& turn = data.turns[i];
      std::vector<Cell> row = {g.model,
                               g.arch,
                               g.definition,
                               g.workload,
                               g.workload_name,
                               g.run,
                               g.prompt,
                               t.name,
                               int64_t{turn.index},
                               data.labels[turn.label],
                               number(turn.speedup),
                               known(turn.level != other, turn.level),
                               data.reasons[turn.reason],
                               data.tags[turn.tag],
                               tokens(turn.input_tokens),
                               tokens(turn.output_tokens),
                               tokens(turn.reasoning_tokens),
                               data.token_sources[turn.token_source]};
      const auto counts = data.families.find(i);
      for (const std::string& family : families) {
        const bool has = counts != data.families.end() && counts->second.contains(family);
        const store::FamilyCount count = has ? counts->second.at(family) : store::FamilyCount{};
        for (const uint64_t value : {count.sites, count.warps, count.threads})
          row.push_back(known(has, static_cast<int64_t>(value)));
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace ptxbench::report
