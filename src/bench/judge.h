#pragma once
// The rules that turn what happened into level, reason, label and status. One place, no side
// effects.

#include "bench/task.h"
#include "bench/verdict.h"
#include "cudart/record.h"
#include "plan/run_result.h"
#include "toolchain/compiler.h"

namespace ptxbench::bench {

void judge_extraction(const std::string& reason, const std::string& message, Verdict& verdict);
void judge_compile(const toolchain::CompiledCandidate& compiled, Verdict& verdict);
void judge_record(const cudart::RecordOutcome& outcome, Verdict& verdict);

// A replay that did not complete.
void judge_stopped_run(const plan::RunResult& run, Verdict& verdict);

// A replay that completed: findings, verdict.correctness and verdict.evidence are filled in.
// After the ghost replays: level 4 where an output does not depend on a required instruction.
void judge_dependence(Verdict& verdict);
// Takes over the level and reason of a run at a size that the candidate could not expect.
void judge_held_out(const Verdict& held_out, Verdict& verdict);

void judge_completed_run(const Task& task, Verdict& verdict);

// The reason slug of a finding: "memory-fault", "race", "deadlock", "protocol-breach", ...
std::string reason_of_finding(const std::string& kind);

}  // namespace ptxbench::bench
