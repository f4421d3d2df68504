#pragma once
// What happens from turn to turn: where answers break, how that changes, which errors are repaired.

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "report/dataset.h"
#include "report/table.h"

namespace ptxbench::report {

constexpr int kTurnsShown = 8;  // later turns are in the per-turn table only

// Counts of one group; those of several add up.
struct GroupProgress {
  std::array<std::array<uint32_t, kLevels>, kTurnsShown> levels{};
  // (turn, level there, level at the next turn) -> trajectories; adjacent turns only.
  std::map<std::tuple<int, Level, Level>, uint32_t> transitions;
  struct Repair {
    uint32_t failed = 0;    // turns that failed so and were followed by another turn
    uint32_t repaired = 0;  // of these: the next turn is correct
    uint32_t advanced = 0;  // the next turn broke at a later level, or is correct
    uint32_t repeated = 0;  // the next turn has the same label
    uint32_t later = 0;     // some later turn of the trajectory is correct
  };
  std::map<uint32_t, Repair> repairs;  // by label
};

std::vector<GroupProgress> all_progress(const Dataset& data);

Table levels_table(const Dataset& data, const std::vector<GroupProgress>& progress);
Table transitions_table(const Dataset& data, const std::vector<GroupProgress>& progress);
Table repairs_table(const Dataset& data, const std::vector<GroupProgress>& progress);

}  // namespace ptxbench::report
