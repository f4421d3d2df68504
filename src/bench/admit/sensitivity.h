#pragma once
// Whether the result depends on all of its inputs by more than the ruler lets pass: every slice of
// every input is drawn anew, and the right result must move by a multiple of the tolerance.

#include <cstdint>
#include <string>

namespace ptxbench::bench::admit {

constexpr double kRequiredMove = 8;  // tolerances

struct Sensitivity {
  int64_t slices = 0;        // looked at, over all inputs
  double least = 0;          // smallest move
  std::string input, slice;  // where: "A", "[:, 64..127]"
  std::string workload;      // of the least

  // Counts a slice that moved the result by `moved`.
  void add(double moved, const std::string& of_input, const std::string& at) {
    if (slices++ > 0 && moved >= least) return;
    least = moved;
    input = of_input;
    slice = at;
  }
};

}  // namespace ptxbench::bench::admit
