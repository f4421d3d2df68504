#pragma once
// The right answer in fp64, by blocks of rows so that memory stays bounded. Shares no code with any
// kernel.

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"

namespace ptxbench::bench {

// Called with first row, number of rows and count x columns values; blocks begin at multiples
// of 16.
using BlockSink = std::function<void(int64_t, int64_t, std::span<const double>)>;

// C[m,n] = sum over k of A[m,k] * B[n,k] in fp64; a and b are bf16 bits, row-major. Error
// "no-blas".
Result<void> gemm_fp64(std::span<const uint16_t> a, std::span<const uint16_t> b, int64_t m,
                       int64_t n, int64_t k, int threads, const BlockSink& sink);

}  // namespace ptxbench::bench
