#pragma once
// Sources into a store: per-turn CSV files (also gzipped), verdicts (JSON files and folders of
// them), other run stores. Whatever a source holds that cannot be taken as it is becomes a Problem.
// Importing a source again changes nothing.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace ptxbench::store {

struct ImportSummary {
  uint64_t read = 0;       // turns found
  uint64_t fresh = 0;      // added to the store
  uint64_t same = 0;       // there already with the same contents
  uint64_t conflicts = 0;  // there already with other contents, which stay
  uint64_t rejected = 0;   // rows or files that are no turn
  std::vector<Problem> problems;
  void operator+=(const ImportSummary& other);
};

// Decides by content what the path is. Errors: "not-found", "usage" (nothing that can be imported),
// "csv" (columns missing), "json", "not-a-store", "corrupt", "version", "too-large", "io".
Result<ImportSummary> import_source(Store& store, const std::filesystem::path& path);

// The required columns of a per-turn CSV are definition, trajectory_id, turn and correctness.
// Others that are understood: model, arch, workload, workload_name, run, prompt, speedup, arch_tag,
// level, reason, input_tokens, output_tokens, reasoning_tokens (and reasoning_token_source), and
// per instruction family FAMILY:static, FAMILY:warps, FAMILY:threads.
Result<ImportSummary> import_csv(Store& store, std::string_view text, const std::string& name);

// One verdict of `ptxbench eval --json`. `run`, `trajectory` and `turn` name it where the document
// itself has no member "trajectory".
struct VerdictPlace {
  std::string run, trajectory;
  int turn = 0;
};
Result<ImportSummary> import_verdict(Store& store, std::string_view text, const std::string& name,
                                     const VerdictPlace& place);

// "attempt/turn_3.json" is turn 3 of trajectory "attempt"; other names are turn 0 of their own.
VerdictPlace place_of(const std::filesystem::path& relative, const std::string& run);

}  // namespace ptxbench::store
