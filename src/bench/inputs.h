#pragma once
// A workload's tensors. Inputs are a function of the seed alone, so every run can be replayed.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/task.h"
#include "numeric/dtype.h"
#include "numeric/random.h"

namespace ptxbench::bench {

using numeric::Seed;
Seed draw_seed();                                 // from the operating system
std::string to_hex(const Seed& seed);             // 32 digits
Result<Seed> parse_seed(const std::string& hex);  // 1..32 hex digits; error "usage"

struct Tensor {
  TensorSpec spec;
  numeric::DType type = numeric::DType::bfloat16;  // of spec
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

// What the rows of an input hold.
enum class Distribution {
  mixed,       // what candidates are judged on: each row one of the others, at random
  normal,      // N(0,1)
  spiky,       // N(0,1) + N(0,100)·Bern(0.001)
  scaled,      // N(0,1) times a power of two from 2^-8 to 2^2, by row
  integers,    // small integers: sums are exact in any order
  one_hot,     // a single one
  one_sign,    // |N(0,1)|: sums grow with their length
  tail_heavy,  // the last 16 columns times 8
};
constexpr int kDistributions = 8;
const char* name(Distribution distribution);  // "mixed", "one-sign", ...

// Inputs in definition order. In `mixed` 70 % of the rows are normal, 20 % spiky, 10 % one of the
// remaining kinds. Integers need a range (InputSource). Errors: "unsupported" for a dtype without a
// generator, those of apply_sources.
Result<std::vector<Tensor>> make_inputs(const Definition& definition, const AxisValues& axes,
                                        const Seed& seed, int threads,
                                        Distribution distribution = Distribution::mixed,
                                        const InputSources& sources = {});

// What does not come from the seed: numbers and blobs take the place of what was drawn. Errors:
// "bad-task" where a blob has another type or shape than the definition, those of read_safetensor.
Result<void> apply_sources(const InputSources& sources, std::vector<Tensor>& inputs);

// One of them: `index` is its place in the definition.
Result<Tensor> make_input(const TensorSpec& spec, const AxisValues& axes, size_t index,
                          const Seed& seed, int threads, Distribution distribution);

// Outputs full of the poison pattern of their types.
Result<std::vector<Tensor>> make_outputs(const Definition& definition, const AxisValues& axes,
                                         uint16_t poison);

// The pattern of an element: a NaN of the type, made from `poison` where it has room for a payload;
// integers have no value to spare, so there it is one that is merely unlikely.
uint64_t poison_bits(numeric::DType type, uint16_t poison);

// A bf16 NaN with a payload drawn from the seed; never one that hardware produces (0x7fff, 0x7fc0,
// 0xffc0).
uint16_t poison_pattern(const Seed& seed);

}  // namespace ptxbench::bench
