#include "bench/op/index_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench/op/operation.h"

namespace ptxbench::bench {
namespace {

constexpr uint64_t kWeights = uint64_t{1} << 40, kShuffle = uint64_t{1} << 41;

Result<Tensor> typed(const TensorSpec& spec) {
  Tensor tensor;
  tensor.spec = spec;
  const auto type = numeric::dtype_from_name(spec.dtype);
  if (!type) return Error{"bad-task", fmt::format("{}: no dtype {}", spec.name, spec.dtype)};
  tensor.type = *type;
  return tensor;
}

}  // namespace

std::vector<int64_t> ragged_lengths(int64_t total, int64_t parts, const std::vector<int64_t>& least,
                                    const numeric::Random& random) {
  std::vector<int64_t> lengths(static_cast<size_t>(parts), 0);
  std::vector<double> weights(lengths.size());
  double sum = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const double u = static_cast<double>(random.uniform(kWeights + i));
    sum += weights[i] = 0.05 + u * u;  // some much longer than others
    if (!least.empty()) lengths[i] = std::min(least[i], total);
    total -= lengths[i];
  }
  int64_t left = total;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t more =
        i + 1 == lengths.size()
            ? left
            : static_cast<int64_t>(std::floor(static_cast<double>(total) * weights[i] / sum));
    lengths[i] += more;
    left -= more;
  }
  return lengths;
}

std::vector<int64_t> offsets_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> offsets(lengths.size() + 1, 0);
  std::partial_sum(lengths.begin(), lengths.end(), offsets.begin() + 1);
  return offsets;
}

std::vector<int64_t> shuffled_indices(int64_t count, int64_t range, const numeric::Random& random) {
  std::vector<int64_t> all(static_cast<size_t>(range));
  std::iota(all.begin(), all.end(), 0);
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(kShuffle + i, i)]);
  std::vector<int64_t> indices(static_cast<size_t>(count));
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = all[i % all.size()];
  return indices;
}

Result<Tensor> index_tensor(const TensorSpec& spec, const AxisValues& axes,
                            const std::vector<int64_t>& values) {
  PB_ASSIGN_OR_RETURN(Tensor tensor, typed(spec));
  PB_ASSIGN_OR_RETURN(tensor.shape, resolve_shape(spec, axes));
  int64_t count = 1;
  for (int64_t dim : tensor.shape) count *= dim;
  if (count != static_cast<int64_t>(values.size()))
    return Error{"bad-task", fmt::format("{} has {} elements where {} are needed", spec.name, count,
                                         values.size())};
  const size_t element = numeric::dtype_size(tensor.type);
  tensor.bytes.resize(values.size() * element);
  for (size_t i = 0; i < values.size(); ++i)
    numeric::store_element(tensor.type, static_cast<double>(values[i]),
                           tensor.bytes.data() + i * element);
  return tensor;
}

std::vector<int64_t> indices_of(const Tensor& tensor) {
  std::vector<int64_t> values;
  for (double x : to_doubles(tensor)) values.push_back(static_cast<int64_t>(x));
  return values;
}

Result<Tensor> scalar_tensor(const TensorSpec& spec, double value) {
  PB_ASSIGN_OR_RETURN(Tensor tensor, typed(spec));
  tensor.bytes.resize(numeric::dtype_size(tensor.type));
  numeric::store_element(tensor.type, value, tensor.bytes.data());
  return tensor;
}

}  // namespace ptxbench::bench
