#pragma once
// A store's turns in memory, in columns of small numbers, ordered and grouped for the metrics.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace ptxbench::report {

// Where an answer's plan broke; other: a label that says nothing about the candidate.
enum Level : uint8_t {
  extraction,
  syntax,
  execution,
  numerics,
  instructions,
  strategy,
  frontier,
  other
};
constexpr size_t kLevels = 8;
constexpr std::string_view kLevelNames[kLevels] = {"extraction", "syntax",       "execution",
                                                   "numerics",   "instructions", "strategy",
                                                   "frontier",   "other"};

// All trajectories that tried the same: one run, model, architecture, task, prompt.
struct Group {
  std::string run, model, arch, definition, workload, workload_name, prompt;
  uint32_t first = 0, count = 0;  // trajectories
  std::string task() const;       // for people: definition and size
};

struct Trajectory {
  std::string name;
  uint32_t group = 0;
  uint32_t first = 0, count = 0;  // turns, ascending by index
};

struct Turn {
  int32_t index = 0;
  bool correct = false;
  bool with_arch = false;  // correct, and the architecture's instructions ran
  Level level = other;
  uint32_t label = 0, tag = 0, reason = 0;  // into Dataset::labels, tags, reasons
  double speedup = 0;                       // NaN: not timed
  int64_t input_tokens = -1, output_tokens = -1, reasoning_tokens = -1;  // -1: not known
  uint32_t token_source = 0;  // into Dataset::token_sources
};

// Strings numbered in the order of their first appearance.
class Strings {
 public:
  uint32_t number(const std::string& text);
  const std::vector<std::string>& list() const { return list_; }
  const std::string& operator[](size_t i) const { return list_[i]; }

 private:
  std::vector<std::string> list_;
  std::unordered_map<std::string, uint32_t> index_;
};

struct Dataset {
  std::vector<Group> groups;
  std::vector<Trajectory> trajectories;
  std::vector<Turn> turns;
  Strings labels, tags, reasons, token_sources;
  // Instruction counts by turn, where a verdict gave them.
  std::map<uint32_t, std::map<std::string, store::FamilyCount>> families;
  std::vector<store::Problem> problems;  // of the imports and of the data themselves

  const Group& group_of(const Trajectory& trajectory) const { return groups[trajectory.group]; }
};

// Errors: those of the store; "no-turns".
Result<Dataset> load(const store::Store& store);

// The verdict's level, or what a published label, tag and speed-up amount to: a correct answer is
// at level 4 without the architecture's instructions, 5 with them, 6 if also at least as fast as
// the library.
Level level_of(const store::Turn& turn, std::string_view arch);

}  // namespace ptxbench::report
