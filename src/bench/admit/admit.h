#pragma once
// Admission of a task: its ruler is tried on honest implementations and on cheats, at every
// workload and on every distribution of inputs, before anything is judged with it.

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/admit/battery.h"
#include "bench/inputs.h"
#include "bench/task.h"

namespace ptxbench::bench::admit {

// A size at which the ruler is tried: small workloads as they are, published ones reduced as the
// operation's battery says.
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
// smallest, for an honest one the largest distance(); a cheat is accepted, an honest one rejected,
// on the wrong side of 1. `as_right`: runs in which a cheat wrote the correctly rounded result
// itself, so that there was nothing to tell.
struct EntryResult {
  std::string name, what;
  int64_t runs = 0, accepted = 0, as_right = 0;
  double nearest = 0;
  std::string nearest_workload, nearest_distribution;
  std::vector<std::string> hidden_on;  // distributions on which a cheat cannot be told
};

// The largest errors of honest implementations in one output; by length of the reduction where the
// task's calibration names its axis (form 0), else by form (k 0).
struct HonestPoint {
  int64_t k = 0;
  size_t form = 0;
  Distribution distribution{};
  size_t output = 0;
  double rel_frobenius = 0, tile_rel_frobenius = 0, misround = 0, tile_misround = 0;
  double noise_ratio = 0, tile_noise_ratio = 0;
};

struct TriedDistribution {
  Distribution distribution{};
  bool battery = true;  // cheats were tried on it
};

struct Admission {
  std::string task, digest, seed, date, reduced_how;
  bool admitted = false, sample = false;
  std::vector<std::string> failures;  // why not, in words
  std::vector<Form> forms;
  std::vector<TriedDistribution> distributions;
  std::vector<EntryResult> honest, battery;
  std::vector<NotApplicable> not_applicable;
  std::vector<HonestPoint> points;  // ascending k, form, distribution, output
  std::vector<std::string> outputs;
  Sensitivity sensitivity;
};

// Errors: "unsupported" (op_type), "bad-task", "io", "no-blas".
Result<Admission> admit(const AdmitRequest& request);

// The operation's battery with the general cheats before its own. Errors of operation_of.
Result<Battery> battery_of(const Definition& definition);

std::vector<Form> forms_of(const Task& task, const Battery& battery, bool sample);

nlohmann::ordered_json to_json(const Admission& admission);

}  // namespace ptxbench::bench::admit
