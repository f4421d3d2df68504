#pragma once
// What one warp's execution of a matrix instruction computes, from the instruction alone: FLOP for
// devices that count instructions but interpret none.

#include <string>

#include "device/instrument_plan.h"
#include "plan/run_result.h"
#include "ptx/ast.h"

namespace ptxbench::device {

struct TensorWork {
  double flop = 0;    // of one warp, multiply and add counted separately; 0: no matrix instruction
  std::string types;  // "bf16.bf16.f32": A, B, D, as the emulator's ledger names them
};
TensorWork tensor_work(const ptx::Instruction& instruction);

// Adds to the families of `result` what the counters say, with FLOP per family and, per launched
// kernel, by type. `original` is the plan before it was instrumented.
Result<void> add_counts(const plan::LaunchPlan& original, const InstrumentedPlan& instrumented,
                        std::span<const uint8_t> counters, plan::RunResult* result);

}  // namespace ptxbench::device
