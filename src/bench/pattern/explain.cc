// From the special to the general: formulas that must give the very bits first, then those with no
// freedom, searches after them, and what only describes the places last.
#include "bench/pattern/explain.h"

#include "bench/pattern/samples.h"

namespace ptxbench::bench {

Explanation explain_gemm(const GemmView& gemm, std::span<const uint64_t> bad_tiles) {
  const pattern::Samples samples(gemm, bad_tiles);
  for (auto* group :
       {pattern::explain_precision, pattern::explain_contents, pattern::explain_reduction,
        pattern::explain_layout, pattern::explain_swizzle, pattern::explain_scatter}) {
    Explanation explanation = group(samples);
    if (!explanation.kind.empty()) return explanation;
  }
  return {};
}

}  // namespace ptxbench::bench
