#pragma once
// Whether the result depends on all of its inputs by more than the ruler lets pass: every slice of
// K of every input is drawn anew, and the right result must move by a multiple of the tolerance.

#include <string>

#include "bench/admit/gemm_models.h"

namespace ptxbench::bench::admit {

constexpr double kRequiredMove = 8;   // tolerances
constexpr int64_t kSliceLength = 64;  // of K; a remainder belongs to the last slice

struct Sensitivity {
  int64_t slices = 0;  // looked at, over all inputs
  double least = 0;    // smallest move: the median tile's, in worst-tile tolerances
  std::string input;   // where
  int64_t begin = 0, end = 0;
};

// `other`: a case of the same size with inputs of another seed. `tolerance`: the relative Frobenius
// error allowed in a tile. Error "no-blas".
Result<Sensitivity> measure_sensitivity(const GemmCase& g, const GemmCase& other, double tolerance);

}  // namespace ptxbench::bench::admit
