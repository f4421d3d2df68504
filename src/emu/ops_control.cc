// Branches, exits, special registers. Calls: ops_call.cc.

#include <fmt/format.h>

#include <algorithm>

#include "emu/lane_access.h"
#include "emu/ops.h"

namespace ptxbench::emu::ops {
namespace {

// Backward branches of a diverged fragment before another fragment gets its turn.
constexpr uint32_t kSpinLimit = 32;

void jump(Warp& w, uint32_t target, uint32_t taken) {
  uint32_t rest = w.active & ~taken;
  bool backward = target < w.pc;
  if (!rest) {
    w.pc = target;
  } else {
    // Both sides go on as fragments of their own; the lower pc runs first.
    w.others.push_back({w.pc, rest, w.frame, {}});
    w.active = taken;
    w.pc = target;
    w.switch_pc = std::min(w.switch_pc, w.others.back().pc);
  }
  if (backward && !w.others.empty() && ++w.spins > kSpinLimit) w.exec->rotate(w);
}

}  // namespace

void branch(RegisterView& v, const MicroOp& op, uint32_t mask) { jump(warp_of(v), op.extra, mask); }

void branch_table(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const auto& table = w.exec->kernel().branch_tables[op.extra];
  const uint32_t* index = source<uint32_t>(w, op.operand[0]);
  uint32_t lanes = mask, first = index[std::countr_zero(mask)];
  uint32_t same = 0;
  for_each_lane(lanes, [&](int l) { same |= uint32_t{index[l] == first} << l; });
  if (first >= table.size())
    return w.exec->fault(w, "illegal-branch", same,
                         fmt::format("brx.idx index {} of a table of {}", first, table.size()));
  // Lanes with other indices stay at this instruction as a fragment of their own.
  uint32_t rest = mask & ~same;
  if (rest) {
    w.others.push_back({w.pc - 1, rest, w.frame, {}});
    w.active &= ~rest;
    w.switch_pc = std::min(w.switch_pc, w.pc - 1);
  }
  jump(w, table[first], same);
}

void exit(RegisterView& v, const MicroOp&, uint32_t mask) {
  Warp& w = warp_of(v);
  w.exec->exit_lanes(w, mask);
}

void trap(RegisterView& v, const MicroOp&, uint32_t mask) {
  Warp& w = warp_of(v);
  w.exec->fault(w, "trap", mask, "the kernel executed trap");
}

void no_operation(RegisterView&, const MicroOp&, uint32_t) {}

void pause(RegisterView& v, const MicroOp&, uint32_t) {
  Warp& w = warp_of(v);
  w.pause = true;
  w.yield = true;
}

// Warps trade registers through their CTA's pool; an increase waits until the pool has enough. What
// a launch really gets per thread is the assembler's choice: the most that the register file allows
// is assumed, so a wait that never ends here never ends on silicon.
void set_max_registers(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  Cta& c = *w.cta;
  uint32_t n = static_cast<uint32_t>(op.imm);
  if (n < 24 || n > 256 || n % 8) {
    w.exec->report(w, "setmaxnreg", plan::HazardClass::fatal, mask,
                   fmt::format("setmaxnreg to {}: must be a multiple of 8 between 24 and 256", n));
    return;
  }
  bool increase = op.imm >> 32;
  if (increase && n > w.max_registers && c.free_registers < (n - w.max_registers) * 32)
    return w.exec->block(w, {Wait::Kind::registers, 0, 0, (n - w.max_registers) * 32, false}, true);
  c.free_registers += (w.max_registers - n) * 32;  // modulo 2^32: an increase subtracts
  w.max_registers = n;
  c.cluster->progress++;
}

void read_special(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const LaunchState& launch = w.exec->launch();
  const Cta& c = *w.cta;
  ptx::Special special = static_cast<ptx::Special>(op.imm & 0xff);
  int component = static_cast<int>(op.imm >> 8 & 0xff),
      bytes = static_cast<int>(op.imm >> 16 & 0xff);
  auto pick = [&](uint32_t x, uint32_t y, uint32_t z) -> uint64_t {
    return component == 0 ? x : component == 1 ? y : component == 2 ? z : 0;
  };
  auto dims = [&](const plan::Dim3& d) { return pick(d.x, d.y, d.z); };
  const plan::Dim3& cl = launch.cluster;
  uint64_t value = 0;
  uint64_t lanes[32];
  bool per_lane = false;
  auto each = [&](auto f) {
    per_lane = true;
    for (uint32_t l = 0; l < 32; l++) lanes[l] = f(l);
  };
  using S = ptx::Special;
  switch (special) {
    case S::tid:
      each([&](uint32_t l) {
        uint32_t t = w.index * 32 + l;
        return pick(t % launch.block.x, t / launch.block.x % launch.block.y,
                    t / launch.block.x / launch.block.y);
      });
      break;
    case S::ntid:
      value = dims(launch.block);
      break;
    case S::ctaid:
      value = pick(c.id[0], c.id[1], c.id[2]);
      break;
    case S::nctaid:
      value = dims(launch.grid);
      break;
    case S::laneid:
      each([](uint32_t l) { return uint64_t{l}; });
      break;
    case S::warpid:
      value = w.index;
      break;
    case S::nwarpid:
      value = c.warps.size();
      break;
    case S::smid:
      value = c.linear % static_cast<uint64_t>(launch.sm_count);
      break;
    case S::nsmid:
      value = static_cast<uint64_t>(launch.sm_count);
      break;
    case S::gridid:
      value = launch.sequence_id;
      break;
    case S::is_explicit_cluster:
      value = launch.explicit_cluster;
      break;
    case S::clusterid:
      value = pick(c.id[0] / cl.x, c.id[1] / cl.y, c.id[2] / cl.z);
      break;
    case S::nclusterid:
      value = pick(launch.grid.x / cl.x, launch.grid.y / cl.y, launch.grid.z / cl.z);
      break;
    case S::cluster_ctaid:
      value = pick(c.id[0] % cl.x, c.id[1] % cl.y, c.id[2] % cl.z);
      break;
    case S::cluster_nctaid:
      value = dims(cl);
      break;
    case S::cluster_ctarank:
      value = c.rank;
      break;
    case S::cluster_nctarank:
      value = cl.count();
      break;
    case S::lanemask_eq:
      each([](uint32_t l) { return uint64_t{1} << l; });
      break;
    case S::lanemask_le:
      each([](uint32_t l) { return (uint64_t{2} << l) - 1; });
      break;
    case S::lanemask_lt:
      each([](uint32_t l) { return (uint64_t{1} << l) - 1; });
      break;
    case S::lanemask_ge:
      each([](uint32_t l) { return 0xffffffffu & ~((uint64_t{1} << l) - 1); });
      break;
    case S::lanemask_gt:
      each([](uint32_t l) { return 0xffffffffu & ~((uint64_t{2} << l) - 1); });
      break;
    // Time is the warp's instruction count: monotone, deterministic, no claim about speed.
    case S::clock:
    case S::clock64:
    case S::globaltimer:
    case S::globaltimer_lo:
      value = ++w.clock;
      break;
    case S::clock_hi:
    case S::globaltimer_hi:
      value = 0;
      break;
    case S::reserved_smem_offset_begin:
    case S::reserved_smem_offset_0:
      value = 0;
      break;
    case S::reserved_smem_offset_end:
    case S::reserved_smem_offset_1:
      value = 0x120;
      break;
    case S::reserved_smem_offset_cap:
      value = kReservedShared;
      break;
    case S::total_smem_size:
      value = (c.shared_bytes - kReservedShared + 127) / 128 * 128;
      break;
    case S::aggr_smem_size:
      value = c.shared_bytes;
      break;
    case S::envreg:
      value = component == 1   ? launch.grid_workspace >> 32
              : component == 2 ? launch.grid_workspace & 0xffffffffu
                               : 0;
      break;
    case S::dynamic_smem_size:
      value = launch.dynamic_shared;
      break;
    default:
      value = 0;
      break;
  }
  if (!per_lane)
    for (uint64_t& l : lanes) l = value;
  if (bytes == 2)
    for_each_lane(mask, [&](int l) {
      destination<uint16_t>(v, op.operand[0])[l] = static_cast<uint16_t>(lanes[l]);
    });
  else if (bytes == 4)
    for_each_lane(mask, [&](int l) {
      destination<uint32_t>(v, op.operand[0])[l] = static_cast<uint32_t>(lanes[l]);
    });
  else
    for_each_lane(mask, [&](int l) { destination<uint64_t>(v, op.operand[0])[l] = lanes[l]; });
}

namespace {
void write_address(RegisterView& v, const MicroOp& op, uint32_t mask, uint64_t value) {
  if (op.imm >> 32 == 4)
    for_each_lane(mask, [&](int l) {
      destination<uint32_t>(v, op.operand[0])[l] = static_cast<uint32_t>(value);
    });
  else
    for_each_lane(mask, [&](int l) { destination<uint64_t>(v, op.operand[0])[l] = value; });
}
}  // namespace

void shared_address(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  write_address(
      v, op, mask,
      (w.cta->rank << kSharedRankShift) + kReservedShared + static_cast<uint32_t>(op.imm));
}

void local_address(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  write_address(v, op, mask, w.frames[w.frame].local_base + static_cast<uint32_t>(op.imm));
}

}  // namespace ptxbench::emu::ops
