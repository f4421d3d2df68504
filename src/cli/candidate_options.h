#pragma once
// What eval and record have in common: which candidate, which task at which size, for which device.

#include <optional>
#include <string>

#include "base/result.h"
#include "bench/evaluate.h"

namespace CLI {
class App;
}

namespace ptxbench::cli {

struct CandidateOptions {
  std::string file, task, tasks_folder, workload, axes, arch = "sm_90a", device = "emu", json;
  std::string from_trace;  // a FlashInfer trace: task, sizes, architecture and seed
  bool trust = false, quiet = false;
};

void add_candidate_options(CLI::App& command, CandidateOptions& options);

// Fills what the trace says into the options that the user left open. Errors: "usage", "not-found".
Result<std::optional<bench::Seed>> apply_trace(CandidateOptions& options);

// Reads the candidate and the task and settles the size; tensor mode and timeout get the defaults
// for that size. Errors are for the user ("usage", "not-found", "bad-task", ...).
Result<bench::EvalRequest> make_request(const CandidateOptions& options);

// compile_and_record() on the emulator's device, with progress on stderr unless the options say
// --quiet.
Result<bench::Recording> record_with_progress(const CandidateOptions& options,
                                              bench::EvalRequest& request);

// The number of the GPU that "cuda" or "cuda:N" means.
std::optional<int> gpu_index(const std::string& device);

// "emu" or "emu:PROFILE" to the profile; errors "usage" and "unsupported".
Result<std::string> parse_device(const std::string& device);

}  // namespace ptxbench::cli
