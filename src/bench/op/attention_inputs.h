#pragma once
// Inputs of attention. Small scores hide cheats: softmax is then nearly flat, and K in 8 bits looks
// like honest work. So the scores of every input set have a standard deviation of 2 or more.

#include "bench/inputs.h"

namespace ptxbench::bench {

// What Q and K are drawn from where a distribution of their own would make all scores small
// (scaled) or softmax one-hot (heavy tails).
Distribution score_distribution(Distribution distribution);

// Of all inputs in definition order. Q is drawn at twice the width. Where a distribution of its own
// would make all scores small (scaled) or softmax one-hot (heavy tails), Q and K are kept moderate
// and V has the distribution alone. In every head one group of 16 columns of V and of dO is scaled
// by 2^-20, where fp16 has no precision left. Inputs that are results of others are left at random
// values for the caller to fill in. `small_columns` false: without those groups.
Result<std::vector<Tensor>> attention_inputs(const Definition& definition, const AxisValues& axes,
                                             const Seed& seed, int threads,
                                             Distribution distribution, bool small_columns = true);

}  // namespace ptxbench::bench
