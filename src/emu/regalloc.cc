#include "emu/regalloc.h"

#include <algorithm>
#include <tuple>

#include "ptx/liveness.h"

namespace ptxbench::emu {
namespace {

using ptx::Instruction;
using ptx::Op;

struct Interval {
  uint32_t reg = 0, start = ~0u, end = 0;
  void cover(uint32_t a, uint32_t b) { start = std::min(start, a), end = std::max(end, b); }
};

bool is_wgmma(Op op) { return op == Op::wgmma_mma_async || op == Op::wgmma_mma_async_sp; }

std::vector<bool> matrix_registers(const ptx::ControlFlow& flow) {
  std::vector<bool> m(flow.function().registers.size());
  for (const Instruction* i : flow.instructions()) {
    if (!is_wgmma(i->op)) continue;
    for (const ptx::Operand& o : i->operands)
      if (o.kind == ptx::Operand::Kind::vector)
        for (const ptx::Operand& e : o.elements)
          if (e.kind == ptx::Operand::Kind::reg) m[e.index] = true;
  }
  return m;
}

// For each instruction, where all wgmmas before it are waited for in the order of the text: at the
// first wait that leaves pending no more groups than were committed since.
std::vector<uint32_t> covering_waits(const ptx::ControlFlow& flow) {
  const auto& instructions = flow.instructions();
  const uint32_t n = static_cast<uint32_t>(instructions.size());
  std::vector<uint32_t> cover(n + 1, 2 * n);
  std::vector<uint32_t> open;  // wgmmas not yet covered, oldest first
  std::vector<uint32_t> commits_before(n + 1, 0);
  for (uint32_t i = 0; i < n; i++) {
    commits_before[i + 1] = commits_before[i] + (instructions[i]->op == Op::wgmma_commit_group);
    if (is_wgmma(instructions[i]->op)) open.push_back(i);
    if (instructions[i]->op != Op::wgmma_wait_group) continue;
    const uint64_t pending = instructions[i]->operands[0].value;
    size_t covered = 0;
    while (covered < open.size() && commits_before[i] - commits_before[open[covered]] > pending)
      cover[open[covered++]] = 2 * i + 1;
    open.erase(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(covered));
  }
  return cover;
}

// A wgmma reads and writes its registers until a wait covers it: nobody else may get their slots
// before.
void extend_matrix(const ptx::ControlFlow& flow, const std::vector<bool>& matrix,
                   std::vector<Interval>& iv) {
  const uint32_t n = static_cast<uint32_t>(flow.instructions().size());
  const std::vector<uint32_t> cover = covering_waits(flow);
  std::vector<uint32_t> last(n + 1, 0);  // of the wgmmas up to here, the last cover
  for (uint32_t i = 0; i < n; i++)
    last[i] = std::max(i ? last[i - 1] : 0, is_wgmma(flow.instructions()[i]->op) ? cover[i] : 0);
  last[n] = n ? last[n - 1] : 0;
  for (Interval& v : iv)
    if (v.start != ~0u && matrix[v.reg]) v.end = std::max(v.end, last[std::min(v.end / 2, n)]);
}

// Where each register's slot is taken: 2 i is before instruction i has written, 2 i + 1 after.
std::vector<Interval> live_intervals(const ptx::ControlFlow& flow,
                                     const std::vector<bool>& matrix) {
  const ptx::Liveness liveness(flow);
  std::vector<Interval> iv(flow.function().registers.size());
  for (uint32_t r = 0; r < iv.size(); r++) iv[r].reg = r;
  for (uint32_t b = 0; b < flow.blocks().size(); b++) {
    const uint32_t begin = 2 * flow.blocks()[b].first, end = 2 * flow.blocks()[b].last + 1;
    liveness.for_each_live_in(b, [&](uint32_t r) { iv[r].cover(begin, begin); });
    liveness.for_each_live_out(b, [&](uint32_t r) { iv[r].cover(end, end); });
  }
  for (uint32_t i = 0; i < flow.instructions().size(); i++) {
    int writes = 0;
    for (const auto& use : liveness.uses(i)) writes += use.write;
    // Several destinations: a handler may write one before it has read all sources.
    uint32_t write_at = writes > 1 ? 2 * i : 2 * i + 1;
    for (const auto& use : liveness.uses(i)) {
      uint32_t at = use.write ? write_at : 2 * i;
      iv[use.reg].cover(at, use.write ? 2 * i + 1 : at);
    }
  }
  extend_matrix(flow, matrix, iv);
  return iv;
}

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
  const ptx::ControlFlow flow(f);
  layout.is_matrix = matrix_registers(flow);
  std::vector<Interval> iv = live_intervals(flow, layout.is_matrix);
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
