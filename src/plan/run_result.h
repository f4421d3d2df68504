#pragma once
// What a replay of a launch plan reports: findings with their certainty, what ran how often, and
// how the replay ended. Filled by the executors (src/emu, src/device), read by the evaluator.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plan/kernel_costs.h"

namespace ptxbench::plan {

// fatal: certain to be wrong on silicon. latent: violates the ISA's rules, a given chip may hide
// it. repaired: the assembler mends it. advice: no rule broken, costs speed.
enum class HazardClass : uint8_t { fatal, latent, repaired, advice };

struct Finding {
  std::string kind;  // stable slug: "out-of-bounds", "deadlock", "async-early-read", ...
  HazardClass hazard = HazardClass::fatal;
  std::string kernel;
  std::string message;  // plain-language cause
  std::string hint;
  std::string file;  // CUDA source (innermost .loc)
  int line = 0;
  std::vector<std::pair<std::string, int>> inlined_at;  // outwards, file and line
  int ptx_line = 0;
  std::string ptx;  // text of the instruction
  // Of a race: where the access lies that this one conflicts with; 0: no other.
  std::string other_file;
  int other_line = 0, other_ptx_line = 0;
  std::array<uint32_t, 3> cta{};
  int warp = -1;
  uint32_t lanes = 0;
  uint64_t address = 0;
  std::string symbol;  // what the address belongs to: "C[12,7]"-like or variable + offset
  uint64_t count = 1;  // same kind at the same instruction (unwritten memory: same line and buffer)
};

// How often an instruction family ran. warps: warp-level executions with at least one active lane;
// threads: predicate-true thread executions; static_count: sites in the kernels that were launched.
struct FamilyCount {
  std::string family;  // "wgmma.mma_async", "cp.async.bulk.tensor.load", "mbarrier.try_wait", ...
  uint64_t static_count = 0, warps = 0, threads = 0;
  double tensor_flop = 0;  // matrix multiplications: multiply and add counted separately
};

struct KernelStats {
  std::string kernel;
  uint64_t launches = 0, ctas = 0, warp_instructions = 0, thread_instructions = 0;
  double tensor_flop = 0;  // multiply and add counted separately
  std::vector<std::pair<std::string, double>> tensor_flop_by_type;  // e.g. {"bf16.bf16.f32", 6e11}
  uint64_t global_load_bytes = 0, global_store_bytes = 0;           // by generic loads/stores
  uint64_t bulk_load_bytes = 0, bulk_store_bytes = 0;               // by TMA and bulk copies
  uint64_t shared_load_bytes = 0, shared_store_bytes = 0;
  int registers = 0;  // emulator: live 32-bit slots after allocation
};

enum class RunStatus : uint8_t {
  completed,  // every step ran (there may be findings)
  fault,      // stopped by a fatal finding
  deadlock,
  step_budget,  // instruction budget used up
  wall_budget,  // time budget used up
  unsupported,  // infrastructure: something this device cannot do; message names it
};

struct RunResult {
  RunStatus status = RunStatus::completed;
  std::string message;
  std::vector<Finding> findings;
  std::vector<FamilyCount> families;
  std::vector<KernelStats> kernels;
  std::vector<LaunchCosts> costs;  // one for each launch, if RunOptions::costs asks for them
  double wall_ms = 0;
};

enum class TensorMode : uint8_t { hw, f32, fast };
enum class AsyncMode : uint8_t { late, eager };

// A ghost replay leaves out what one kind of instruction computes. Output that does not change
// shows that nothing depended on it, however often it was executed.
enum class Ghost {
  none,
  matrix,      // matrix instructions add nothing to their accumulators
  tensor_load  // tensor copies into shared memory bring zeros
};

struct RunOptions {
  TensorMode tensor = TensorMode::hw;
  AsyncMode async = AsyncMode::late;
  int threads = 0;                   // 0 = all cores
  uint64_t step_budget = 0;          // warp instructions over the whole plan; 0 = none
  double wall_budget_s = 0;          // 0 = none
  std::string schedule = "inorder";  // or "random:SEED"
  Ghost ghost = Ghost::none;
  bool races = false;  // look for accesses that nothing orders; kernels then run on one host thread
  CostRequest costs;   // with `collect`, launches run on one thread
  std::function<void(const std::string& what, double fraction)> progress;  // may be empty
  std::function<void(const std::string& text)> print;  // device printf; empty: discarded
};

}  // namespace ptxbench::plan
