#pragma once
// A task: one folder with a FlashInfer-Trace definition and its workloads, plus what the evaluator
// needs (required instructions, honest errors). Folders are found at run time; adding one needs no
// rebuild.
//
// definition.json: name, op_type, axes {const|var}, inputs and outputs {shape, dtype}, reference,
//     tags.
// The rest may be missing:
// workloads.jsonl: one workload a line, bare or wrapped in a trace: {uuid, axes, inputs, published,
//     device}.
// requirements.json: compute type and instruction families per architecture; FLOP of op_types that
//     only the folder knows. Without it any correct candidate reaches level 5.
// calibration.json: honest errors measured on hardware and the bounds made from them. Without it
//     the published tolerance decides.
// admission.json: what `ptxbench tasks admit` found (bench/admission.h).
// reference.cu: the right outputs of an op_type that this program does not know
//     (bench/op/user_reference.h).
//
// A folder of tasks may also be a FlashInfer-Trace dataset (bench/trace_folder.h).

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ptxbench::bench {

struct Axis {
  std::string name;
  bool constant = false;
  int64_t value = 0;  // of a constant axis
  std::string description;
};

struct TensorSpec {
  std::string name;
  std::vector<std::string> shape;  // axis names or decimal numbers
  std::string dtype;               // "bfloat16", "float32", ...
  bool scalar = false;  // "shape": null: a number among the host function's arguments, no tensor
};

struct Definition {
  std::string name, op_type, description, reference;
  std::vector<std::string> tags;
  std::vector<Axis> axes;          // in the file's order
  std::vector<TensorSpec> inputs;  // in the file's order, which is the argument order
  std::vector<TensorSpec> outputs;
  // "S % 128 == 0" is kept, and "AXIS == expression of other axes" (as Python, bench/expression.h)
  // gives an axis its value; what else is said is for people.
  std::vector<std::string> constraints;
};

// Where an input of a workload comes from, if not from the seed.
struct InputSource {
  enum class Kind { random, scalar, safetensors };
  Kind kind = Kind::random;
  double value = 0;            // scalar; booleans are 0 and 1
  std::filesystem::path path;  // safetensors
  std::string written_path;    // the same, as the workload has it
  std::string tensor_key;
  // Random integers: low <= x < high; low = high: the operation's own choice.
  int64_t low = 0, high = 0;
};
using InputSources = std::map<std::string, InputSource>;  // by name of the input

struct Workload {
  std::string uuid;
  std::vector<std::pair<std::string, int64_t>> axes;  // may override constant axes
  InputSources inputs;                                // what the file names
  bool published = true;
  int sm_count = 0;  // what host code is told; 0 = the device profile's own
};

struct ArchRequirement {
  std::vector<std::string> families;  // all must have been executed
  std::string compute;                // the family that must carry the task's FLOP
};

struct Requirements {
  std::string compute_type;  // "bf16.bf16.f32": operand types and accumulator
  std::string flop;          // expression over the axes (bench/expression.h); "" = unknown
  double min_flop_share = 0.9;
  std::map<std::string, ArchRequirement> architectures;
};

struct HonestError {  // the largest over the measured implementations
  int64_t k = 0;
  double rel_frobenius = 0, misround = 0, tile_misround = 0;
};

// For outputs whose honest error depends on the data: the oracle says, element by element, how
// large the error of honest rounding is expected to be, and errors are measured in that unit.
struct NoiseBounds {
  double ratio = 2, tile_ratio = 3;  // root of (squared errors / squared noise), over all and in
                                     // the worst 16x16 tile
};

// For outputs of which nothing better is known: an element fails where it is off by more than both.
struct Tolerance {
  double abs = 1e-2, rel = 1e-2;  // of the published rule (a)
  double matched_ratio = 1;       // share of elements that must not fail
};

struct Calibration {
  std::string kind = "tolerance";  // or "single-reduction", "rounding-noise"
  std::string reduction_axis;      // "K"
  double rel_frobenius_factor = 2, tile_rel_frobenius_factor = 3;
  double misround = 0, tile_misround = 0;  // least bounds on the rates themselves
  double misround_factor = 1.5;  // of the honest rates, where that is more: long chains of one sign
  std::vector<HonestError> honest;              // ascending k
  std::map<std::string, NoiseBounds> outputs;   // of "rounding-noise": by name of the output
  std::map<std::string, Tolerance> tolerances;  // of "tolerance": by name of the output
};

// Whether the task's ruler has been tested: cheats fail, honest kernels pass, every input matters.
enum class AdmissionState {
  none,      // never
  changed,   // admitted, but one of the files differs since
  rejected,  // tested and found wanting
  admitted,
};
const char* name(AdmissionState state);

// Where a task's files are.
struct TaskFiles {
  std::filesystem::path definition, workloads;  // workloads: empty if there is none
  std::filesystem::path extras;                 // folder of requirements.json and the like
  std::filesystem::path blob_root;              // what paths of safetensors are relative to
};

struct Task {
  std::filesystem::path folder;  // files.extras
  TaskFiles files;
  Definition definition;
  std::vector<Workload> workloads;
  Requirements requirements;
  Calibration calibration;       // where admitted, with the honest errors that admission measured
  Calibration file_calibration;  // calibration.json alone
  AdmissionState admission = AdmissionState::none;
  std::filesystem::path reference_cu;  // empty: none
  const Workload* find_workload(const std::string& uuid) const;
};

using AxisValues = std::vector<std::pair<std::string, int64_t>>;  // all axes, in definition order

// The tasks below one directory: a folder for each, or a FlashInfer-Trace dataset.
class TaskSuite {
 public:
  // `folder` empty: $PTXBENCH_TASKS, else <source>/tasks. Errors: "io" if it is not a directory,
  // "bad-task" for two definitions of one name.
  static Result<TaskSuite> open(const std::filesystem::path& folder = {});
  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<std::string>& names() const { return names_; }  // sorted
  const TaskFiles* files(const std::string& name) const;            // null: no such task
  // Errors: "usage" for an unknown name (with the nearest ones), "bad-task" with file and place.
  Result<Task> load(const std::string& name) const;

 private:
  std::filesystem::path folder_;
  std::vector<std::string> names_;
  std::map<std::string, TaskFiles> files_;
};

// Values of all axes: the definition's constants, the workload's values, then `overrides`.
// Axes that follow from others by a constraint need no value. Errors ("usage"): unknown axis, a var
// axis without value, a value or tensor out of range, a broken constraint.
Result<AxisValues> resolve_axes(const Definition& definition, const Workload* workload,
                                const std::vector<std::pair<std::string, int64_t>>& overrides);

// Gives the axes that follow from others their values. Returns their names.
std::vector<std::string> derive_axes(const Definition& definition, AxisValues& axes);

// What the constraints say an axis must be a multiple of; 1 if nothing.
int64_t axis_multiple(const Definition& definition, const std::string& axis);

int64_t axis_value(const AxisValues& axes, const std::string& name);  // 0 if absent
Result<std::vector<int64_t>> resolve_shape(const TensorSpec& tensor, const AxisValues& axes);

// "M=200,N=1024" to pairs; error "usage".
Result<std::vector<std::pair<std::string, int64_t>>> parse_axes(const std::string& text);

// Up to `limit` of `names` that are nearest to `name` in edit distance, best first.
std::vector<std::string> nearest_names(const std::string& name,
                                       const std::vector<std::string>& names, size_t limit = 3);

}  // namespace ptxbench::bench
