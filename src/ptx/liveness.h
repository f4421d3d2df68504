#pragma once
// Which virtual registers hold a value that may still be read, at the borders of basic blocks.
//
// Only registers that some block reads before writing them can be live across a border; they are
// numbered densely, so the sets stay small however many registers the text declares.

#include <cstdint>
#include <span>
#include <vector>

#include "ptx/control_flow.h"

namespace ptxbench::ptx {

class Liveness {
 public:
  explicit Liveness(const ControlFlow& flow);

  // One mention of a register by an instruction, in the order of for_each_register: reads first.
  struct Use {
    uint32_t reg;
    bool write;
  };
  std::span<const Use> uses(uint32_t instruction) const {
    return {uses_.data() + first_use_[instruction],
            first_use_[instruction + 1] - first_use_[instruction]};
  }

  bool live_in(uint32_t block, uint32_t reg) const { return test(in_, block, reg); }
  bool live_out(uint32_t block, uint32_t reg) const { return test(out_, block, reg); }
  template <class F>
  void for_each_live_in(uint32_t block, F f) const {
    for_each(in_, block, f);
  }
  template <class F>
  void for_each_live_out(uint32_t block, F f) const {
    for_each(out_, block, f);
  }

  // 32-bit registers that hold live values at the widest point between two instructions;
  // predicates are not counted. A lower bound of what an allocator without spilling needs.
  uint32_t pressure() const;

 private:
  void gather();
  void number_global_registers();
  void solve();
  bool test(const std::vector<uint64_t>& sets, uint32_t block, uint32_t reg) const {
    const uint32_t bit = bit_of_[reg];
    return bit != kNone && (sets[block * words_ + bit / 64] >> (bit % 64) & 1) != 0;
  }
  template <class F>
  void for_each(const std::vector<uint64_t>& sets, uint32_t block, F& f) const {
    for (size_t w = 0; w < words_; ++w)
      for (uint64_t bits = sets[block * words_ + w]; bits; bits &= bits - 1)
        f(globals_[w * 64 + static_cast<unsigned>(__builtin_ctzll(bits))]);
  }

  const ControlFlow& flow_;
  std::vector<Use> uses_;
  std::vector<uint32_t> first_use_;  // by instruction, one more at the end
  std::vector<uint32_t> bit_of_;     // by register; kNone: never live across a border
  std::vector<uint32_t> globals_;    // by bit
  size_t words_ = 0;
  std::vector<uint64_t> in_, out_;  // words_ for each block
};

}  // namespace ptxbench::ptx
