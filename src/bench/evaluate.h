#pragma once
// The main job: one candidate, one workload, one verdict. extract -> compile -> record -> replay ->
// compare -> evidence -> verdict. What the candidate did wrong is in the verdict; an Error is the
// harness's own failure (no compiler, no sandbox, an instruction the device can't run) and says
// nothing about the candidate.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "bench/extract.h"
#include "bench/inputs.h"
#include "bench/task.h"
#include "bench/verdict.h"
#include "cudart/record.h"
#include "device/device.h"
#include "toolchain/compiler.h"

namespace ptxbench::bench {

// Inputs and right outputs of one seed, kept from the first evaluation for later ones of the same
// task, size and seed.
struct KeptWork {
  struct Block {
    size_t output = 0;
    int64_t first_row = 0, count = 0;
    std::vector<double> values, noise;
  };
  std::optional<Seed> seed;
  std::vector<Tensor> inputs;
  std::vector<std::string> hashes;  // of the inputs
  std::vector<Block> blocks;        // empty: not computed yet
};

struct EvalRequest {
  Extraction extraction;
  double extract_ms = 0;
  Task task;
  std::string workload;  // uuid, or "" for sizes given by the user
  AxisValues axes;       // resolved
  InputSources inputs;   // of the workload: what does not come from the seed
  bool published_workload = false;
  int sm_count = 0;
  std::string arch = "sm_90a";
  std::string device_profile = "h200";
  plan::TensorMode tensor = plan::TensorMode::hw;
  plan::AsyncMode async = plan::AsyncMode::late;
  int threads = 0;  // 0 = all cores
  std::string schedule = "inorder";
  bool races = true;         // look for unordered accesses in the replay, not in ghost replays
  std::optional<Seed> seed;  // none: drawn after the candidate is frozen
  double timeout_s = 60;     // of the replay
  bool held_out =
      true;  // a candidate that reaches level 5 at a size of its tests also runs at one nearby
  bool dependence = true;  // ghost replays: whether the output depends on the instructions
  bool estimate = true;    // level 5: how long it would take on a GPU, and why
  bool trust = false;
  std::shared_ptr<KeptWork> kept;  // null: nothing is kept
  std::filesystem::path cache_dir;
  std::function<void(const std::string& what, double fraction)> progress;  // may be empty
};

// The rooms below, replaceable in tests.
struct Services {
  std::function<Result<toolchain::CompiledCandidate>(const toolchain::CompileRequest&)> compile;
  std::function<Result<cudart::RecordOutcome>(const cudart::RecordRequest&)> record;
  device::Device* device = nullptr;
};
Services real_services(device::Device& device);

Result<Verdict> evaluate(const EvalRequest& request, const Services& services);

// Compile and record only. `verdict` is set instead of the plan where the candidate failed on the
// way.
struct Recording {
  std::optional<Verdict> verdict;
  plan::LaunchPlan plan;
  std::vector<Stage> stages;
  std::vector<toolchain::Diagnostic> diagnostics;
  std::vector<toolchain::KernelResources> resources;  // what the assembler said of each kernel
};
Result<Recording> compile_and_record(const EvalRequest& request, const Services& services);

}  // namespace ptxbench::bench
