#pragma once
// Attention to test a ruler with. Honest implementations follow the arithmetic of kernels on tensor
// cores: products of the emulated tensor core in fp32 accumulators, probabilities and dS rounded to
// bf16, in the blocks and the order of a kernel. Cheats are right in fp64 but for the cheat itself.

#include <cstdint>
#include <vector>

#include "bench/admit/battery.h"
#include "bench/admit/tensor_product.h"

namespace ptxbench::bench::admit {

// What all heads of a case have in common.
struct AttentionSize {
  int64_t heads = 0, s = 0, d = 0;
  float scale = 1;
  bool causal = false;
  size_t matrix() const { return static_cast<size_t>(s * d); }
  int64_t visible(int64_t query) const { return causal ? query + 1 : s; }
};
AttentionSize attention_size(const Problem& problem);

// One walk over the keys with a running softmax.
struct ForwardOrder {
  int64_t block_keys = 128;
  bool last_block_first = false;
  float slack = 0;          // O is rescaled once a maximum has grown by more than 2^slack
  bool normalised = false;  // LSE first, then probabilities that add up to 1
  plan::TensorMode mode = plan::TensorMode::hw;
};
// O and LSE.
std::vector<Tensor> attention_forward(const Problem& problem, const ForwardOrder& order);

struct BackwardOrder {
  int64_t block_queries = 64, block_keys = 128;
  // dQ: partial sums of key blocks added up in memory in any order, or in theirs, or all in one
  // accumulator.
  enum class Dq { any_order, key_order, accumulator } dq = Dq::any_order;
  plan::TensorMode mode = plan::TensorMode::hw;
};
// dQ, dK, dV.
std::vector<Tensor> attention_backward(const Problem& problem, const BackwardOrder& order);

Battery attention_battery(const Definition& definition);
Battery attention_backward_battery(const Definition& definition);

}  // namespace ptxbench::bench::admit
