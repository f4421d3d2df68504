#pragma once
// What the race checker keeps of a cluster. For race_*.cc only.

#include "emu/race_checker.h"
#include "emu/race_clock.h"

namespace ptxbench::emu {

// Agents of a warp; its component is warp * kAgents + Agent.
enum Agent : int {
  kSelf,
  kCopies,      // cp.async: clock counts copies
  kBulkReads,   // bulk stores: their reads of shared memory ...
  kBulkWrites,  // ... and their writes
  kWgmmaRows,   // wgmmas: reads of the warp's own rows of A
  kWgmma,       // of its warpgroup: known as far as all four warps' kWgmmaRows are
  kAgents
};

// What a thread hands on at a barrier.
struct HandedOn {
  VectorClock clock;
  // Sequentially consistent fences order across a barrier, too: "every thread fences, barrier,
  // thread 0 sets the flag", and the same backwards. By scope: what such fences released, and flags
  // that were read with .relaxed, in force behind the next one.
  SharedKnowledge fenced[4], read[4];
  void join(const HandedOn& o) {
    clock.join(o.clock);
    for (int k = 1; k < 4; k++)
      fenced[k] = merged(fenced[k], o.fenced[k]), read[k] = merged(read[k], o.read[k]);
  }
};

// A meeting point with phases: what was brought to the current phase, and to the one before.
struct Meeting {
  HandedOn current, completed;
  uint64_t phase = 0;
  // `now`: the phase that is current by the machine.
  void advance(uint64_t now) {
    if (now == phase) return;
    completed = std::move(current);
    current = {};
    phase = now;
  }
  // What was brought to the phase in which somebody who waits arrived.
  const HandedOn& brought_to(uint64_t arrived) const {
    return arrived == phase ? current : completed;
  }
};

struct RaceChecker::WarpState {
  HandedOn known;
  SharedKnowledge fenced[4];   // by scope: what the last fence of at least that released
  SharedKnowledge pending[4];  // read with .relaxed: in force behind a fence of that scope
  uint64_t cluster_waits = 0;  // cluster barriers waited for, up to this one
  uint32_t copies = 0;
  std::vector<uint32_t> copy_groups;  // copies issued at each commit
  // Bulk stores that are not known to be complete.
  struct Bulk {
    uint32_t number, lane;
    uint64_t group;  // ~0: not committed
    bool read;       // its reads are known to be complete
  };
  std::vector<Bulk> bulks;
  uint32_t bulks_issued = 0;
  std::array<uint64_t, 32> bulk_groups{};
};

struct RaceChecker::State {
  uint32_t cluster = 0;
  std::vector<WarpState> warps;  // by rank, then warp
  struct CtaState {
    std::vector<Granule> granules;
    AccessHistory history{64};
    std::array<Meeting, 16> barriers;
  };
  std::vector<CtaState> ctas;
  Meeting cluster_barrier;
  struct BarrierState {
    Meeting meeting;
    TimedAccess init;
    bool dead = false;
    uint64_t fenced_before = 0;  // cluster barrier behind which fence.mbarrier_init shows the init
  };
  std::vector<BarrierState> mbarriers;  // by LiveBarrier::race_index
  Locations locations;                  // in shared memory: rank << 24 | offset
};

inline RaceChecker::State& RaceChecker::state(const Warp& w) {
  return *static_cast<State*>(w.cta->cluster->races.get());
}

}  // namespace ptxbench::emu
