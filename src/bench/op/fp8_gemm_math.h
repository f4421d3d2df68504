#pragma once
// D[m,n] = sum over K blocks b of SF_A[m,b] * SF_B[.,b] * sum over the block of A[m,k] B[n,k] in
// fp64, with the variance that an honest kernel's arithmetic gives each element.

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"

namespace ptxbench::bench {

struct Fp8Gemm {
  static constexpr int64_t kBlock = 128;  // of K
  int64_t m = 0, n = 0, k = 0;
  std::span<const uint8_t> a, b;                 // e4m3 [m,k], [n,k]
  std::span<const float> scale_a, scale_b;       // [m,k/128], [ceil(n/scale_b_rows),k/128]
  int64_t scale_b_rows = 128;                    // rows of B that share a scale: 128 or 1
  int64_t blocks() const { return k / kBlock; }  // k is a multiple of 128
};

// First row, number of rows, values and variances, count x n each; blocks begin at multiples of 16.
using NoisyBlockSink =
    std::function<void(int64_t, int64_t, std::span<const double>, std::span<const double>)>;

// The variance is that of one rounding to bf16 and of the tensor core of sm_90, which is the least
// exact of those that are honest (tests/data/hw: products of a step of 32 and the accumulator are
// cut at 2^-13 of the largest, the sum to 13 bits of mantissa): see fp8_gemm_math.cc. Kernels that
// sum a block exactly lie below. Error "no-blas".
Result<void> fp8_gemm_fp64(const Fp8Gemm& gemm, int threads, const NoisyBlockSink& sink);

}  // namespace ptxbench::bench
