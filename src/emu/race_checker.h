#pragma once
// Finds races: two accesses to the same bytes by different warps, one of them a write, that nothing
// orders. Whether they are ordered follows from synchronisation alone (vector clocks), never from
// the order in which the emulator happened to run them, so that a race is found on every schedule.
//
// Edges of the order: barriers and named barriers, cluster barriers, arrivals on mbarriers and the
// waits for their phases, release and acquire operations (also fence and relaxed or volatile
// access) where one reads what the other wrote and their scopes include each other, completion of
// copies, bulk copies and wgmmas where it is waited for. Atomics, and strong accesses whose scopes
// include each other, do not race. What is a race is decided by the memory model of the PTX ISA:
// two equal values written without an order are one, and so is a flag polled without a fence
// afterwards.
//
// Lanes of a warp count as one thread: a missing __syncwarp is not looked for. Memory touched by
// one launch only is looked at: launches are ordered by their stream. One host thread runs the
// launch.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "emu/machine.h"
#include "emu/race_clock.h"
#include "emu/race_shadow.h"

namespace ptxbench::emu {

class RaceChecker {
 public:
  explicit RaceChecker(LaunchState& launch) : launch_(launch) {}
  ~RaceChecker();

  void start(Cluster& cluster);  // its threads begin
  void report_counts();          // at the end of the launch, before findings are taken

  // ------------------------------------------------------------ accesses of the current
  // instruction At most 32 bytes a lane; offsets in shared memory of `c`.
  void shared(Warp& w, Cta& c, const uint32_t* offset, uint32_t lanes, uint32_t bytes, bool write,
              MemoryOrder order = {});
  void global(Warp& w, const uint64_t* address, uint32_t lanes, uint32_t bytes, bool write,
              MemoryOrder order = {});
  // Of one lane. `changes`: read, modify, write.
  void atomic(Warp& w, Cta* shared_cta, uint64_t address, uint32_t bytes, MemoryOrder order);
  // Device memory that gets another owner.
  void forget(uint64_t address, uint64_t bytes) { global_.forget(address, bytes); }

  // ------------------------------------------------------------ synchronisation
  void fence(Warp& w, SyncScope scope, bool sequential);
  void barrier_arrive(Warp& w, uint32_t id);
  void cluster_arrive(Warp& w, bool relaxed);
  void woke(Warp& w, const Wait& wait);
  void exit(Warp& w);  // the warp's last lanes
  void mbarrier_init(Warp& w, Cta& c, uint32_t offset, LiveBarrier& barrier);
  // fence.mbarrier_init: a cluster barrier hands the warp's initialisations on, .relaxed ones, too.
  void mbarrier_init_fence(Warp& w);
  void mbarrier_inval(const Cta& c, const LiveBarrier& barrier);
  // Before the arrival takes effect.
  void mbarrier_arrive(Warp& w, const LiveBarrier& barrier, bool relaxed);
  void mbarrier_observe(Warp& w, const LiveBarrier& barrier, bool relaxed);
  // Reports a use of a barrier that is not ordered behind its initialisation in the same CTA.
  void mbarrier_use(Warp& w, const Cta& c, uint32_t offset, const LiveBarrier& barrier);

  // ------------------------------------------------------------ asynchronous operations
  void copy(Warp& w, const CpAsync& copy);
  void copy_commit(Warp& w);
  void copy_wait(Warp& w, uint64_t groups_left);  // ~0: all, committed or not
  void copy_arrive(Warp& w, const LiveBarrier& barrier);
  void bulk_load(Warp& w, const BulkLoad& load);
  void bulk_store(Warp& w, const BulkStore& store);
  void bulk_commit(Warp& w, uint32_t lane);
  void bulk_wait(Warp& w, uint32_t lanes, uint64_t groups_left, bool read);
  // The warp's own share of wgmma `number`: its 16 rows of A (if in shared memory), and B.
  void wgmma(Warp& w, const WgmmaSite& site, uint64_t a_descriptor, uint64_t b_descriptor,
             uint64_t number, bool first);
  void wgmma_complete(Warp& w, uint64_t count);  // the warp knows its first `count` complete

 private:
  struct State;
  struct WarpState;
  struct Place;  // of an access, for reports
  // What threads released to one location, by scope; see release().
  struct Location {
    SharedKnowledge released[4];
    uint64_t cta = 0;
    uint32_t cluster = 0;
  };
  using Locations = std::unordered_map<uint64_t, Location>;

  static State& state(const Warp& w);
  WarpState& of(const Warp& w) const;
  uint32_t component(const Warp& w, int kind) const;
  bool knows(const Warp& w, const TimedAccess& before) const;
  bool compatible(const TimedAccess& a, const TimedAccess& b) const;
  void touch(Warp& w, AccessHistory& shadow, Granule& g, const TimedAccess& now, bool write,
             const Place& place);
  void touch_shared(Warp& w, Cta& c, uint32_t offset, uint32_t bytes, TimedAccess now, bool write);
  void touch_global(Warp& w, uint64_t address, uint64_t bytes, TimedAccess now, bool write);
  void bulk_global(Warp& w, const plan::TensorMapArgs* map, const Coordinates* at, uint32_t shared,
                   uint64_t address, uint32_t bytes, const TimedAccess& now, bool write);
  void operand(Warp& w, uint64_t descriptor, bool mn_major, int bytes, int first, int count, int k,
               const TimedAccess& read, bool record);
  TimedAccess access(const Warp& w, SyncScope scope) const;
  Locations& locations(const Warp& w, const Cta* shared_cta);
  void synchronise(Warp& w, Locations& all, uint64_t key, MemoryOrder order, bool reads,
                   bool writes);
  void release(Warp& w, Location& to, MemoryOrder order, bool adds);
  void acquire(Warp& w, const Location& from, MemoryOrder order);
  void report(Warp& w, const TimedAccess& now, bool write, const TimedAccess& before,
              bool was_write, const Place& place);
  std::string agent(const TimedAccess& a) const;

  LaunchState& launch_;
  uint32_t warps_per_cta_ = 0, warps_ = 0;  // of a cluster
  AccessHistory global_history_{24};
  GlobalGranules global_;
  Locations global_locations_;
  std::unordered_map<uint64_t, uint64_t> pairs_;  // pc << 32 | earlier pc: how often
  bool limit_reported_ = false;
};

}  // namespace ptxbench::emu
