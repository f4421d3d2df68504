#pragma once
// The verdict: one document per evaluation. docs/verdict.md describes its JSON form, field by
// field.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/causes/causes.h"
#include "bench/compare.h"
#include "bench/performance.h"
#include "plan/run_result.h"
#include "toolchain/compiler.h"

namespace ptxbench::bench {

constexpr int kVerdictVersion = 1;
constexpr const char* kProgramVersion = "0.1.0";

// Where the plan broke.
enum class Level { extraction = 0, syntax, execution, numerics, instructions, strategy, frontier };
const char* name(Level level);

struct Stage {
  std::string
      name;  // "extract", "compile.device", "compile.host", "assemble", "record", "inputs", ...
  double ms = 0;
  bool cached = false;
};

// One table row of the instruction evidence.
struct FamilyEvidence {
  std::string family;
  uint64_t static_count = 0, warps = 0, threads = 0;
  bool required = false;
  // Share of the output's elements that change when the family does nothing; none: not tested.
  std::optional<double> depends = std::nullopt;
  // Instructions of the family in the machine code that ran, as far as control flow can reach them;
  // none: it was not looked at.
  std::optional<uint64_t> machine_sites = std::nullopt;
};

struct Evidence {
  std::string level = "none";  // "none", "static", "executed"
  std::vector<FamilyEvidence> families;
  double task_flop = 0,
         tensor_flop = 0;    // of the workload; executed by the required compute family
  std::string compute_type;  // the type that carried most of it
};

// A second run, at a size that the candidate could not expect.
struct HeldOut {
  std::vector<std::pair<std::string, int64_t>> axes;
  Level level = Level::extraction;
  std::string reason;
};

struct Verdict {
  Level level = Level::extraction;
  std::string reason;   // stable slug
  std::string message;  // one sentence for people
  std::string label;    // published-comparable
  std::string status;   // FlashInfer-Trace
  std::string tag;      // published instruction tag: "H" GMMA and TMA, "G" GMMA only, ... see docs
  std::string definition, workload, device, arch, seed, candidate, candidate_hash;
  std::string tensor_mode, async_mode, schedule;
  bool races = false;       // unordered accesses were looked for
  std::string source_file;  // what findings and diagnostics call the candidate's source
  std::vector<std::pair<std::string, int64_t>> axes;
  bool published_workload = false;
  int sm_count = 0;  // what host code was told; 0: the device profile's own
  Evidence evidence;
  std::optional<Correctness> correctness;  // of the output that decides
  std::vector<Correctness> outputs;        // of all, in definition order
  std::optional<HeldOut> held_out;
  std::optional<Performance> performance;          // none: not timed
  std::optional<SpeedReport> estimate;             // of right candidates: time and its causes
  std::vector<plan::Finding> findings;             // most certain first
  std::vector<toolchain::Diagnostic> diagnostics;  // of the compilers, errors first
  std::vector<plan::KernelStats> kernels;
  std::vector<Stage> stages;
  std::vector<std::string> notes;  // what a reader should know: repaired hazards, disagreements
  std::string feedback;            // what a model gets back
  double total_ms = 0;
};

nlohmann::json to_json(const Verdict& verdict);

}  // namespace ptxbench::bench
