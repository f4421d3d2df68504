#pragma once
// Why attention's values are wrong. Every hypothesis is a formula for the rows that the faulty
// kernel would have written, computed in fp64 from the inputs; one is named only if it reproduces
// nearly all of the wrong rows looked at, to within a few units of honest rounding.

#include <cstdint>
#include <span>

#include "bench/inputs.h"
#include "bench/pattern/explain.h"

namespace ptxbench::bench {

enum class AttentionOutput { o, lse, dq, dk, dv };

struct AttentionView {
  std::span<const Tensor> inputs;  // Q, K, V; backward: Q, K, V, O, dO, L; [heads,s,d], L [heads,s]
  const Tensor* written = nullptr;
  AttentionOutput output{};
  int64_t batches = 1, heads = 1;  // heads of one batch
  int64_t s = 0, d = 0;
  double scale = 1;
  bool causal = false;
  bool backward() const { return output != AttentionOutput::o && output != AttentionOutput::lse; }
};

// `bad_tiles`: of the output as matrices [s,d], or columns [s,1] for LSE. Looks at some thirty rows
// whatever the size.
Explanation explain_attention(const AttentionView& view, std::span<const uint64_t> bad_tiles);

}  // namespace ptxbench::bench
