#include "report/progress.h"

#include <fmt/format.h>

#include <limits>

namespace ptxbench::report {
namespace {

using Kind = Column::Kind;

void follow(const Dataset& data, const Trajectory& trajectory, GroupProgress& progress) {
  bool later_correct = false;
  for (uint32_t i = trajectory.count; i-- > 0;) {
    const Turn& turn = data.turns[trajectory.first + i];
    if (turn.index < kTurnsShown) ++progress.levels[turn.index][turn.level];
    if (i + 1 < trajectory.count) {
      const Turn& next = data.turns[trajectory.first + i + 1];
      const bool adjacent = next.index == turn.index + 1;
      if (adjacent && next.index < kTurnsShown)
        ++progress.transitions[{turn.index, turn.level, next.level}];
      if (adjacent && !turn.correct) {
        GroupProgress::Repair& repair = progress.repairs[turn.label];
        ++repair.failed;
        repair.repaired += next.correct;
        repair.advanced +=
            next.correct || (turn.level != other && next.level != other && next.level > turn.level);
        repair.repeated += next.label == turn.label;
        repair.later += later_correct;
      }
    }
    later_correct |= turn.correct;
  }
}

// Per model, architecture and prompt.
using ModelKey = std::array<std::string, 3>;

template <class F>
std::map<ModelKey, GroupProgress> by_model(const Dataset& data,
                                           const std::vector<GroupProgress>& progress, F add) {
  std::map<ModelKey, GroupProgress> models;
  for (size_t i = 0; i < progress.size(); ++i) {
    const Group& g = data.groups[i];
    add(models[{g.model, g.arch, g.prompt}], progress[i]);
  }
  return models;
}

std::vector<Column> with_model(std::vector<Column> columns) {
  const std::vector<Column> model = {{"model", "model"}, {"arch", "arch"}, {"prompt", "prompt"}};
  columns.insert(columns.begin(), model.begin(), model.end());
  return columns;
}

Cell cell(uint32_t value) { return int64_t{value}; }

Cell share(uint32_t part, uint32_t whole) {
  return number(whole ? static_cast<double>(part) / whole
                      : std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

std::vector<GroupProgress> all_progress(const Dataset& data) {
  std::vector<GroupProgress> progress(data.groups.size());
  for (const Trajectory& trajectory : data.trajectories)
    follow(data, trajectory, progress[trajectory.group]);
  return progress;
}

Table levels_table(const Dataset& data, const std::vector<GroupProgress>& progress) {
  Table table{
      "levels",
      "Where answers break, per turn",
      "Levels of verdicts; for published rows what label, instruction tag and speed-up amount "
      "to. 'other': labels that say nothing about the candidate.",
      with_model({{"turn", "turn", Kind::count},
                  {"level", "level"},
                  {"count", "turns", Kind::count},
                  {"share", "share", Kind::ratio}}),
      {}};
  const auto models = by_model(data, progress, [](GroupProgress& sum, const GroupProgress& one) {
    for (int t = 0; t < kTurnsShown; ++t)
      for (size_t l = 0; l < kLevels; ++l) sum.levels[t][l] += one.levels[t][l];
  });
  for (const auto& [key, sum] : models)
    for (int t = 0; t < kTurnsShown; ++t) {
      uint32_t whole = 0;
      for (const uint32_t part : sum.levels[t]) whole += part;
      for (size_t l = 0; whole && l < kLevels; ++l)
        table.rows.push_back({key[0], key[1], key[2], int64_t{t}, std::string(kLevelNames[l]),
                              cell(sum.levels[t][l]), share(sum.levels[t][l], whole)});
    }
  return table;
}

Table transitions_table(const Dataset& data, const std::vector<GroupProgress>& progress) {
  Table table{"transitions",
              "From turn to turn",
              "Trajectories that went from one level to another between adjacent turns.",
              with_model({{"turn", "turn", Kind::count},
                          {"from", "from"},
                          {"to", "to"},
                          {"count", "trajectories", Kind::count}}),
              {}};
  const auto models = by_model(data, progress, [](GroupProgress& sum, const GroupProgress& one) {
    for (const auto& [step, count] : one.transitions) sum.transitions[step] += count;
  });
  for (const auto& [key, sum] : models)
    for (const auto& [step, count] : sum.transitions) {
      const auto& [turn, from, to] = step;
      table.rows.push_back({key[0], key[1], key[2], int64_t{turn}, std::string(kLevelNames[from]),
                            std::string(kLevelNames[to]), cell(count)});
    }
  return table;
}

Table repairs_table(const Dataset& data, const std::vector<GroupProgress>& progress) {
  Table table{
      "repairs",
      "Repairs per error kind",
      "Of the failed turns that another turn followed: the next one is correct; it broke later "
      "or is correct; it has the same label; any later one is correct.",
      with_model({{"label", "error"},
                  {"failed", "failed turns", Kind::count},
                  {"repaired", "repaired next", Kind::ratio},
                  {"advanced", "got further", Kind::ratio},
                  {"repeated", "same again", Kind::ratio},
                  {"repaired_later", "repaired later", Kind::ratio}}),
      {}};
  const auto models = by_model(data, progress, [](GroupProgress& sum, const GroupProgress& one) {
    for (const auto& [label, repair] : one.repairs) {
      GroupProgress::Repair& to = sum.repairs[label];
      to.failed += repair.failed;
      to.repaired += repair.repaired;
      to.advanced += repair.advanced;
      to.repeated += repair.repeated;
      to.later += repair.later;
    }
  });
  for (const auto& [key, sum] : models)
    for (const auto& [label, r] : sum.repairs)
      table.rows.push_back({key[0], key[1], key[2], data.labels[label], cell(r.failed),
                            share(r.repaired, r.failed), share(r.advanced, r.failed),
                            share(r.repeated, r.failed), share(r.later, r.failed)});
  return table;
}

}  // namespace ptxbench::report
