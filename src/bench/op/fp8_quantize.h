#pragma once
// Quantisation of inputs to e4m3 as the published tasks do it: the largest magnitude of a block
// becomes 448, and the block's fp32 scale times the element gives the value back.

#include <cstdint>

#include "bench/inputs.h"

namespace ptxbench::bench {

constexpr double kE4m3Max = 448;

// `values`: float32 [rows, columns]. A block has `block_rows` x `block_columns` elements (the last
// ones fewer). Returns the elements as e4m3 (shape of `values`) and scales, float32
// [ceil(rows / block_rows), ceil(columns / block_columns)].
struct Quantized {
  std::vector<uint8_t> elements;
  std::vector<float> scales;
};
Quantized quantize_e4m3(const Tensor& values, int64_t block_rows, int64_t block_columns,
                        int threads);

}  // namespace ptxbench::bench
