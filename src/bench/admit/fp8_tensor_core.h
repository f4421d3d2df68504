#pragma once
// How the tensor core of sm_90 adds FP8 products into fp32 (tests/data/hw/README.md): the products
// of a step of 32 and the accumulator are cut at 2^-13 of the largest, their sum to 14 significant
// bits. Written from that description, apart from the emulator.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace ptxbench::bench::admit {

constexpr int kFp8Step = 32;

// Clears what lies below 13 bits behind the leading one.
inline float cut_to_14_bits(float x) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & ~uint32_t{0x3ff});
}

inline float fp8_step(float accumulator, const float (&products)[kFp8Step]) {
  float largest = std::abs(accumulator);
  for (float p : products) largest = std::max(largest, std::abs(p));
  if (!(largest > 0x1p-100f)) return 0;  // what a maximum that grew by far leaves of a sum
  const float per_unit =
      std::bit_cast<float>((254u + 13u - (std::bit_cast<uint32_t>(largest) >> 23)) << 23);
  int32_t sum = static_cast<int32_t>(accumulator * per_unit);  // |x| < 2^14 each
  for (float p : products) sum += static_cast<int32_t>(p * per_unit);
  return cut_to_14_bits(static_cast<float>(sum) / per_unit);
}

// accumulator + sum of a[i] b[i], `count` a multiple of the step.
inline float fp8_sum(float accumulator, const float* a, const float* b, int64_t count) {
  float products[kFp8Step];
  for (int64_t k = 0; k < count; k += kFp8Step) {
    for (int i = 0; i < kFp8Step; ++i) products[i] = a[k + i] * b[k + i];
    accumulator = fp8_step(accumulator, products);
  }
  return accumulator;
}

}  // namespace ptxbench::bench::admit
