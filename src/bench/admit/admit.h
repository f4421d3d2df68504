#pragma once
// Admission of a task: its ruler is tried on honest implementations and on cheats, at every
// workload and on every distribution of inputs, before anything is judged with it.

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/admit/sensitivity.h"
#include "bench/compare.h"
#include "bench/inputs.h"
#include "bench/task.h"

namespace ptxbench::bench::admit {

// A size at which the ruler is tried. Small workloads as they are. Of a published one K in full,
// since errors depend on it, M cut to 64..127 rows with its raggedness kept, N to 64 columns.
struct Form {
  std::string workload;
  AxisValues axes;
  bool reduced = false;
};

struct AdmitRequest {
  Task task;
  Seed seed;
  std::string date;  // of the report
  int threads = 0;   // 0: all cores
  bool sample =
      false;  // two sizes and three distributions only: for a quick look, not to be stored
  std::function<void(double fraction)> progress;  // may be empty
};

// Of one implementation or cheat over all sizes and distributions. `nearest`: for a cheat the
// smallest, for an honest one the largest of (statistic over bound), the worst of the four
// statistics each; a cheat is accepted, an honest one rejected, on the wrong side of 1.
struct EntryResult {
  std::string name, what;
  int64_t runs = 0, accepted = 0;
  double nearest = 0;
  std::string nearest_workload, nearest_distribution;
};

struct HonestPoint {
  int64_t k = 0;
  Distribution distribution{};
  double rel_frobenius = 0, tile_rel_frobenius = 0, misround = 0, tile_misround = 0;
};

struct Admission {
  std::string task, digest, seed, date;
  bool admitted = false, sample = false;
  std::vector<std::string> failures;  // why not, in words
  std::vector<Form> forms;
  std::vector<Distribution> distributions;
  std::vector<EntryResult> honest, battery;
  std::vector<NotApplicable> not_applicable;
  std::vector<HonestPoint> points;  // ascending k, then distribution
  Sensitivity sensitivity;
};

// Errors: "unsupported" (op_type), "io", "no-blas".
Result<Admission> admit(const AdmitRequest& request);

std::vector<Form> forms_of(const Task& task, bool sample);

// On inputs of integers or of single ones alone, a cheaper format or a dropped part of K may give
// the very same result: there cheats cannot be told, and only honest kernels are tried.
bool shows_cheats(Distribution distribution);

nlohmann::ordered_json to_json(const Admission& admission);

}  // namespace ptxbench::bench::admit
