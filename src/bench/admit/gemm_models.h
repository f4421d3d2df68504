#pragma once
// GEMMs to test a ruler with: honest implementations, which it must accept, and cheats, which it
// must reject. All compute on the CPU; what stands for a tensor core is the emulator's model of it.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/inputs.h"
#include "bench/task.h"

namespace ptxbench::bench::admit {

using Words = std::vector<uint16_t>;  // bf16 bits

// One size with the inputs of one seed and distribution, and the fp64 result.
struct GemmCase {
  int64_t m = 0, n = 0, k = 0;
  uint16_t poison = 0;
  Words a, b;                 // [m,k], [n,k]
  std::vector<double> right;  // [m,n]
  Words earlier;              // the correctly rounded result of other inputs of that size
};
// Errors of make_inputs and gemm_fp64.
Result<GemmCase> make_case(const Definition& definition, const AxisValues& axes, const Seed& seed,
                           Distribution distribution);

struct Implementation {
  std::string name, what;
  std::function<Words(const GemmCase&)> compute;
};
const std::vector<Implementation>& honest_gemms();
const std::vector<Implementation>& null_gemms();

// Entries of the general battery that mean nothing here, and why.
struct NotApplicable {
  std::string name, why;
};
const std::vector<NotApplicable>& not_applicable_to_gemm();

}  // namespace ptxbench::bench::admit
