#pragma once
// dgemm from OpenBLAS, opened when first needed.

#include <cstdint>

#include "base/result.h"

namespace ptxbench::bench {

// C[m,n] = A[m,k] * B[n,k]^T, all row-major and dense. Error "no-blas" if the library is missing.
Result<void> dgemm_nt(int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c,
                      int threads);

// C[m,n] = beta * C + op(A) * op(B), row-major and dense; op(X) is X or, where `..._transposed`,
// the transpose of the stored X. Error "no-blas".
struct Product {
  bool a_transposed = false, b_transposed = false;
  int64_t m = 0, n = 0, k = 0;
  const double* a = nullptr;
  const double* b = nullptr;
  double* c = nullptr;
  double beta = 0;
};
Result<void> dgemm(const Product& product, int threads);

}  // namespace ptxbench::bench
