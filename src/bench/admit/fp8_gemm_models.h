#pragma once
// Block-scaled FP8 GEMMs to test a ruler with.

#include "bench/admit/battery.h"

namespace ptxbench::bench::admit {

// K in full, since errors depend on it; 64 rows, 192 columns. Cheats cannot be told on single ones
// nor on inputs of one sign.
Battery fp8_gemm_battery(const Definition& definition);

}  // namespace ptxbench::bench::admit
