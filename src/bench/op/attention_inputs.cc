#include "bench/op/attention_inputs.h"

#include <algorithm>

namespace ptxbench::bench {
namespace {

using numeric::Random;

constexpr int64_t kGroup = 16;
constexpr double kQueryScale = 2, kTinyScale = 0x1p-20;
constexpr uint64_t kGroupStream = uint64_t{1} << 62;  // no input's

bool is_score_side(const std::string& name) { return name == "Q" || name == "K"; }
bool is_value_side(const std::string& name) { return name == "V" || name == "dO"; }

void multiply(Tensor& tensor, size_t first, size_t count, double factor) {
  const size_t element = numeric::dtype_size(tensor.type);
  for (size_t i = first; i < first + count; ++i) {
    uint8_t* at = tensor.bytes.data() + i * element;
    numeric::store_element(tensor.type, factor * numeric::load_element(tensor.type, at), at);
  }
}

// One group of columns of each head.
void scale_groups(Tensor& tensor, size_t index, const Seed& seed) {
  const size_t columns = static_cast<size_t>(tensor.shape.back());
  const size_t rows = static_cast<size_t>(tensor.shape[tensor.shape.size() - 2]);
  const size_t heads = tensor.bytes.size() / numeric::dtype_size(tensor.type) / (columns * rows);
  const Random random(seed, kGroupStream + index);
  if (columns < 2 * kGroup) return;
  for (size_t head = 0; head < heads; ++head) {
    const size_t group = random.below(2 * head, columns / kGroup);
    for (size_t row = 0; row < rows; ++row)
      multiply(tensor, (head * rows + row) * columns + group * kGroup, kGroup, kTinyScale);
  }
}

}  // namespace

Distribution score_distribution(Distribution distribution) {
  const bool unfit =
      distribution == Distribution::scaled || distribution == Distribution::tail_heavy;
  return unfit ? Distribution::normal : distribution;
}

Result<std::vector<Tensor>> attention_inputs(const Definition& definition, const AxisValues& axes,
                                             const Seed& seed, int threads,
                                             Distribution distribution, bool small_columns) {
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : definition.inputs) {
    const Distribution own =
        is_score_side(spec.name) ? score_distribution(distribution) : distribution;
    PB_ASSIGN_OR_RETURN(Tensor tensor, make_input(spec, axes, tensors.size(), seed, threads, own));
    if (spec.name == "Q")
      multiply(tensor, 0, tensor.bytes.size() / numeric::dtype_size(tensor.type), kQueryScale);
    if (small_columns && is_value_side(spec.name)) scale_groups(tensor, tensors.size(), seed);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace ptxbench::bench
