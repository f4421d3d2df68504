#pragma once
// What a run store holds: one record per turn, and what was odd about where it came from.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench::store {

// Which trajectory a turn belongs to. All seven parts together name it; a run may hold several
// models, tasks and prompts.
struct TrajectoryKey {
  std::string run, model, arch, definition, workload, prompt, name;
  auto operator<=>(const TrajectoryKey&) const = default;
};

struct FamilyCount {
  uint64_t sites = 0, warps = 0, threads = 0;  // in the text; executed by warps and by threads
  bool operator==(const FamilyCount&) const = default;
};

struct Turn {
  int index = 0;             // within its trajectory, from 0
  std::string label;         // published label, as written: "Correct", "Compilation error", ...
  std::optional<int> level;  // of the verdict, 0 to 6; published rows have none
  std::string reason;        // of the verdict
  std::optional<double> speedup;  // baseline time / candidate time; none: not timed
  std::string tag;                // instruction tag: "A", "H", "B", joined by ", ", or "G"
  std::optional<int64_t> input_tokens, output_tokens, reasoning_tokens;
  std::string token_source;  // the usage field that the counts were read from
  std::map<std::string, FamilyCount> families;
  bool operator==(const Turn&) const = default;
};

struct TurnRecord {
  TrajectoryKey trajectory;
  std::string workload_name;  // for people: "gemm_n7168_k5120_M8192"
  Turn turn;
  // Texts by kind: "source", "verdict", and what agents keep ("request", "response", ...).
  std::map<std::string, std::string> documents;
};

// Something in a source that a reader of its figures must know.
struct Problem {
  std::string kind;    // stable slug: "odd-label", "conflicting-duplicate", ...
  std::string source;  // the file
  std::string detail;  // what exactly, one line
  uint64_t count = 0;  // rows or files concerned
  std::string places;  // the first few lines, "line 3, 7, 12, ..."
  bool operator==(const Problem&) const = default;
};

}  // namespace ptxbench::store
