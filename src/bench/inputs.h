#pragma once
// A workload's tensors. Inputs are a function of the seed alone, so every run can be replayed.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/task.h"
#include "numeric/random.h"

namespace ptxbench::bench {

using numeric::Seed;
Seed draw_seed();                                 // from the operating system
std::string to_hex(const Seed& seed);             // 32 digits
Result<Seed> parse_seed(const std::string& hex);  // 1..32 hex digits; error "usage"

struct Tensor {
  TensorSpec spec;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

// Inputs in definition order. The rows of each input mix distributions, placed at random: most are
// N(0,1), a fifth N(0,1) + N(0,100)·Bern(0.001), a tenth adversarial (scaled by powers of two,
// small integers, a single one, all of one sign, weight on the last columns). Error "unsupported"
// for a dtype without a generator.
Result<std::vector<Tensor>> make_inputs(const Definition& definition, const AxisValues& axes,
                                        const Seed& seed, int threads);

// Outputs full of the poison pattern.
Result<std::vector<Tensor>> make_outputs(const Definition& definition, const AxisValues& axes,
                                         uint16_t poison);

// A bf16 NaN with a payload drawn from the seed; never one that hardware produces (0x7fff, 0x7fc0,
// 0xffc0).
uint16_t poison_pattern(const Seed& seed);

}  // namespace ptxbench::bench
