#pragma once
// The control-flow graph of one function: basic blocks over its instructions, edges, dominators
// and post-dominators, loops, control dependence.
//
// A block ends at bra, brx.idx, ret, exit and trap, and before a label. Edges: bra to its label,
// brx.idx to every target of its table (to every label where the table is unknown), both also to
// the next instruction when they are guarded. A call falls through: what the callee does is not
// part of the graph, except that a callee declared .noreturn ends the block. Guards of other
// instructions make no edges.

#include <cstdint>
#include <span>
#include <vector>

#include "ptx/ast.h"

namespace ptxbench::ptx {

struct BasicBlock {
  uint32_t first = 0, last = 0;  // instruction numbers, inclusive
  std::vector<uint32_t> successors, predecessors;
  bool leaves = false;  // control may leave the function here: ret, exit, trap, end of the body
};

class ControlFlow {
 public:
  // Keeps a reference to the function's instructions; with the module given, calls of .noreturn
  // functions end their block.
  explicit ControlFlow(const Function& function, const Module* module = nullptr);

  const Function& function() const { return *function_; }
  // In the order of the text; empty blocks do not exist, a function without instructions has none.
  const std::vector<const Instruction*>& instructions() const { return instructions_; }
  // Of an instruction: its index in Function::body.
  uint32_t statement_of(uint32_t instruction) const { return statements_[instruction]; }
  // The entry is block 0; blocks are in the order of the text.
  const std::vector<BasicBlock>& blocks() const { return blocks_; }
  uint32_t block_of(uint32_t instruction) const { return block_of_[instruction]; }

  // Blocks that can run, in reverse postorder from the entry.
  const std::vector<uint32_t>& order() const { return order_; }
  bool reachable(uint32_t block) const { return position_[block] != kNone; }

  // Immediate dominators; kNone for the entry and for blocks that cannot run.
  std::vector<uint32_t> dominators() const;
  // Immediate post-dominators; kNone where the only common way on is out of the function, and for
  // blocks from which the function is never left.
  std::vector<uint32_t> post_dominators() const;
  // How many natural loops a block is in. Irreducible cycles are not counted.
  std::vector<uint32_t> loop_depth() const;
  // For each block, the blocks whose branch decides whether it runs (not transitive, sorted).
  std::vector<std::vector<uint32_t>> control_dependence() const;

 private:
  void collect();
  void make_blocks();
  void connect(uint32_t block);
  void order_blocks();
  bool ends_block(const Instruction& instruction) const;
  void targets_of(const Instruction& branch, std::vector<uint32_t>* out) const;

  const Function* function_;
  const Module* module_;
  std::vector<const Instruction*> instructions_;
  std::vector<uint32_t> statements_, label_at_, block_of_, order_, position_;
  std::vector<BasicBlock> blocks_;
};

}  // namespace ptxbench::ptx
