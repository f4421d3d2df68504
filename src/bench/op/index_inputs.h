#pragma once
// Integer inputs of serving tasks: valid offsets, page tables and indices, drawn from the seed.

#include <cstdint>
#include <vector>

#include "bench/inputs.h"

namespace ptxbench::bench {

// `total` cut into `parts` ragged lengths, each at least its part of `least` (empty: 0); where the
// total is smaller than that, the last parts get less, down to nothing.
std::vector<int64_t> ragged_lengths(int64_t total, int64_t parts, const std::vector<int64_t>& least,
                                    const numeric::Random& random);

// 0 and the running sums of `lengths`.
std::vector<int64_t> offsets_of(const std::vector<int64_t>& lengths);

// `count` indices below `range`, distinct as long as there are enough, in random order.
std::vector<int64_t> shuffled_indices(int64_t count, int64_t range, const numeric::Random& random);

// As an int32 or int64 tensor of `spec`. Error "bad-task": another number of elements.
Result<Tensor> index_tensor(const TensorSpec& spec, const AxisValues& axes,
                            const std::vector<int64_t>& values);
std::vector<int64_t> indices_of(const Tensor& tensor);

// A number among the arguments.
Result<Tensor> scalar_tensor(const TensorSpec& spec, double value);

}  // namespace ptxbench::bench
