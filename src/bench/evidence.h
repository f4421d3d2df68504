#pragma once
// Which instructions a candidate ran, and whether they carried the task.

#include <string>

#include "bench/task.h"
#include "bench/verdict.h"
#include "plan/run_result.h"

namespace ptxbench::bench {

// The ledger as evidence. Families that the task requires are listed even where they never occur.
Evidence collect_evidence(const Task& task, const std::string& arch, double task_flop,
                          const plan::RunResult& run);

struct EvidenceDecision {
  bool ok = true;
  std::string reason;  // "instructions-absent", "instructions-not-executed", "insufficient-flop",
                       // "wrong-compute-type"
  std::string message;
};
EvidenceDecision decide_evidence(const Task& task, const std::string& arch,
                                 const Evidence& evidence);

// Published tag: "A" Ampere-class (mma.sync, ldmatrix, cp.async), "H" Hopper (wgmma, tensor
// copies), "B" Blackwell (tcgen05), joined by ", "; "G" generic code only.
std::string published_tag(const Evidence& evidence);

}  // namespace ptxbench::bench
