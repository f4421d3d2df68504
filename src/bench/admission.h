#pragma once
// admission.json of a task: the record that its ruler was tested (`ptxbench tasks admit`). It holds
// a digest of the task's other files, so that a task changed afterwards counts as untested.

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "bench/task.h"

namespace ptxbench::bench {

constexpr int kAdmissionVersion = 1;

// Of definition.json, workloads.jsonl, requirements.json and calibration.json, byte by byte; a file
// that is not there counts as empty. Error
// "io".
Result<std::string> task_digest(const TaskFiles& task);

// Whether bounds are made of errors measured at lengths of a reduction; else they are in units of
// the honest rounding that the oracle states for each element.
bool errors_by_length(const Calibration& calibration);

// Sets task.admission and, where the task is admitted, adds to task.calibration the honest errors
// measured on the distribution that candidates are judged on (mixed). No file is no error; a broken
// one is ("bad-task").
Result<void> load_admission(Task& task);

// {"points": [{"k": ..., "distributions": {NAME: {rel_frobenius, misround, tile_misround}}}]}: of
// the distribution of that name, or ("") the largest of each over all.
Result<std::vector<HonestError>> parse_honest_points(const JsonRef& object,
                                                     const std::string& distribution);

// Keeps `honest` ascending in k; at a k that is there already the larger errors win.
void add_honest(const std::vector<HonestError>& points, Calibration& calibration);

}  // namespace ptxbench::bench
