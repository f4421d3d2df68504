#include "report/dataset.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "store/labels.h"
#include "store/problems.h"

namespace ptxbench::report {
namespace {

bool same_group(const Group& group, const store::TrajectoryKey& key) {
  return group.run == key.run && group.model == key.model && group.arch == key.arch &&
         group.definition == key.definition && group.workload == key.workload &&
         group.prompt == key.prompt;
}

Turn compact(const store::Turn& turn, const Group& group, Dataset& data) {
  Turn t;
  t.index = turn.index;
  t.correct = turn.label == store::kCorrect;
  t.with_arch = t.correct && store::has_tag(turn.tag, store::required_tag(group.arch));
  t.level = level_of(turn, group.arch);
  t.label = data.labels.number(turn.label);
  t.tag = data.tags.number(turn.tag);
  t.reason = data.reasons.number(turn.reason);
  t.speedup = turn.speedup.value_or(std::numeric_limits<double>::quiet_NaN());
  t.input_tokens = turn.input_tokens.value_or(-1);
  t.output_tokens = turn.output_tokens.value_or(-1);
  t.reasoning_tokens = turn.reasoning_tokens.value_or(-1);
  t.token_source = data.token_sources.number(turn.token_source);
  return t;
}

// What the turns themselves leave open.
void look_for_gaps(Dataset& data) {
  store::Problems problems("all sources");
  for (const Trajectory& t : data.trajectories) {
    const Group& group = data.group_of(t);
    const int first = data.turns[t.first].index, last = data.turns[t.first + t.count - 1].index;
    if (first != 0)
      problems.add("no-first-turn", fmt::format("trajectories of run '{}' that do not begin at "
                                                "turn 0",
                                                group.run));
    if (last - first + 1 != static_cast<int>(t.count))
      problems.add("missing-turns",
                   fmt::format("trajectories of run '{}' with a turn left out", group.run));
  }
  for (const Group& group : data.groups) {
    if (store::required_tag(group.arch).empty())
      problems.add("unknown-arch", fmt::format("architecture '{}': which instructions it needs is "
                                               "not known",
                                               group.arch));
    if (group.model.empty())
      problems.add("no-model", fmt::format("run '{}' does not name its model", group.run));
  }
  data.problems.insert(data.problems.end(), problems.list().begin(), problems.list().end());
}

}  // namespace

std::string Group::task() const {
  if (workload_name.starts_with(definition)) return workload_name;
  return definition + " " + (workload_name.empty() ? workload : workload_name);
}

uint32_t Strings::number(const std::string& text) {
  const auto [it, fresh] = index_.emplace(text, static_cast<uint32_t>(list_.size()));
  if (fresh) list_.push_back(text);
  return it->second;
}

Level level_of(const store::Turn& turn, std::string_view arch) {
  if (turn.level) return static_cast<Level>(*turn.level);
  const std::string& label = turn.label;
  if (label == "Extraction error") return extraction;
  if (label == "Compilation error") return syntax;
  if (label == "Runtime error" || label == "Kernel Execution Timeout" ||
      label == "Sanitize Timeout")
    return execution;
  if (label == "Numerical error") return numerics;
  if (label != store::kCorrect) return other;
  if (!store::has_tag(turn.tag, store::required_tag(arch))) return instructions;
  return turn.speedup.value_or(0) >= 1 ? frontier : strategy;
}

Result<Dataset> load(const store::Store& store) {
  Dataset data;
  PB_RETURN_IF_ERROR(store.each_turn([&](const store::TurnRecord& record) -> Result<void> {
    const store::TrajectoryKey& key = record.trajectory;
    const bool new_group = data.groups.empty() || !same_group(data.groups.back(), key);
    if (new_group)
      data.groups.push_back({key.run, key.model, key.arch, key.definition, key.workload,
                             record.workload_name, key.prompt,
                             static_cast<uint32_t>(data.trajectories.size()), 0});
    if (new_group || data.trajectories.back().name != key.name) {
      data.trajectories.push_back({key.name, static_cast<uint32_t>(data.groups.size() - 1),
                                   static_cast<uint32_t>(data.turns.size()), 0});
      ++data.groups.back().count;
    }
    if (!record.turn.families.empty())
      data.families[static_cast<uint32_t>(data.turns.size())] = record.turn.families;
    data.turns.push_back(compact(record.turn, data.groups.back(), data));
    ++data.trajectories.back().count;
    return {};
  }));
  if (data.turns.empty()) return Error{"no-turns", "the sources hold no turns"};
  PB_ASSIGN_OR_RETURN(data.problems, store.problems());
  look_for_gaps(data);
  return data;
}

}  // namespace ptxbench::report
