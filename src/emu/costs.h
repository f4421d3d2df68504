#pragma once
// Counts what an execution costs (plan/kernel_costs.h): kept beside the ordinary ledger and only
// where it is asked for. One per launch, used by one host thread.

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emu/machine.h"
#include "plan/kernel_costs.h"

namespace ptxbench::emu {

struct SiteCount;  // executor.h

// Which pipe an instruction goes to, and how many machine instructions of it (64-bit integers
// take two).
struct PipeUse {
  plan::Pipe pipe = plan::Pipe::none;
  uint32_t count = 1;
};
PipeUse pipe_of(const ptx::Instruction& instruction);

// Cycles that a warp's access of `bytes` a lane (a power of two up to 32) to shared memory takes:
// wide accesses go in parts of 128 bytes, lanes with different words in one bank come one after
// the other, lanes with the same word together. `least`: if all words lay in different banks.
plan::AccessCost shared_access(const uint32_t* offset, uint32_t mask, uint32_t bytes);
// ldmatrix and stmatrix: rows of 16 bytes, eight at a time.
plan::AccessCost matrix_access(const uint32_t* row_offset, int rows);
// Sectors of 32 bytes; `lines`: of 128.
plan::AccessCost global_access(const uint64_t* address, uint32_t mask, uint32_t bytes,
                               std::vector<uint64_t>* sectors, uint32_t* lines);

class CostLedger {
 public:
  // `cache_bytes`: first-level cache that one CTA has for itself.
  CostLedger(const Kernel& kernel, uint32_t cache_bytes);

  void global(uint32_t pc, const Cta& cta, const uint64_t* address, uint32_t mask, uint32_t bytes,
              bool store);
  void shared(uint32_t pc, const uint32_t* offset, uint32_t mask, uint32_t bytes, bool store);
  void rows(uint32_t pc, const uint32_t* offset, int count, bool store);
  void atomic(uint32_t pc, const uint64_t* address, uint32_t mask, uint32_t bytes, bool on_shared);
  void bulk_load(uint32_t bytes, uint32_t receivers) {
    costs_.bulk_load_bytes += bytes, costs_.bulk_arrived_bytes += uint64_t{bytes} * receivers;
    costs_.copies++;
  }
  void bulk_store(uint32_t bytes, bool reduces) {
    (reduces ? costs_.bulk_reduce_bytes : costs_.bulk_store_bytes) += bytes;
  }
  void copy() { costs_.copies++, costs_.copied_by_warps++; }
  void exposed_wait(double share) { costs_.exposed_waits += share; }
  void matrix(Warp& w);
  void wgmma_wait(bool drained) { costs_.wgmma_waits++, costs_.wgmma_drains += drained; }
  void blocked(uint32_t pc) { blocked_[pc]++; }
  void end(const Cluster& cluster);

  // Everything but what is known of the launch as a whole.
  plan::LaunchCosts take(const std::vector<SiteCount>& counts);

 private:
  struct Site {
    plan::AccessCost cost;
    const char* kind = nullptr;
  };
  void note(uint32_t pc, const char* kind, const plan::AccessCost& cost);
  void add_sites();
  uint64_t missing_sectors(const Cta& cta);

  const Kernel& kernel_;
  plan::LaunchCosts costs_;
  std::vector<Site> sites_;  // by pc
  std::vector<uint64_t> blocked_;
  std::vector<uint64_t> cache_;  // tags: sector and CTA, where it hashes to
  std::vector<uint64_t> sectors_;
  std::unordered_map<uint64_t, uint64_t> atomic_lanes_;  // by address
};

}  // namespace ptxbench::emu
