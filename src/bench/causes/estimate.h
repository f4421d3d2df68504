#pragma once
// How long a launch would take on a GPU, from what the emulator counted. An estimate, never a
// measurement: it ranks kernels and says what binds them; docs/time-model.md says how far it can
// be believed.
//
// Each part of the machine that a launch needs gets a time; the launch takes as long as the
// busiest of them, and kInterference of the others. Where a part works while nothing else does
// (products behind the wait for their operands, a warp that drains its products before it goes
// on), its time is added instead of hidden.

#include <string>
#include <vector>

#include "bench/causes/machine.h"
#include "plan/kernel_costs.h"

namespace ptxbench::bench {

// What the assembler said of a kernel; zeros where nobody knows.
struct AssembledKernel {
  int registers = 0;                 // of a thread
  uint64_t spill_bytes = 0;          // stores and loads of a thread, as ptxas counts them
  bool products_waited_for = false;  // ptxas serialises wgmma (C7510 and its like)
};

// Diseases that are thought away, to see what they cost.
struct WhatIf {
  bool even_work = false;        // every SM has the same share
  bool coalesced = false;        // no sector more than the bytes need
  bool no_conflicts = false;     // shared memory without bank conflicts
  bool copies_beside = false;    // products while copies are in flight
  bool products_queued = false;  // the next wgmma is issued before the last has ended
  bool no_spills = false;
  bool no_atomics = false;
  bool no_barriers = false;
  bool full_occupancy = false;      // as many warps as an SM holds
  bool read_once = false;           // nothing is fetched twice from L2
  bool warpgroup_products = false;  // wgmma instead of mma.sync
  bool converged = false;           // all lanes of every warp take part
};

struct LaunchEstimate {
  std::string kernel;
  double ms = 0;
  double launch_ms = 0;  // of these: start of the kernel, first loads, last stores
  struct Term {
    std::string name;  // "products", "arithmetic", "shared memory", "L2", "memory", ...
    double ms = 0;
  };
  std::vector<Term> terms;  // longest first
  double imbalance = 1;     // of the busiest SM over the mean
  double waves = 0;         // CTAs over those that fit at once
  int ctas_per_sm = 1;
  std::string limited_by;  // what keeps further CTAs away: "registers", "shared memory", ...
};

// CTAs of the launch that fit on one SM at once, at least 1.
int resident_ctas(const plan::LaunchCosts& costs, const AssembledKernel& resources,
                  const Machine& machine, std::string* limited_by);

// The busiest SM over the mean, where CTAs start in order wherever there is room. CTAs that did
// not run are thought to be like those that did.
double imbalance(const plan::LaunchCosts& costs, int sms);

LaunchEstimate estimate(const plan::LaunchCosts& costs, const AssembledKernel& resources,
                        const Machine& machine, const WhatIf& what_if = {});

}  // namespace ptxbench::bench
