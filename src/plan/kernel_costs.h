#pragma once
// What a launch costs besides being right: the counts that a time model and a reader's "why is it
// slow" need. Filled by the emulator where RunOptions::costs asks for it. Everything is counted, as
// PTX executes it; nothing here is a time. Counts are those of the CTAs that ran (`ctas_run` of
// `ctas`); who reads them scales them.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench::plan {

// Which part of an SM executes an instruction (CUDA C++ Programming Guide, table of throughput of
// native arithmetic instructions). `none`: no instruction of machine code is left of it (moves,
// address space conversions, parameter reads, labels of the assembler).
enum class Pipe : uint8_t {
  none,
  fma,       // fp32 and packed half arithmetic
  alu,       // integers, logic, comparisons, selection, minimum and maximum
  convert,   // between number formats
  special,   // ex2, lg2, rcp, sqrt, sin, cos, tanh
  fp64,      // likewise integer division, which is a long sequence
  exchange,  // between lanes: shuffles, votes, reductions of a warp
  memory,    // loads, stores, atomics, ldmatrix
  async,     // copies, barriers, fences
  matrix,    // mma.sync, wgmma
  control,   // branches
};
constexpr size_t kPipes = 11;

// Accesses to one memory. A unit is a 32-byte sector (global memory) or a cycle of 128 bytes
// (shared memory); `least` is how many the bytes asked for would have needed.
struct AccessCost {
  uint64_t requests = 0;  // by warps
  uint64_t bytes = 0;     // that lanes asked for
  uint64_t units = 0, least = 0;
  void add(const AccessCost& o) {
    requests += o.requests, bytes += o.bytes, units += o.units, least += o.least;
  }
};

// A place in the code and what it costs.
struct CostSite {
  std::string kind;  // "global-load", "global-store", "shared-load", "shared-store", "atomic",
                     // "mbarrier-wait", "barrier-wait"
  std::string file;  // of the CUDA source, innermost frame; "" without line information
  int line = 0, ptx_line = 0;
  std::string ptx;
  AccessCost cost;  // of waits: requests only, the times that a warp had to wait
};

// Matrix instructions of one type.
struct MatrixCost {
  std::string types;          // "bf16.bf16.f32"
  bool warpgroup = false;     // wgmma
  double flop = 0;            // multiply and add counted separately
  uint64_t shared_bytes = 0;  // that wgmma reads from shared memory
};

// One launch.
struct LaunchCosts {
  std::string kernel;
  std::array<uint32_t, 3> grid{}, block{}, cluster{};
  uint32_t shared_bytes = 0;  // of a CTA, static and dynamic, without the system's share
  uint64_t ctas = 0, ctas_run = 0;
  uint64_t warp_instructions = 0, thread_instructions = 0;
  std::array<uint64_t, kPipes> pipes{};    // warp instructions by Pipe
  std::vector<uint64_t> cta_instructions;  // of each CTA that ran, in the order of their ends
  std::vector<MatrixCost> matrix;

  AccessCost global_load, global_store;  // ld, st, cp.async
  uint64_t global_lines = 0;             // 128-byte lines of these requests, one by one
  uint64_t l2_load_sectors = 0;  // of global_load, those that a first-level cache would not have
  AccessCost shared_load, shared_store;                  // ld, st, ldmatrix, stmatrix
  uint64_t bulk_load_bytes = 0, bulk_arrived_bytes = 0;  // read once; written to every destination
  uint64_t bulk_store_bytes = 0, bulk_reduce_bytes = 0;  // to global memory
  AccessCost atomics;                                    // on global memory; units are sectors
  uint64_t hottest_atomic = 0;  // lanes that went for the most popular address
  AccessCost shared_atomics;    // units: lanes that have to come one after the other
  // Of the whole launch: every byte of a buffer at most once. Estimated where fewer CTAs ran.
  double unique_read_bytes = 0, unique_written_bytes = 0;

  // Matrix instructions issued by warps, and those issued while a copy was in flight; wgmma waits,
  // and those that left no wgmma in flight. Meaningful with AsyncMode::late.
  uint64_t matrix_instructions = 0, matrix_beside_copy = 0;
  uint64_t copies = 0;               // asynchronous ones, of warps
  uint64_t copied_by_warps = 0;      // of global_load.requests, those of cp.async
  double exposed_waits = 0;          // of a CTA, for copies while no other copy was in flight
  uint64_t barriers = 0;             // bar.sync and the like, of warps
  uint64_t static_instructions = 0;  // of the kernel, those that were executed
  uint64_t wgmma_waits = 0, wgmma_drains = 0;
  uint32_t matrix_warps = 0;  // most warps of a CTA that issued matrix instructions

  std::vector<CostSite> sites;  // dearest first, a few of each kind
};

// What to count, and of how many CTAs.
struct CostRequest {
  bool collect = false;
  uint64_t clusters = 0;      // of each launch, spread over the grid; 0: all
  uint64_t instructions = 0;  // no further cluster once warps have executed that many; 0: no limit
};

}  // namespace ptxbench::plan
