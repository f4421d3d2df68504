#include "ptx/liveness.h"

#include <algorithm>

#include "ptx/def_use.h"

namespace ptxbench::ptx {

Liveness::Liveness(const ControlFlow& flow) : flow_(flow) {
  gather();
  number_global_registers();
  solve();
}

void Liveness::gather() {
  for (const Instruction* instruction : flow_.instructions()) {
    first_use_.push_back(static_cast<uint32_t>(uses_.size()));
    for_each_register(*instruction, [&](uint32_t reg, bool write) {
      uses_.push_back({reg, write});
    });
  }
  first_use_.push_back(static_cast<uint32_t>(uses_.size()));
}

// Registers read in a block before the block has certainly written them.
void Liveness::number_global_registers() {
  bit_of_.assign(flow_.function().registers.size(), kNone);
  std::vector<uint32_t> written_in(bit_of_.size(), kNone);
  for (uint32_t b = 0; b < flow_.blocks().size(); ++b) {
    const BasicBlock& block = flow_.blocks()[b];
    for (uint32_t i = block.first; i <= block.last; ++i) {
      // A guarded write keeps the old value in other lanes, so it does not end that value's life.
      const bool kills = flow_.instructions()[i]->guard == kNone;
      for (const Use& use : uses(i)) {
        if (use.write) {
          if (kills) written_in[use.reg] = b;
        } else if (written_in[use.reg] != b && bit_of_[use.reg] == kNone) {
          bit_of_[use.reg] = static_cast<uint32_t>(globals_.size());
          globals_.push_back(use.reg);
        }
      }
    }
  }
  words_ = (globals_.size() + 63) / 64;
}

void Liveness::solve() {
  const std::vector<BasicBlock>& blocks = flow_.blocks();
  std::vector<uint64_t> use(blocks.size() * words_), def(use.size());
  in_.assign(use.size(), 0), out_.assign(use.size(), 0);
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    uint64_t *u = use.data() + b * words_, *d = def.data() + b * words_;
    for (uint32_t i = blocks[b].first; i <= blocks[b].last; ++i) {
      const bool kills = flow_.instructions()[i]->guard == kNone;
      for (const Use& mention : uses(i)) {
        const uint32_t bit = bit_of_[mention.reg];
        if (bit == kNone) continue;
        const uint64_t mask = uint64_t{1} << (bit % 64);
        if (!mention.write && !(d[bit / 64] & mask)) u[bit / 64] |= mask;
        if (mention.write && kills) d[bit / 64] |= mask;
      }
    }
  }
  // Backwards through the text: compiled code has few edges that go back.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = blocks.size(); b-- > 0;)
      for (size_t w = 0; w < words_; ++w) {
        uint64_t out = 0;
        for (uint32_t s : blocks[b].successors) out |= in_[s * words_ + w];
        const size_t at = b * words_ + w;
        const uint64_t in = use[at] | (out & ~def[at]);
        changed |= in != in_[at];
        out_[at] = out, in_[at] = in;
      }
  }
}

uint32_t Liveness::pressure() const {
  const std::vector<Register>& registers = flow_.function().registers;
  auto words = [&](uint32_t reg) {
    return registers[reg].type == Type::pred
               ? 0u
               : static_cast<uint32_t>((bits(registers[reg].type) * registers[reg].vector + 31) /
                                       32);
  };
  uint32_t most = 0;
  std::vector<bool> live(registers.size());
  for (uint32_t b = 0; b < flow_.blocks().size(); ++b) {
    uint32_t now = 0;
    std::vector<uint32_t> touched;
    auto begin = [&](uint32_t reg) {
      if (live[reg]) return;
      live[reg] = true;
      touched.push_back(reg);
      now += words(reg);
    };
    for_each_live_out(b, begin);
    most = std::max(most, now);
    const BasicBlock& block = flow_.blocks()[b];
    for (uint32_t i = block.last + 1; i-- > block.first;) {
      const bool kills = flow_.instructions()[i]->guard == kNone;
      if (kills)
        for (const Use& use : uses(i))
          if (use.write && live[use.reg]) live[use.reg] = false, now -= words(use.reg);
      for (const Use& use : uses(i))
        if (!use.write) begin(use.reg);
      most = std::max(most, now);
    }
    for (uint32_t reg : touched) live[reg] = false;
  }
  return most;
}

}  // namespace ptxbench::ptx
