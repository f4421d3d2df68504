#pragma once
// Runs clusters of CTAs on one host thread.
//
// Warps: a warp is a set of fragments, lanes that share a pc. The fragment with the lowest pc runs,
// because compiled code reconverges at higher addresses; one that keeps branching backwards is
// rotated out, so a spinning lane cannot starve the lane it waits for. Waiting is never spinning: a
// fragment that must wait is parked with its condition, and a cluster in which nothing can run
// first performs asynchronous work that is still in flight (as late as allowed, so that a missing
// wait shows) and is deadlocked after that.

#include <memory>
#include <vector>

#include "emu/machine.h"

namespace ptxbench::emu {

struct SiteCount {
  uint64_t warps = 0, threads = 0;
};

struct TrafficCount {
  uint64_t global_load = 0, global_store = 0, shared_load = 0, shared_store = 0, bulk_load = 0,
           bulk_store = 0;
};

class Executor {
 public:
  explicit Executor(LaunchState& launch);
  ~Executor();

  // Takes clusters from the launch until none is left or the launch stops.
  void run();

  LaunchState& launch() { return launch_; }
  const Kernel& kernel() const { return *launch_.kernel; }
  const std::vector<SiteCount>& counts() const { return counts_; }
  const TrafficCount& traffic() const { return traffic_; }
  TrafficCount& traffic() { return traffic_; }
  void touch(const Allocation* a, uint64_t read, uint64_t written) {
    if (last_touched_ < touched_.size() && touched_[last_touched_].allocation == a) {
      touched_[last_touched_].read += read, touched_[last_touched_].written += written;
      return;
    }
    add_touch(touched_, a, read, written);
    last_touched_ = 0;
    while (touched_[last_touched_].allocation != a) last_touched_++;
  }
  const std::vector<Touched>& touched() const { return touched_; }
  CostLedger* costs() const { return costs_; }  // null: nobody asked for them
  void count_costs(CostLedger* costs) { costs_ = costs; }
  bool eager() const { return launch_.options->async == plan::AsyncMode::eager; }
  bool tracks_proxies() const { return tracks_proxies_; }
  RaceChecker* races() const { return launch_.races; }

  // ------------------------------------------------------------------ used by the handlers
  // Reports a hazard at the instruction that `w` executes now.
  void report(Warp& w, const char* kind, plan::HazardClass hazard, uint32_t lanes,
              std::string message, std::string hint = "", uint64_t address = 0,
              std::string symbol = "");
  void report_at(const Cta& cta, int warp, uint32_t pc, const char* kind, plan::HazardClass hazard,
                 uint32_t lanes, std::string message, std::string hint = "", uint64_t address = 0,
                 std::string symbol = "");
  // The same, and the launch ends as it would on silicon.
  void fault(Warp& w, const char* kind, uint32_t lanes, std::string message, std::string hint = "",
             uint64_t address = 0, std::string symbol = "");
  // Parks the current fragment until the condition holds; retry: the instruction is executed again
  // then, otherwise it counts as done.
  void block(Warp& w, const Wait& wait, bool retry);
  // The warp has synchronised with others (for the proxy-fence rule).
  static void woke(Warp& w, const Wait& wait);
  static void synchronised(Warp& w) { w.sync_seq = ++w.cta->sequence; }
  void exit_lanes(Warp& w, uint32_t lanes);
  void set_frame(Warp& w, uint32_t frame);
  void rotate(Warp& w);  // the current fragment spins: let another one run

  // In-flight bulk loads (executor_async.cc)
  void issue_load(Warp& w, BulkLoad load);
  void perform_load(Cluster& c, size_t index);
  // Performs loads that signal this barrier, oldest first, until the condition of `wait` holds.
  void perform_for(Cluster& c, const Wait& wait);
  void report_unfinished_loads(Cluster& c);  // at the end of a cluster
  void perform_store(Warp& w, const BulkStore& store);
  void finish_stores(Warp& w);  // at exit: everything still in flight
  void perform_cp_async(Warp& w, const CpAsync& copy);

  // Wgmma (ops_wgmma.cc)
  void perform_wgmmas(Warp& w, uint64_t target, bool alone);
  // This warp learns that its wgmmas below `target` are complete.
  void know_wgmmas(Warp& w, uint64_t target);

  bool satisfied(const Cta& cta, const Wait& wait) const;
  bool satisfied(const Warp& w, const Fragment& f) const;

  // Shared-memory shadow (shared_memory.cc)
  static void mark_clean(Cta& c, uint32_t offset, uint32_t bytes);  // written, nothing in flight
  static void mark_in_flight(Cta& c, uint32_t offset, uint32_t bytes);
  static void mark_barrier(Cta& c, uint32_t offset, bool live);
  static bool is_clean(const Cta& c, uint32_t offset, uint32_t bytes);
  void diagnose_read(Warp& w, Cta& c, uint32_t offset, uint32_t bytes, uint32_t lanes,
                     const char* reader);
  // Reports generic writes in [offset, offset+bytes) that no proxy fence covers for an async-proxy
  // read by w.
  void check_proxy(Warp& w, Cta& c, uint32_t offset, uint32_t bytes, const char* reader);
  // Reports an mbarrier that is handed to the async proxy before a fence covers its initialisation.
  void check_barrier_fence(Warp& w, uint32_t offset);
  // Reports a use of another CTA's mbarrier that is not ordered behind its initialisation.
  void check_init_order(Warp& w, Cta& c, uint32_t offset, uint32_t lanes);
  // Reports a write into bytes that an asynchronous operation still reads.
  void check_source_in_flight(Warp& w, Cta& c, uint32_t offset, uint32_t bytes, const char* writer);
  // arrival.cc: has this warp learnt (by a wait, or from someone who waited) that the bytes
  // arrived?
  static void stamp_arrival(Cta& c, uint32_t offset, uint32_t bytes, const LiveBarrier& barrier);
  static void clear_arrival(Cta& c, uint32_t offset, uint32_t bytes);
  // True if it has; otherwise reports the early read.
  bool check_arrival(Warp& w, Cta& c, uint32_t offset, uint32_t bytes, uint32_t lanes,
                     const char* reader);
  // Reports an asynchronous write to bytes that wgmmas read which this warp does not know complete.
  void check_readers(Warp& w, Cta& c, uint32_t offset, uint32_t bytes, const char* writer);
  static bool may_be_unobserved(const Warp& w, const Cta& c, uint32_t offset, uint32_t bytes);
  std::string shared_symbol(const Cta& c, uint32_t offset) const;

 private:
  enum class Outcome : uint8_t { done, deadlock, rotate };
  std::unique_ptr<Cluster> make_cluster(uint64_t index);
  void init_warp(Warp& w, Cta& cta, uint32_t index);
  Outcome run_cluster(Cluster& c);
  uint64_t grid_index(uint64_t taken, uint64_t limit, uint64_t total) const;
  bool run_warp(Warp& w, int budget);  // true if it executed anything
  bool pick_fragment(Warp& w);
  bool converged(Warp& w, const MicroOp& op, uint32_t pc);
  bool force_convergence(
      Cluster& c);               // a partially converged .aligned instruction that cannot complete
  bool force_wgmma(Cluster& c);  // a wgmma wait whose partner warps never come
  void matrix_access(Warp& w, const MicroOp& op, uint32_t pc);
  void report_deadlock(Cluster& c);
  void account(uint64_t instructions);

  LaunchState& launch_;
  std::vector<SiteCount> counts_;
  TrafficCount traffic_;
  std::vector<Touched> touched_;
  size_t last_touched_ = 0;
  CostLedger* costs_ = nullptr;
  uint8_t* constants_ = nullptr;
  std::vector<std::unique_ptr<Cluster>> pool_;  // finished clusters whose memory is used again
  bool tracks_proxies_ = false, random_schedule_ = false;
  bool budget_reported_ = false;
  uint64_t schedule_seed_ = 0;
  uint64_t since_account_ = 0;
};

inline Warp& warp_of(RegisterView& v) { return static_cast<Warp&>(v); }

}  // namespace ptxbench::emu
