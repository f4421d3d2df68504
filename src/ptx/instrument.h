#pragma once
// Rewrites a module so that running it counts its target instructions: proof of execution that
// needs no profiler.
//
// Where counters stand. All instructions of a basic block run equally often, so unguarded ones of a
// block share one counter (a new one after each call, which may not return), placed before the
// first of them; where the block has wgmmas and an earlier wgmma.fence, before that fence. That is
// one counter before each fence–wgmma…–commit group that is straight-line code, whose wgmmas are
// counted statically; where branches lie within the group, each of its blocks has a counter of its
// own, and one without a fence may make the assembler serialise (C7510). Measured on an H200: a
// counter at every wgmma serialises or spills, one before the fence does not. A guarded instruction
// has a counter of its own, because only lanes whose predicate holds count.
//
// What a counter is. Two u64 in a global buffer, warps and threads, at 16 bytes x its number; the
// lowest active lane adds 1 and the number of active lanes. The buffer's address stands in the
// module's constant variable `symbol`, which the executor sets, so signatures stay as they are.
// Thread counts are exact. Warp counts are exact for .sync.aligned instructions and count, for
// others, groups of lanes that came together.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ptx/ast.h"

namespace ptxbench::ptx {

// Families counted when nothing else is asked for: wgmma, bulk and tensor copies with their
// reductions and prefetches, mma, ldmatrix, stmatrix, tcgen05.
const std::vector<std::string>& default_families();

struct CounterSite {
  uint32_t counter = 0;
  std::string function, family;
  uint32_t line = 0;   // in the PTX that was instrumented
  std::string source;  // "gemm.cuh:112, inlined at …", "" without line information
};

struct Instrumentation {
  std::string ptx;  // empty: nothing to count, use the module as it is
  std::string symbol;
  uint32_t counters = 0;
  std::vector<CounterSite> sites;  // in the order of the text; several may share a counter
  uint64_t buffer_bytes() const { return uint64_t{16} * counters; }
};

// `families` are names as family() gives them; "tcgen05.*" stands for all that begin so. Empty: the
// default. Errors: "usage" (no such family), "unsupported" (older than PTX 6.2 or 32-bit).
Result<Instrumentation> instrument(const Module& module, std::vector<std::string> families = {});

struct ExecutedCount {
  uint64_t sites = 0, warps = 0, threads = 0;
};
// The buffer's words after the run, by family. Error "usage" if there are not two for each counter.
Result<std::map<std::string, ExecutedCount>> decode_counters(const Instrumentation& instrumentation,
                                                             std::span<const uint64_t> words);

}  // namespace ptxbench::ptx
