#include "bench/op/user_reference.h"

#include <fmt/format.h>

#include "bench/expression.h"

namespace ptxbench::bench {

std::string reference_dtype(const std::string& dtype) {
  const auto type = numeric::dtype_from_name(dtype);
  return type && numeric::is_floating(*type) ? "float64" : dtype;
}

Result<void> UserReference::check(const Definition&) const { return {}; }

double UserReference::flop(const Definition&, const AxisValues& axes) const {
  const auto value = declared_flop(task_, axes);
  return value.ok() ? *value : 0;
}

Result<std::vector<Tensor>> UserReference::inputs(const Definition& definition,
                                                  const AxisValues& axes, const Seed& seed,
                                                  int threads, Distribution distribution) const {
  return make_inputs(definition, axes, seed, threads, distribution, sources_);
}

Result<void> UserReference::reference(const Problem& problem, int,
                                      const ReferenceSink& sink) const {
  PB_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, run_(problem));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputView v = view(problem.definition, problem.axes, i);
    const std::vector<double> values = to_doubles(outputs[i]);
    sink({i, 0, v.matrices * v.rows, values, {}});
  }
  return {};
}

}  // namespace ptxbench::bench
