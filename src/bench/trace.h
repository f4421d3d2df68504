#pragma once
// FlashInfer Trace: a verdict as a `trace` document, and what such a document says.

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "bench/inputs.h"
#include "bench/verdict.h"

namespace ptxbench::bench {

// {definition, workload{uuid, axes, inputs}, solution, evaluation{status, environment, timestamp,
// log, correctness, performance}}. The format demands numbers where there are none: `performance`
// of a PASSED evaluation is all zeros on the emulator (environment.libs says so), and `correctness`
// is left out where the status forbids it. What the format has no field for is in the log.
Json to_trace(const Verdict& verdict, const std::vector<std::string>& input_names,
              const std::string& timestamp, const InputSources& sources = {});

struct TraceDocument {
  std::string definition, uuid;
  std::vector<std::pair<std::string, int64_t>> axes;
  std::optional<std::string> solution;
  std::optional<std::string> status;  // none: a workload only
  std::optional<double> max_abs, max_rel;
  // Of traces that this program wrote.
  std::optional<Seed> seed;
  std::string arch;
};

// Error "usage": what is wrong, at which place in `file`.
Result<TraceDocument> read_trace(const std::string& text, const std::string& file);

}  // namespace ptxbench::bench
