#include "emu/regalloc.h"

#include <algorithm>
#include <map>

#include "ptx/def_use.h"

namespace ptxbench::emu {
namespace {

using ptx::Instruction;
using ptx::Op;

struct Block {
  uint32_t first = 0, last = 0;  // instruction numbers, inclusive
  std::vector<uint32_t> successors;
  std::vector<uint64_t> use, def, in, out;  // bit sets over registers
};

struct Interval {
  uint32_t reg = 0, start = ~0u, end = 0;
  void cover(uint32_t a, uint32_t b) { start = std::min(start, a), end = std::max(end, b); }
};

bool ends_block(Op op) {
  return op == Op::bra || op == Op::brx_idx || op == Op::ret || op == Op::exit || op == Op::trap;
}

bool is_wgmma(Op op) { return op == Op::wgmma_mma_async || op == Op::wgmma_mma_async_sp; }

class Liveness {
 public:
  explicit Liveness(const ptx::Function& f) : f_(f), words_((f.registers.size() + 63) / 64) {
    collect();
    make_blocks();
    solve();
  }

  std::vector<Interval> intervals() {
    std::vector<Interval> iv(f_.registers.size());
    for (uint32_t r = 0; r < iv.size(); r++) iv[r].reg = r;
    for (const Block& b : blocks_) {
      for_each_bit(b.in, [&](uint32_t r) { iv[r].cover(2 * b.first, 2 * b.first); });
      for_each_bit(b.out, [&](uint32_t r) { iv[r].cover(2 * b.last + 1, 2 * b.last + 1); });
    }
    for (uint32_t i = 0; i < instructions_.size(); i++) {
      int writes = 0;
      ptx::for_each_register(*instructions_[i], [&](uint32_t, bool w) { writes += w; });
      // Several destinations: a handler may write one before it has read all sources.
      uint32_t write_at = writes > 1 ? 2 * i : 2 * i + 1;
      ptx::for_each_register(*instructions_[i], [&](uint32_t r, bool w) {
        uint32_t at = w ? write_at : 2 * i;
        iv[r].cover(at, w ? 2 * i + 1 : at);
      });
    }
    extend_matrix(iv);
    return iv;
  }

  std::vector<bool> matrix_registers() const {
    std::vector<bool> m(f_.registers.size());
    for (const Instruction* i : instructions_) {
      if (!is_wgmma(i->op)) continue;
      for (const ptx::Operand& o : i->operands)
        if (o.kind == ptx::Operand::Kind::vector)
          for (const ptx::Operand& e : o.elements)
            if (e.kind == ptx::Operand::Kind::reg) m[e.index] = true;
    }
    return m;
  }

 private:
  template <class F>
  static void for_each_bit(const std::vector<uint64_t>& bits, F f) {
    for (size_t w = 0; w < bits.size(); w++)
      for (uint64_t b = bits[w]; b; b &= b - 1)
        f(static_cast<uint32_t>(w * 64 + static_cast<unsigned>(__builtin_ctzll(b))));
  }

  void collect() {
    label_at_.assign(f_.labels.size(), 0);
    for (const ptx::Statement& s : f_.body) {
      if (auto* l = std::get_if<ptx::LabelMark>(&s)) {
        label_at_[l->label] = static_cast<uint32_t>(instructions_.size());
      } else if (auto* t = std::get_if<ptx::BranchTargets>(&s)) {
        tables_[t->label] = t->targets;
      } else if (auto* i = std::get_if<Instruction>(&s)) {
        instructions_.push_back(i);
      }
    }
  }

  void make_blocks() {
    uint32_t n = static_cast<uint32_t>(instructions_.size());
    std::vector<bool> leader(n + 1);
    leader[0] = true;
    for (uint32_t at : label_at_) leader[std::min(at, n)] = true;
    for (uint32_t i = 0; i < n; i++)
      if (ends_block(instructions_[i]->op)) leader[i + 1] = true;
    block_of_.assign(n + 1, 0);
    for (uint32_t i = 0; i < n; i++) {
      if (leader[i]) blocks_.push_back({i, i});
      blocks_.back().last = i;
      block_of_[i] = static_cast<uint32_t>(blocks_.size() - 1);
    }
    for (uint32_t b = 0; b < blocks_.size(); b++) connect(b, n);
  }

  void connect(uint32_t b, uint32_t n) {
    Block& block = blocks_[b];
    const Instruction& last = *instructions_[block.last];
    auto add = [&](uint32_t at) {
      if (at < n) block.successors.push_back(block_of_[at]);
    };
    if (last.op == Op::bra && !last.operands.empty() &&
        last.operands[0].kind == ptx::Operand::Kind::label)
      add(label_at_[last.operands[0].index]);
    if (last.op == Op::brx_idx)
      for (const ptx::Operand& o : last.operands)
        if (auto t = tables_.find(o.index);
            t != tables_.end() &&
            (o.kind == ptx::Operand::Kind::label || o.kind == ptx::Operand::Kind::string))
          for (uint32_t l : t->second) add(label_at_[l]);
    bool falls = !ends_block(last.op) || last.guard != ptx::kNone;
    if (falls) add(block.last + 1);
    block.use.assign(words_, 0), block.def.assign(words_, 0);
    block.in.assign(words_, 0), block.out.assign(words_, 0);
    for (uint32_t i = block.first; i <= block.last; i++) {
      ptx::for_each_register(*instructions_[i], [&](uint32_t r, bool w) {
        if (!w && !(block.def[r / 64] >> (r % 64) & 1))
          block.use[r / 64] |= uint64_t{1} << (r % 64);
      });
      // A guarded write keeps the old value in other lanes, so it does not end the old value's
      // life.
      bool kills = instructions_[i]->guard == ptx::kNone;
      ptx::for_each_register(*instructions_[i], [&](uint32_t r, bool w) {
        if (!w) return;
        if (kills) block.def[r / 64] |= uint64_t{1} << (r % 64);
      });
    }
  }

  void solve() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = blocks_.size(); i-- > 0;) {
        Block& b = blocks_[i];
        for (size_t w = 0; w < words_; w++) {
          uint64_t out = 0;
          for (uint32_t s : b.successors) out |= blocks_[s].in[w];
          uint64_t in = b.use[w] | (out & ~b.def[w]);
          changed |= in != b.in[w];
          b.out[w] = out, b.in[w] = in;
        }
      }
    }
  }

  // A wgmma reads and writes its registers until a wait: nobody else may get their slots before the
  // next one.
  void extend_matrix(std::vector<Interval>& iv) {
    uint32_t n = static_cast<uint32_t>(instructions_.size());
    std::vector<uint32_t> next_wait(n + 1, 2 * n);
    for (uint32_t i = n; i-- > 0;)
      next_wait[i] = instructions_[i]->op == Op::wgmma_wait_group ? 2 * i + 1 : next_wait[i + 1];
    std::vector<bool> matrix = matrix_registers();
    for (Interval& v : iv)
      if (v.start != ~0u && matrix[v.reg])
        v.end = std::max(v.end, next_wait[std::min(v.end / 2, n)]);
  }

  const ptx::Function& f_;
  size_t words_;
  std::vector<const Instruction*> instructions_;
  std::vector<uint32_t> label_at_, block_of_;
  std::map<uint32_t, std::vector<uint32_t>> tables_;
  std::vector<Block> blocks_;
};

// One pool per width; predicates are the fifth.
int pool_of(int bytes) {
  return bytes == 0 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 4;
}

}  // namespace

int register_bytes(const ptx::Register& reg) {
  int b = ptx::bits(reg.type);
  if (reg.type == ptx::Type::pred) return 0;
  return b <= 16 ? 2 : b <= 32 ? 4 : b <= 64 ? 8 : 16;
}

RegisterLayout allocate_registers(const ptx::Function& f) {
  RegisterLayout layout;
  layout.slot.assign(f.registers.size(), -1);
  Liveness liveness(f);
  layout.is_matrix = liveness.matrix_registers();
  std::vector<Interval> iv = liveness.intervals();
  std::erase_if(iv, [](const Interval& v) { return v.start == ~0u; });
  std::sort(iv.begin(), iv.end(), [](const Interval& a, const Interval& b) {
    return std::tie(a.start, a.reg) < std::tie(b.start, b.reg);
  });
  struct Active {
    uint32_t end, number;
  };
  std::vector<Active> active[5];
  std::vector<uint32_t> free[5];
  uint32_t count[5] = {};
  std::vector<uint32_t> number(f.registers.size());
  for (const Interval& v : iv) {
    int p = pool_of(register_bytes(f.registers[v.reg]));
    std::erase_if(active[p], [&](const Active& a) {
      if (a.end >= v.start) return false;
      free[p].push_back(a.number);
      return true;
    });
    uint32_t slot;
    if (free[p].empty()) {
      slot = count[p]++;
    } else {
      slot = free[p].back();
      free[p].pop_back();
    }
    number[v.reg] = slot;
    active[p].push_back({v.end, slot});
  }
  const uint32_t lane_bytes[5] = {0, 2, 4, 8, 16};
  uint32_t base[5] = {}, at = 0;
  for (int p = 4; p >= 1; p--) base[p] = at, at += count[p] * lane_bytes[p] * 32;
  for (Slot& t : layout.temp64) t = static_cast<Slot>(at), at += 256;
  for (Slot& t : layout.temp32) t = static_cast<Slot>(at), at += 128;
  layout.sink = static_cast<Slot>(at), at += 512;
  layout.register_bytes = (at + 63) / 64 * 64;
  layout.predicates = kFixedPredicates + count[0];
  layout.live_slots = static_cast<int>(count[1] + count[2] + 2 * count[3] + 4 * count[4]);
  for (const Interval& v : iv) {
    int p = pool_of(register_bytes(f.registers[v.reg]));
    layout.slot[v.reg] = static_cast<Slot>(p == 0 ? kFixedPredicates + number[v.reg]
                                                  : base[p] + number[v.reg] * lane_bytes[p] * 32);
  }
  return layout;
}

}  // namespace ptxbench::emu
