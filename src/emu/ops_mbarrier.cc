// mbarrier.*: the object lives in Cta::mbarriers, not in the bytes (as on silicon, where ordinary
// loads do not see a live one).

#include <fmt/format.h>

#include "emu/lane_access.h"
#include "emu/ops.h"
#include "emu/race_checker.h"

namespace ptxbench::emu::ops {
namespace {

// Where a lane's barrier lives; null after a fault.
Cta* locate_barrier(Warp& w, const MemorySite& m, const uint64_t* address, int lane,
                    uint32_t* offset) {
  uint64_t a = address[lane];
  // m.is_store: the instruction names a shared space, so the address is no generic one.
  Cta* c = !m.is_store && !in_window(a, kSharedWindow) && a >> 32 ? nullptr
                                                                  : shared_target(w, a, offset);
  if (!c || *offset < kReservedShared || *offset + 8 > c->shared_bytes) {
    w.exec->fault(w, "out-of-bounds", 1u << lane,
                  fmt::format("mbarrier address 0x{:x} is not in shared memory", a), "", a);
    return nullptr;
  }
  if (*offset % 8) {
    w.exec->fault(w, "misaligned", 1u << lane, "an mbarrier must be 8-byte aligned", "", *offset);
    return nullptr;
  }
  if (c->exited) {
    w.exec->fault(w, "out-of-bounds", 1u << lane,
                  fmt::format("an mbarrier of CTA rank {}, which has exited, is used", c->rank),
                  "keep every CTA of the cluster alive until all remote arrivals are done");
    return nullptr;
  }
  return c;
}

LiveBarrier* find_barrier(Warp& w, Cta& c, uint32_t offset, int lane) {
  auto it = c.mbarriers.find(offset);
  if (it != c.mbarriers.end()) return &it->second;
  w.exec->fault(w, "mbarrier-uninitialized", 1u << lane,
                fmt::format("{} is no initialised mbarrier", w.exec->shared_symbol(c, offset)),
                "mbarrier.init by one thread, then a fence and a barrier before others use it",
                offset, w.exec->shared_symbol(c, offset));
  return nullptr;
}

void check_fault(Warp& w, Cta& c, uint32_t offset, int lane, Mbarrier::Fault fault) {
  if (fault == Mbarrier::Fault::none) return;
  const char* what = fault == Mbarrier::Fault::bad_count ? "the count is out of range"
                     : fault == Mbarrier::Fault::arrival_overflow
                         ? "more arrivals than the phase still expects"
                         : "the transaction count leaves its range";
  const char* kind = fault == Mbarrier::Fault::bad_count          ? "mbarrier-count"
                     : fault == Mbarrier::Fault::arrival_overflow ? "mbarrier-arrival-overflow"
                                                                  : "mbarrier-tx-overflow";
  w.exec->report(w, kind, plan::HazardClass::fatal, 1u << lane,
                 fmt::format("mbarrier {}: {}", w.exec->shared_symbol(c, offset), what), "", offset,
                 w.exec->shared_symbol(c, offset));
}

// A wait on the barrier succeeded.
void observe(Warp& w, const LiveBarrier& b, bool relaxed) {
  if (RaceChecker* races = w.exec->races()) races->mbarrier_observe(w, b, relaxed);
  join(w.observed, b.released);
  learn(w.observed, phases_of(b.id), static_cast<uint32_t>(b.phase()));
  w.known_inits.join(b.inits);
}

template <class F>
void each_barrier(RegisterView& v, const MicroOp& op, uint32_t mask, F&& f) {
  Warp& w = warp_of(v);
  const MemorySite& m = w.exec->kernel().memories[op.extra];
  uint64_t address[32];
  lane_addresses(w, m, address);
  for_each_lane(mask, [&](int l) {
    uint32_t offset;
    if (w.exec->launch().stop) return;
    Cta* c = locate_barrier(w, m, address, l, &offset);
    if (c) f(w, *c, offset, l);
  });
}

}  // namespace

void mbarrier_init(RegisterView& v, const MicroOp& op, uint32_t mask) {
  each_barrier(v, op, mask, [&](Warp& w, Cta& c, uint32_t offset, int l) {
    uint32_t count = source<uint32_t>(v, op.operand[0])[l];
    if (c.mbarriers.count(offset))
      w.exec->report(
          w, "mbarrier-reinit", plan::HazardClass::latent, 1u << l,
          fmt::format("{} is initialised again while it is live", w.exec->shared_symbol(c, offset)),
          "mbarrier.inval first", offset);
    w.exec->check_source_in_flight(w, c, offset, 8, "mbarrier.init");
    LiveBarrier b;
    check_fault(w, c, offset, l, b.init(count));
    if (auto it = c.mbarriers.find(offset); it != c.mbarriers.end()) {
      c.barrier_live[it->second.id] = false;
      if (RaceChecker* races = w.exec->races()) races->mbarrier_inval(c, it->second);
    }
    b.id = static_cast<uint32_t>(c.barrier_live.size());
    c.barrier_live.push_back(true);
    b.init_warp = w.index;
    b.init_seq = c.sequence;
    b.fenced = &c != w.cta;  // of another CTA: not followed
    if (c.cluster->ctas.size() > 1) {
      b.init_index = c.cluster->inits++;
      w.known_inits.set(b.init_index);
    }
    if (RaceChecker* races = w.exec->races()) races->mbarrier_init(w, c, offset, b);
    c.mbarriers[offset] = b;
    Executor::mark_barrier(c, offset, true);
    c.cluster->progress++;
  });
}

void mbarrier_inval(RegisterView& v, const MicroOp& op, uint32_t mask) {
  each_barrier(v, op, mask, [&](Warp& w, Cta& c, uint32_t offset, int l) {
    LiveBarrier* b = find_barrier(w, c, offset, l);
    if (!b) return;
    uint64_t word = b->word();
    std::memcpy(c.shared.data() + offset, &word, 8);
    c.barrier_live[b->id] = false;
    if (RaceChecker* races = w.exec->races()) races->mbarrier_inval(c, *b);
    c.mbarriers.erase(offset);
    Executor::mark_barrier(c, offset, false);
    c.cluster->progress++;
  });
}

void mbarrier_arrive(RegisterView& v, const MicroOp& op, uint32_t mask) {
  each_barrier(v, op, mask, [&](Warp& w, Cta& c, uint32_t offset, int l) {
    LiveBarrier* b = find_barrier(w, c, offset, l);
    if (!b) return;
    w.exec->check_init_order(w, c, offset, 1u << l);
    if (RaceChecker* races = w.exec->races()) {
      races->mbarrier_use(w, c, offset, *b);
      races->mbarrier_arrive(w, *b, op.imm & kRelaxed);
    }
    if (&c == w.cta) join(b->released, w.observed);
    b->inits.join(w.known_inits);
    uint32_t n = op.imm & kHasCount ? source<uint32_t>(v, op.operand[1])[l] : 1;
    bool drop = op.imm & kDrop;
    uint64_t token = 0;
    Mbarrier::Fault fault = op.imm & kExpectTx ? b->arrive_expect_tx(n, 1, drop, &token)
                            : drop             ? b->arrive_drop(n, &token)
                                               : b->arrive(n, &token);
    check_fault(w, c, offset, l, fault);
    // A remote arrival returns no state; its destination is a sink.
    destination<uint64_t>(v, op.operand[0])[l] = token;
    c.cluster->progress++;
  });
}

void mbarrier_expect_tx(RegisterView& v, const MicroOp& op, uint32_t mask) {
  each_barrier(v, op, mask, [&](Warp& w, Cta& c, uint32_t offset, int l) {
    w.exec->check_init_order(w, c, offset, 1u << l);
    if (LiveBarrier* b = find_barrier(w, c, offset, l))
      check_fault(w, c, offset, l, b->expect_tx(source<uint32_t>(v, op.operand[0])[l]));
    c.cluster->progress++;
  });
}

void mbarrier_complete_tx(RegisterView& v, const MicroOp& op, uint32_t mask) {
  each_barrier(v, op, mask, [&](Warp& w, Cta& c, uint32_t offset, int l) {
    w.exec->check_init_order(w, c, offset, 1u << l);
    if (LiveBarrier* b = find_barrier(w, c, offset, l))
      check_fault(w, c, offset, l, b->complete_tx(source<uint32_t>(v, op.operand[0])[l]));
    c.cluster->progress++;
  });
}

void mbarrier_wait(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const MemorySite& m = w.exec->kernel().memories[op.extra];
  uint64_t address[32];
  lane_addresses(w, m, address);
  bool parity = op.imm & kParity, may_block = op.imm & kTryWait;
  uint32_t done = 0;
  Wait first;
  for_each_lane(mask, [&](int l) {
    uint32_t offset;
    if (w.exec->launch().stop) return;
    Cta* c = locate_barrier(w, m, address, l, &offset);
    const LiveBarrier* barrier = c ? find_barrier(w, *c, offset, l) : nullptr;
    if (!barrier) return;
    if (RaceChecker* races = w.exec->races()) races->mbarrier_use(w, *c, offset, *barrier);
    if (c != w.cta)
      return w.exec->fault(w, "mbarrier-remote-wait", 1u << l,
                           "an mbarrier of another CTA cannot be waited on");
    Wait wait{
        Wait::Kind::mbarrier, c->rank, offset,
        parity ? source<uint32_t>(v, op.operand[1])[l] & 1 : source<uint64_t>(v, op.operand[1])[l],
        parity};
    if (!w.exec->satisfied(*w.cta, wait)) w.exec->perform_for(*w.cta->cluster, wait);
    if (w.exec->satisfied(*w.cta, wait)) {
      if (const auto it = w.cta->mbarriers.find(wait.address);
          w.exec->costs() && it != w.cta->mbarriers.end() && it->second.beside != Beside::unknown)
        w.copies = it->second.beside;
      done |= 1u << l;
      observe(w, *find_barrier(w, *c, offset, l), op.imm & kRelaxed);
    } else if (first.kind == Wait::Kind::none) {
      first = wait;
    }
  });
  if (w.exec->launch().stop) {
    w.yield = true;  // the launch ends here: nothing after the wait may run
    return;
  }
  // try_wait may suspend the thread: parked until the phase completes, unless a lane can go on.
  if (!done && may_block && first.kind != Wait::Kind::none) return w.exec->block(w, first, true);
  if (!done) w.pause = w.yield = true;  // test_wait in a loop: end of the time slice
  if (done) Executor::synchronised(w);
  uint32_t& p = v.preds[op.operand[0]];
  p = (p & ~mask) | done;
}

void mbarrier_pending_count(RegisterView& v, const MicroOp& op, uint32_t mask) {
  const uint64_t* state = source<uint64_t>(v, op.operand[1]);
  uint32_t* dst = destination<uint32_t>(v, op.operand[0]);
  for_each_lane(mask, [&](int l) { dst[l] = Mbarrier::pending_count(state[l]); });
}

}  // namespace ptxbench::emu::ops
