#pragma once
// What an operation gives to the admission of its tasks: honest implementations, which the ruler
// must accept, and cheats, which it must reject. All compute on the CPU. Cheats that need no
// knowledge of the operation (zeros, copies, parts of the right result, ...) are added to every
// battery.
//
// A new operation overrides Operation::battery() and returns
//   honest          at least two implementations that differ in the order of their sums
//   cheats          its own: cheaper formats, parts left out, ...
//   not_applicable  entries of the usual battery that mean nothing for it, and why
//   reduce          what becomes of the axes of a published workload (cheaper, of the same kind)
// and may override what stands below.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/admit/sensitivity.h"
#include "bench/compare.h"
#include "bench/inputs.h"
#include "bench/op/operation.h"
#include "bench/task.h"

namespace ptxbench::bench::admit {

// One size with the inputs of one seed and distribution, and the right results.
struct Case {
  Definition definition;
  AxisValues axes;
  Distribution distribution{};
  uint16_t poison = 0;                            // see poison_bits
  std::vector<Tensor> inputs;                     // in definition order
  std::vector<std::vector<double>> right, noise;  // per output, in its order; noise may be empty
  std::vector<Tensor> outputs;                    // full of poison
  std::vector<Tensor> earlier;                    // the rounded results of other inputs
  std::vector<OutputView> views;                  // per output

  Problem problem() const { return {definition, axes, inputs}; }
};
// Errors of Operation::inputs and ::reference.
Result<Case> make_case(const Definition& definition, const AxisValues& axes, const Seed& seed,
                       Distribution distribution);

struct Implementation {
  std::string name, what;
  std::function<Result<std::vector<Tensor>>(const Case&)> compute;  // all outputs
  // Of a cheat: distributions on which its result is as good as honest work, so that no ruler can
  // tell it; it is not tried there. Never `mixed`, on which candidates are judged.
  std::vector<Distribution> hidden_on = {};
};

// Entries of the usual battery that mean nothing here, and why.
struct NotApplicable {
  std::string name, why;
};

struct Battery {
  std::vector<Implementation> honest, cheats;
  std::vector<NotApplicable> not_applicable;
  // Of a published workload: the axes at which it is tried, nothing where it is not tried because
  // another size stands for it. Empty: as it is.
  std::function<std::optional<AxisValues>(const Definition&, const AxisValues&)> reduce;
  std::string reduced_how;  // in words, for the report
  // Whether cheats can be told on a distribution. Empty: on all.
  std::function<bool(Distribution)> shows_cheats;
  // The least move of the result over slices of the inputs, in tolerances; `other` has the same
  // size and other inputs. Empty: measure_sensitivity().
  std::function<Result<Sensitivity>(const Case& one, const Case& other, const Calibration&)>
      sensitivity;
  // Elements of a slice of input `index` for measure_sensitivity. Empty: 64 rows.
  std::function<int64_t(const Case&, size_t index)> slice_elements;
};

// Cheats for any operation: each with all outputs, and, where there is more than one, with each
// output alone while the others are right ("zeros in LSE").
std::vector<Implementation> general_cheats(const Definition& definition);

// The values rounded to the type of output `index` of the case.
Tensor rounded_output(const Case& c, size_t index, std::span<const double> values);
// The right results, rounded.
std::vector<Tensor> right_outputs(const Case& c);

// Statistics and bounds of what was written, one for each output, decided under `calibration`.
std::vector<Correctness> compare(const Case& c, const std::vector<Tensor>& written);
void decide(const Case& c, const Calibration& calibration, std::vector<Correctness>& outputs);

// How far from the bounds: the worst output's worst statistic over its bound, at most kFar.
constexpr double kFar = 1e6;  // infinite in JSON
double distance(const std::vector<Correctness>& outputs);

// Every slice of every input is drawn anew (taken from `other`), and the result must move: the
// tile of any output that moves most counts, in tolerances of a tile.
Result<Sensitivity> measure_sensitivity(const Battery& battery, const Case& one, const Case& other,
                                        const Calibration& calibration);

}  // namespace ptxbench::bench::admit
