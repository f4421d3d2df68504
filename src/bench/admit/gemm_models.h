#pragma once
// GEMMs to test a ruler with: honest implementations, which it must accept, and cheats, which it
// must reject. All compute on the CPU; what stands for a tensor core is the emulator's model of it.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/admit/battery.h"
#include "bench/admit/tensor_product.h"

namespace ptxbench::bench::admit {

// A case as the models use it.
struct GemmCase {
  int64_t m = 0, n = 0, k = 0;
  uint16_t poison = 0;
  Words a, b;                 // [m,k], [n,k]
  std::vector<double> right;  // [m,n]
};
GemmCase gemm_case(const Case& c);

struct GemmModel {
  std::string name, what;
  std::function<Words(const GemmCase&)> compute;
};
const std::vector<GemmModel>& honest_gemms();

// K in full, since errors depend on it; M cut to 64..127 rows with its raggedness kept, N to 64
// columns. Cheats cannot be told on integers or on single ones: there a cheaper format or a
// dropped part of K may give the very same result.
Battery gemm_battery();

// The reference is linear in each input, so the move by a changed slice of K is the product of the
// change with the other input's slice: the median tile's, in `tolerance`s of a tile's relative
// Frobenius error. Error "no-blas".
Result<Sensitivity> gemm_sensitivity(const GemmCase& g, const GemmCase& other, double tolerance);

}  // namespace ptxbench::bench::admit
