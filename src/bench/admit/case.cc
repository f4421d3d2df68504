// A size with its inputs and right results, and how what was written is judged on it.
#include <algorithm>
#include <cmath>

#include "bench/admit/battery.h"

namespace ptxbench::bench::admit {
namespace {

Result<void> add_right(const Operation& operation, Case& c) {
  c.views.clear();
  c.right.assign(c.definition.outputs.size(), {});
  c.noise.assign(c.definition.outputs.size(), {});
  for (size_t i = 0; i < c.definition.outputs.size(); ++i)
    c.views.push_back(operation.view(c.definition, c.axes, i));
  return operation.reference(c.problem(), 1, [&](const ReferenceBlock& block) {
    std::vector<double>&right = c.right[block.output], &noise = c.noise[block.output];
    right.insert(right.end(), block.values.begin(), block.values.end());
    noise.insert(noise.end(), block.noise.begin(), block.noise.end());
  });
}

}  // namespace

Result<Case> make_case(const Definition& definition, const AxisValues& axes, const Seed& seed,
                       Distribution distribution) {
  PB_ASSIGN_OR_RETURN(const Operation* operation, operation_of(definition));
  Case c;
  c.definition = definition;
  c.axes = axes;
  c.distribution = distribution;
  c.poison = poison_pattern(seed);
  PB_ASSIGN_OR_RETURN(c.outputs, make_outputs(definition, axes, c.poison));
  for (const bool earlier : {true, false}) {
    const Seed own{seed.high, earlier ? ~seed.low : seed.low};
    PB_ASSIGN_OR_RETURN(c.inputs, operation->inputs(definition, axes, own, 1, distribution));
    PB_RETURN_IF_ERROR(add_right(*operation, c));
    if (earlier) c.earlier = right_outputs(c);
  }
  return c;
}

Tensor rounded_output(const Case& c, size_t index, std::span<const double> values) {
  Tensor tensor = c.outputs[index];
  const size_t element = numeric::dtype_size(tensor.type);
  for (size_t i = 0; i < values.size(); ++i)
    numeric::store_element(tensor.type, values[i], tensor.bytes.data() + i * element);
  return tensor;
}

std::vector<Tensor> right_outputs(const Case& c) {
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < c.right.size(); ++i) outputs.push_back(rounded_output(c, i, c.right[i]));
  return outputs;
}

std::vector<Correctness> compare(const Case& c, const std::vector<Tensor>& written) {
  std::vector<Correctness> results;
  for (size_t i = 0; i < c.right.size(); ++i) {
    const Tensor& tensor = written[i];
    const int64_t rows = c.views[i].matrices * c.views[i].rows;
    Comparator comparator(tensor.type, tensor.bytes, c.views[i],
                          poison_bits(tensor.type, c.poison));
    comparator.add_block(0, rows, c.right[i], 1, c.noise[i]);
    results.push_back(comparator.finish());
    results.back().output = tensor.spec.name;
    results.back().shape = tensor.shape;
  }
  return results;
}

void decide(const Case& c, const Calibration& calibration, std::vector<Correctness>& outputs) {
  for (Correctness& output : outputs)
    bench::decide(calibration, axis_value(c.axes, calibration.reduction_axis), output);
}

double distance(const std::vector<Correctness>& outputs) {
  double worst = 0;
  for (const Correctness& c : outputs) {
    if (c.class_mismatches + c.poisoned > 0) return kFar;
    const bool by_noise = c.bound_noise > 0;
    using Pair = std::pair<double, double>;
    for (auto [value, bound] :
         by_noise ? std::vector<Pair>{{c.noise_ratio, c.bound_noise},
                                      {c.tile_noise_ratio, c.bound_tile_noise}}
                  : std::vector<Pair>{{c.rel_frobenius, c.bound_rel_frobenius},
                                      {c.tile_rel_frobenius, c.bound_tile_rel_frobenius},
                                      {c.misround_rate, c.bound_misround},
                                      {c.tile_misround_rate, c.bound_tile_misround}})
      worst = std::max(worst, std::isfinite(value) ? value / bound : kFar);
  }
  return std::min(worst, kFar);
}

}  // namespace ptxbench::bench::admit
