// The edges of the order: what a synchronising instruction hands on, and to whom.

#include <fmt/format.h>

#include "emu/lane_access.h"
#include "emu/race_state.h"

namespace ptxbench::emu {
namespace {

constexpr int kScopes = 4;  // index 0 is not used

}  // namespace

// A later access of the warp is not covered by what it hands on now.
static void next_epoch(VectorClock& clock, uint32_t self) { clock.raise(self, clock.at(self) + 1); }

// ------------------------------------------------------------------------------ flags and fences

void RaceChecker::fence(Warp& w, SyncScope scope, bool sequential) {
  WarpState& s = of(w);
  VectorClock& clock = s.known.clock;
  const int last = static_cast<int>(scope);
  for (int k = 1; k <= last; k++) {
    clock.join(s.pending[k], state(w).cluster);
    if (sequential) clock.join(s.known.read[k], state(w).cluster);
    s.pending[k].reset();
  }
  const SharedKnowledge now = clock.publish(state(w).cluster);
  for (int k = 1; k <= last; k++) {
    s.fenced[k] = now;
    if (sequential) s.known.fenced[k] = now;
  }
  next_epoch(clock, component(w, kSelf));
}

void RaceChecker::synchronise(Warp& w, Locations& all, uint64_t key, MemoryOrder order, bool reads,
                              bool writes) {
  const auto known = all.find(key);
  if (reads && known != all.end()) acquire(w, known->second, order);
  if (!writes) return;
  if (order.releases() || of(w).fenced[1] || of(w).known.fenced[1])
    release(w, all[key], order, reads);
  else if (!reads && known != all.end())
    all.erase(known);  // whoever reads this value has read from somebody who released nothing
}

void RaceChecker::release(Warp& w, Location& to, MemoryOrder order, bool adds) {
  WarpState& s = of(w);
  SharedKnowledge now;
  if (order.releases()) {
    now = s.known.clock.publish(state(w).cluster);
    next_epoch(s.known.clock, component(w, kSelf));
  }
  const bool same[kScopes] = {false, to.cta == w.cta->linear, to.cluster == state(w).cluster, true};
  for (int k = 1; k < kScopes; k++) {
    SharedKnowledge what;
    if (k <= static_cast<int>(order.scope)) {
      what = now ? now : merged(s.fenced[k], s.known.fenced[k]);
    }
    to.released[k] = adds && same[k] ? merged(to.released[k], what) : what;
  }
  to.cta = w.cta->linear, to.cluster = state(w).cluster;
}

void RaceChecker::acquire(Warp& w, const Location& from, MemoryOrder order) {
  WarpState& s = of(w);
  const bool same[kScopes] = {false, from.cta == w.cta->linear, from.cluster == state(w).cluster,
                              true};
  for (int k = 1; k <= static_cast<int>(order.scope); k++) {
    if (!same[k] || !from.released[k]) continue;
    if (order.acquires()) {
      s.known.clock.join(from.released[k], state(w).cluster);
      continue;
    }
    s.pending[k] = merged(s.pending[k], from.released[k]);
    s.known.read[k] = merged(s.known.read[k], from.released[k]);
  }
}

// -------------------------------------------------------------------------------------- barriers

void RaceChecker::barrier_arrive(Warp& w, uint32_t id) {
  Meeting& m = state(w).ctas[w.cta->rank].barriers[id];
  m.advance(w.cta->barriers[id].generation);
  m.current.join(of(w).known);
  next_epoch(of(w).known.clock, component(w, kSelf));
}

void RaceChecker::cluster_arrive(Warp& w, bool relaxed) {
  WarpState& s = of(w);
  Meeting& m = state(w).cluster_barrier;
  m.advance(w.cta->cluster->barrier_phase);
  if (relaxed) {
    m.current.clock.join(s.fenced[static_cast<int>(SyncScope::cluster)], state(w).cluster);
    return;
  }
  m.current.join(s.known);
  next_epoch(s.known.clock, component(w, kSelf));
}

void RaceChecker::woke(Warp& w, const Wait& wait) {
  HandedOn& known = of(w).known;
  if (wait.kind == Wait::Kind::named_barrier)
    known.join(state(w).ctas[w.cta->rank].barriers[wait.address].brought_to(wait.value));
  if (wait.kind == Wait::Kind::cluster_barrier)
    known.join(state(w).cluster_barrier.brought_to(wait.value));
  if (wait.kind == Wait::Kind::cluster_barrier) of(w).cluster_waits = wait.value + 1;
}

// Threads that have exited count at barriers of all threads; what they did is believed to be
// visible behind them.
void RaceChecker::exit(Warp& w) {
  State& s = state(w);
  for (uint32_t id = 0; id < 16; id++) {
    const NamedBarrier& barrier = w.cta->barriers[id];
    if (barrier.arrived && !barrier.counts_all) continue;
    Meeting& m = s.ctas[w.cta->rank].barriers[id];
    m.advance(barrier.generation);
    m.current.join(of(w).known);
  }
  s.cluster_barrier.advance(w.cta->cluster->barrier_phase);
  s.cluster_barrier.current.join(of(w).known);
}

// ------------------------------------------------------------------------------------- mbarriers

void RaceChecker::mbarrier_init(Warp& w, Cta&, uint32_t, LiveBarrier& barrier) {
  State& s = state(w);
  barrier.race_index = static_cast<uint32_t>(s.mbarriers.size());
  s.mbarriers.push_back({{}, access(w, SyncScope::weak), false, 0});
}

void RaceChecker::mbarrier_init_fence(Warp& w) {
  for (State::BarrierState& b : state(w).mbarriers)
    if (b.init.component == component(w, kSelf) && !b.fenced_before)
      b.fenced_before = w.cta->cluster->barrier_phase + 1;
}

void RaceChecker::mbarrier_inval(const Cta& c, const LiveBarrier& barrier) {
  static_cast<State*>(c.cluster->races.get())->mbarriers[barrier.race_index].dead = true;
}

void RaceChecker::mbarrier_arrive(Warp& w, const LiveBarrier& barrier, bool relaxed) {
  WarpState& s = of(w);
  Meeting& m = state(w).mbarriers[barrier.race_index].meeting;
  m.advance(barrier.phase());
  if (relaxed) {
    m.current.clock.join(s.fenced[1], state(w).cluster);
    return;
  }
  m.current.join(s.known);
  next_epoch(s.known.clock, component(w, kSelf));
}

void RaceChecker::mbarrier_observe(Warp& w, const LiveBarrier& barrier, bool relaxed) {
  WarpState& s = of(w);
  Meeting& m = state(w).mbarriers[barrier.race_index].meeting;
  m.advance(barrier.phase());
  const uint32_t cluster = state(w).cluster;
  if (relaxed) {
    s.pending[1] = merged(s.pending[1], m.completed.clock.publish(cluster));
    return;
  }
  s.known.join(m.completed);
  s.known.clock.raise(warps_ * kAgents + barrier.race_index,
                      static_cast<uint32_t>(barrier.phase()));
}

void RaceChecker::mbarrier_use(Warp& w, const Cta& c, uint32_t offset, const LiveBarrier& barrier) {
  const State::BarrierState& known = state(w).mbarriers[barrier.race_index];
  if (&c != w.cta || knows(w, known.init)) return;
  if (known.fenced_before && of(w).cluster_waits >= known.fenced_before) return;
  const TimedAccess& init = known.init;
  w.exec->report(w, "mbarrier-init-unordered", plan::HazardClass::latent, w.active,
                 fmt::format("{} is used, and nothing orders this behind its initialisation by {}",
                             w.exec->shared_symbol(c, offset), agent(init)),
                 "__syncthreads() between mbarrier.init and the first use by other warps", offset,
                 w.exec->shared_symbol(c, offset));
}

}  // namespace ptxbench::emu
