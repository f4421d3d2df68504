// bar/barrier, barrier.cluster, fences.

#include <fmt/format.h>

#include "emu/lane_access.h"
#include "emu/ops.h"
#include "emu/race_checker.h"

namespace ptxbench::emu {

void NamedBarrier::complete() {
  generation++;
  last_released = released;
  last_inits = inits;
  last_count = reduce_count, last_all = reduce_all, last_any = reduce_any;
  arrived = 0, expected = 0, warps = 0, counts_all = false;
  reduce_count = 0, reduce_all = true, reduce_any = false;
}

void Cluster::complete_barrier() {
  barrier_phase++;
  barrier_arrived = 0;
  barrier_last_inits = barrier_inits;
}

}  // namespace ptxbench::emu

namespace ptxbench::emu::ops {
namespace {

// In Warp::cluster_phase: the warp arrived and has not waited since.
constexpr uint64_t kArrived = uint64_t{1} << 63;

// The barrier named by the operands; null after a fault.
NamedBarrier* barrier_of(Warp& w, Slot id_slot, uint32_t mask, uint32_t* id) {
  *id = source<uint32_t>(w, id_slot)[std::countr_zero(mask)];
  if (*id < 16) return &w.cta->barriers[*id];
  w.exec->fault(w, "barrier-id", mask, fmt::format("barrier {} does not exist; there are 16", *id));
  return nullptr;
}

// Counts the warp's threads in; true if that completed the barrier.
bool arrive_at(Warp& w, NamedBarrier& b, uint32_t id, const MicroOp& op, Slot count_slot,
               uint32_t mask) {
  Cta& c = *w.cta;
  bool has_count = op.imm & 1;
  uint32_t expected =
      has_count ? source<uint32_t>(w, count_slot)[std::countr_zero(mask)] : c.live_warps * 32;
  if (has_count && (expected == 0 || expected % 32))
    w.exec->report(w, "barrier-count", plan::HazardClass::fatal, mask,
                   fmt::format("barrier {} is used with a thread count of {}, not a multiple of 32",
                               id, expected));
  if (b.arrived && !b.counts_all && has_count && b.expected != expected)
    w.exec->report(
        w, "barrier-count", plan::HazardClass::fatal, mask,
        fmt::format("barrier {} is used with {} threads here and {} by warps already waiting", id,
                    expected, b.expected));
  b.expected = expected;
  b.counts_all = !has_count;
  // Threads count one by one. A warp counts as 32 even where lanes do not exist (any more): its
  // lowest live lane brings them along (see Executor::exit_lanes).
  b.arrived += static_cast<uint32_t>(std::popcount(mask));
  if (mask & w.live & (~w.live + 1)) b.arrived += 32 - static_cast<uint32_t>(std::popcount(w.live));
  b.warps |= uint64_t{1} << (w.index & 63);
  if (RaceChecker* races = w.exec->races()) races->barrier_arrive(w, id);
  join(b.released, w.observed);
  b.inits.join(w.known_inits);
  c.cluster->progress++;
  if (b.arrived < (b.counts_all ? c.live_warps * 32 : b.expected)) return false;
  b.complete();
  return true;
}

}  // namespace

void barrier_sync(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  uint32_t id;
  NamedBarrier* b = barrier_of(w, op.operand[0], mask, &id);
  if (!b) return;
  uint64_t generation = b->generation;
  Wait wait{Wait::Kind::named_barrier, 0, id, generation, false};
  if (arrive_at(w, *b, id, op, op.operand[1], mask)) return Executor::woke(w, wait);
  w.exec->block(w, wait, false);
}

void barrier_arrive(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  uint32_t id;
  if (NamedBarrier* b = barrier_of(w, op.operand[0], mask, &id))
    arrive_at(w, *b, id, op, op.operand[1], mask);
}

void barrier_reduce(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  uint32_t id;
  NamedBarrier* b = barrier_of(w, op.operand[1], mask, &id);
  if (!b) return;
  if (!w.barrier_ticket) {
    uint32_t p = predicate(v, op, 3) & mask;
    b->reduce_count += static_cast<uint32_t>(std::popcount(p));
    b->reduce_all &= p == mask;
    b->reduce_any |= p != 0;
    w.barrier_ticket = b->generation + 1;
    if (!arrive_at(w, *b, id, op, op.operand[2], mask))
      return w.exec->block(w, {Wait::Kind::named_barrier, 0, id, w.barrier_ticket - 1, false},
                           true);
  } else if (b->generation == w.barrier_ticket - 1) {
    return w.exec->block(w, {Wait::Kind::named_barrier, 0, id, b->generation, false}, true);
  }
  const uint64_t arrived = std::exchange(w.barrier_ticket, 0) - 1;
  Executor::woke(w, {Wait::Kind::named_barrier, 0, id, arrived, false});
  uint64_t kind = op.imm & 0xff00;
  if (kind == 0x100) {
    uint32_t* d = destination<uint32_t>(v, op.operand[0]);
    for_each_lane(mask, [&](int l) { d[l] = b->last_count; });
    return;
  }
  bool value = kind == 0x200 ? b->last_all : b->last_any;
  uint32_t& p = v.preds[op.operand[0]];
  p = (p & ~mask) | (value ? mask : 0);
}

void cluster_arrive(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  if (RaceChecker* races = w.exec->races()) races->cluster_arrive(w, op.imm);
  Cluster& c = *w.cta->cluster;
  w.cluster_phase = c.barrier_phase | kArrived;
  join(w.cta->cluster_released, w.observed);
  c.barrier_inits.join(w.known_inits);
  c.barrier_arrived += static_cast<uint32_t>(std::popcount(mask));
  c.progress++;
  if (c.barrier_arrived < c.live_threads) return;
  c.complete_barrier();
}

void cluster_wait(RegisterView& v, const MicroOp&, uint32_t mask) {
  Warp& w = warp_of(v);
  const uint64_t arrived = w.cluster_phase & ~kArrived;
  // Of a warp that comes in parts not every part is followed.
  if (mask == w.live) {
    if (!(w.cluster_phase & kArrived))
      w.exec->report(w, "cluster-barrier-unmatched", plan::HazardClass::fatal, mask,
                     "barrier.cluster.wait without an arrive before it",
                     "each barrier.cluster.wait belongs to one barrier.cluster.arrive");
    w.cluster_phase = arrived;
  }
  Wait wait{Wait::Kind::cluster_barrier, 0, 0, arrived, false};
  if (w.cta->cluster->barrier_phase != arrived) return Executor::woke(w, wait);
  w.exec->block(w, wait, false);
}

void fence(RegisterView& v, const MicroOp& op, uint32_t) {
  Warp& w = warp_of(v);
  if (RaceChecker* races = w.exec->races(); races && op.extra)
    races->fence(w, static_cast<SyncScope>(op.extra & 3), op.extra & 4);
  if (!op.imm) return;
  if (op.imm == 2) {
    if (RaceChecker* races = w.exec->races()) races->mbarrier_init_fence(w);
    // Makes the warp's own initialisations known to the async proxy, and nothing else.
    for (auto& [offset, barrier] : w.cta->mbarriers)
      if (barrier.init_warp == w.index) barrier.fenced = true;
    return;
  }
  w.fence_seq = ++w.cta->sequence;
  w.sync_seq_at_fence = w.sync_seq;
}

}  // namespace ptxbench::emu::ops
