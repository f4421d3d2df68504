#pragma once
// The skeleton of a kernel, for telling copies from independent work: which instruction families
// follow each other, how deep in loops, and how basic blocks are joined. Names, registers, labels,
// constants, the order of declarations and of blocks do not enter; neither do moves, address
// conversions and parameter loads, which compilers sprinkle differently. Repetition counts by its
// logarithm, so that another unrolling factor changes little.

#include <cstdint>
#include <utility>
#include <vector>

#include "ptx/ast.h"

namespace ptxbench::ptx {

struct Fingerprint {
  // Hash of a feature and how often it occurs, sorted by hash. A feature is three families in a row
  // within a block (with markers for its ends) at a loop depth, or a pair of joined blocks.
  std::vector<std::pair<uint64_t, uint32_t>> features;
  uint32_t instructions = 0;  // that entered
  bool operator==(const Fingerprint&) const = default;
};

Fingerprint fingerprint(const Function& function, const Module& module);
// Of all functions of the module together.
Fingerprint fingerprint(const Module& module);

// Weighted Jaccard index of the features: 1 for the same skeleton, 0 for nothing in common (two
// empty fingerprints: 0, because nothing was compared).
double similarity(const Fingerprint& a, const Fingerprint& b);

}  // namespace ptxbench::ptx
