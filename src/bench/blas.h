#pragma once
// dgemm from OpenBLAS, opened when first needed.

#include <cstdint>

#include "base/result.h"

namespace ptxbench::bench {

// C[m,n] = A[m,k] * B[n,k]^T, all row-major and dense. Error "no-blas" if the library is missing.
Result<void> dgemm_nt(int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c,
                      int threads);

}  // namespace ptxbench::bench
