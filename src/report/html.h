#pragma once
// One self-contained page: data, charting library, styles and script in a single file that loads
// nothing. All that comes from candidates and models is data in it, never markup (docs/report.md).

#include <string>

#include "base/result.h"
#include "report/analysis.h"

namespace ptxbench::report {

struct HtmlOptions {
  std::string title = "ptxbench report";
  // Trajectories per group whose sources and verdicts go along: half of them the best, half the
  // worst. The rest keep their rows.
  int sources_per_group = 4;
  uint64_t sources_bytes = uint64_t{16} << 20;  // of all of them, packed
};

// Errors: "not-found" (no charting library), those of the store.
Result<std::string> render_html(const store::Store& store, const Dataset& data,
                                const Analysis& analysis, const HtmlOptions& options);

}  // namespace ptxbench::report
