#pragma once
// How far threads agree: for each instruction and each basic block, the size of the aligned group
// of threads within which the result, or whether it runs, is the same.
//
// A level L stands for groups of 2^L threads with consecutive %tid.x: 0 = each thread may differ, 5
// = the same in a warp, 7 = in a warpgroup, kUniform = in the whole CTA. Values start from special
// registers and meet by their minimum; comparisons, shifts and masks of %tid.x with constants are
// understood (tid < 128 agrees in groups of 128). What memory holds is taken to agree as far as its
// address does, %tid.y and %tid.z to agree within a warp, and a branch that only leaves the
// function to take no part: the analysis is for "possible" hazards and errs towards silence.

#include <cstdint>
#include <vector>

#include "ptx/control_flow.h"

namespace ptxbench::ptx {

class Uniformity {
 public:
  static constexpr uint8_t kWarp = 5, kWarpgroup = 7, kUniform = 31;
  // Functions whose blocks times registers exceed 50 million are taken to be uniform throughout.
  explicit Uniformity(const ControlFlow& flow);

  uint8_t of_block(uint32_t block) const { return blocks_[block]; }
  // Who executes the instruction: its block and its guard.
  uint8_t of_instruction(uint32_t instruction) const { return executed_[instruction]; }
  // What the instruction writes.
  uint8_t of_result(uint32_t instruction) const { return results_[instruction]; }

 private:
  struct Value {
    uint8_t level = kUniform;
    bool linear = false;  // %tid.x >> level, give or take what agrees
    bool operator==(const Value&) const = default;
  };
  using State = std::vector<Value>;  // by register

  static void meet(State& state, const State& other);
  void propagate();
  State entry_state(uint32_t block, const std::vector<State>& out) const;
  void visit(uint32_t instruction, uint8_t control, State& state);
  Value result(const Instruction& instruction, const State& state) const;
  Value of(const Operand& operand, const State& state) const;
  bool splits(uint32_t block) const;

  const ControlFlow& flow_;
  std::vector<uint8_t> blocks_, executed_, results_, branches_;
};

}  // namespace ptxbench::ptx
