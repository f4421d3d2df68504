// The result of the unchanged inputs is judged against the right one of the changed inputs: how far
// it is beyond the bounds is how far the change moved the result.
#include "bench/admit/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/admit/battery.h"

namespace ptxbench::bench::admit {
namespace {

constexpr int64_t kSliceRows = 64;

int64_t default_slice(const Tensor& tensor) {
  return kSliceRows * (tensor.shape.empty() ? 1 : tensor.shape.back());
}

// Scales and the like are much the same for every seed, or are no matter of the seed at all.
void change_lone_number(Tensor& tensor) {
  if (!numeric::is_floating(tensor.type)) return;
  if (tensor.bytes.size() != numeric::dtype_size(tensor.type)) return;
  const double value = numeric::load_element(tensor.type, tensor.bytes.data());
  numeric::store_element(tensor.type, 0.25 * value, tensor.bytes.data());
}

Result<double> moved_by(const Case& one, size_t input, size_t begin, size_t end, const Case& other,
                        const std::vector<Tensor>& before, const Calibration& calibration) {
  PB_ASSIGN_OR_RETURN(const Operation* operation, operation_of(one.definition));
  std::vector<Tensor> inputs = one.inputs;
  std::copy(other.inputs[input].bytes.begin() + static_cast<std::ptrdiff_t>(begin),
            other.inputs[input].bytes.begin() + static_cast<std::ptrdiff_t>(end),
            inputs[input].bytes.begin() + static_cast<std::ptrdiff_t>(begin));
  change_lone_number(inputs[input]);
  std::vector<Comparator> comparators;
  for (size_t i = 0; i < before.size(); ++i)
    comparators.emplace_back(before[i].type, before[i].bytes, one.views[i],
                             poison_bits(before[i].type, one.poison));
  const Problem changed{one.definition, one.axes, inputs};
  PB_RETURN_IF_ERROR(operation->reference(changed, 1, [&](const ReferenceBlock& block) {
    comparators[block.output].add_block(block.first_row, block.count, block.values, 1, block.noise);
  }));
  std::vector<Correctness> results;
  for (size_t i = 0; i < before.size(); ++i) {
    results.push_back(comparators[i].finish());
    results.back().output = before[i].spec.name;
  }
  decide(one, calibration, results);
  return distance(results);
}

}  // namespace

Result<Sensitivity> measure_sensitivity(const Battery& battery, const Case& one, const Case& other,
                                        const Calibration& calibration) {
  const std::vector<Tensor> before = right_outputs(one);
  Sensitivity result;
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    const Tensor& input = one.inputs[i];
    const size_t element = numeric::dtype_size(input.type);
    const int64_t elements =
        battery.slice_elements ? battery.slice_elements(one, i) : default_slice(input);
    const size_t step = static_cast<size_t>(elements) * element;
    for (size_t begin = 0; begin < input.bytes.size(); begin += step) {
      const size_t end = std::min(begin + step, input.bytes.size());
      PB_ASSIGN_OR_RETURN(const double moved,
                          moved_by(one, i, begin, end, other, before, calibration));
      result.add(moved, input.spec.name,
                 fmt::format("elements {}..{}", begin / element, end / element - 1));
    }
  }
  return result;
}

}  // namespace ptxbench::bench::admit
