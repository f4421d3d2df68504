#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). Every value is a function of (seed, stream, index) alone, so any part of any
// tensor can be made on its own, in any order and on any number of threads.
//
// One Philox block mixes the 128-bit seed and the 64-bit stream number into the generator's 64-bit
// key and the upper half of its counter; the lower half counts blocks of four 32-bit words.
//
// Results are the same bits on every x86-64 machine: no library functions, no contracted
// multiply-adds.

#include <array>
#include <cstdint>
#include <span>

#include "numeric/dtype.h"

namespace ptxbench::numeric {

struct Seed {
  uint64_t high = 0, low = 0;
  bool operator==(const Seed&) const = default;
};

// One block: ten rounds, as published.
std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class Random {
 public:
  explicit Random(Seed seed, uint64_t stream = 0);

  // The index-th of the stream's 2^66 words.
  uint32_t word(uint64_t index) const;
  uint64_t word64(uint64_t index) const;  // words 2*index and 2*index+1
  // [0, 1), a multiple of 2^-24, from word(index).
  float uniform(uint64_t index) const;
  // Standard normal from word(index) by inverting the distribution; |x| < 6.4.
  float normal(uint64_t index) const;
  // [0, bound) without bias worth mentioning (64-bit multiply-shift); bound > 0.
  uint64_t below(uint64_t index, uint64_t bound) const;

  // values[i] = f(first + i) of the functions above; fast.
  void fill_words(uint64_t first, std::span<uint32_t> values) const;
  void fill_uniform(uint64_t first, std::span<float> values) const;
  void fill_normal(uint64_t first, std::span<float> values) const;
  // mean + sigma * normal, rounded to the element type; `bytes` holds count elements.
  void fill_normal(uint64_t first, DType type, void* bytes, uint64_t count, float mean = 0,
                   float sigma = 1) const;

 private:
  std::array<uint32_t, 2> key_{};
  std::array<uint32_t, 2> upper_{};
};

}  // namespace ptxbench::numeric
