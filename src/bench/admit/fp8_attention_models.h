#pragma once
// FP8 attention to test a ruler with.

#include "bench/admit/battery.h"

namespace ptxbench::bench::admit {

// One walk over tiles of keys with a running maximum.
struct Fp8AttentionKernel {
  const char* name = "";
  const char* what = "";
  // Products in the tensor core of sm_90, P times p_scale rounded to e4m3; else all in fp64.
  bool tensor_core = false;
  double p_scale = 1;
  int64_t tile = 64;
  // Faults.
  bool no_descale_q = false, no_descale_k = false, no_descale_v = false, no_scale = false,
       base_2_lse = false, no_rescale = false, no_mask = false, shifted_mask = false,
       last_keys_dropped = false, first_keys_dropped = false, keys_of_next_head = false,
       values_of_next_head = false, mean_of_v = false, qk_in_e5m2 = false;
};

// O and LSE.
std::vector<Tensor> fp8_attention(const Problem& problem, const Fp8AttentionKernel& kernel);

std::vector<Fp8AttentionKernel> honest_fp8_attention();
std::vector<Fp8AttentionKernel> fp8_attention_faults(bool causal);

// One batch, one or two heads, at most 320 long. Cheats cannot be told on single ones.
Battery fp8_attention_battery(const Definition& definition);

}  // namespace ptxbench::bench::admit
