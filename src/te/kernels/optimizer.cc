#include "te/kernels/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "te/kernels/optimizer_launch.h"

namespace ptxbench::te {
namespace {

constexpr const char* kName = "optimizer";

bool in_unit_interval(float v) { return v >= 0 && v < 1; }

Result<void> check(const AdamW& a) {
  auto bad = [](const char* field, double value) {
    return Error{"usage", fmt::format("AdamW: {} is {}", field, value)};
  };
  if (!std::isfinite(a.lr)) return bad("lr", a.lr);
  if (!in_unit_interval(a.beta1)) return bad("beta1", a.beta1);
  if (!in_unit_interval(a.beta2)) return bad("beta2", a.beta2);
  if (!(std::isfinite(a.epsilon) && a.epsilon > 0)) return bad("epsilon", a.epsilon);
  if (!std::isfinite(a.weight_decay)) return bad("weight_decay", a.weight_decay);
  if (a.step < 1) return bad("step", static_cast<double>(a.step));
  return {};
}

Result<void> check(const OptimizerTensor& t, size_t index, bool remainder, size_t grad_bytes) {
  const std::string name = fmt::format("{}: tensor {}", kName, index);
  PB_RETURN_IF_ERROR(check_shape(name.c_str(), t.count, 1));
  PB_RETURN_IF_ERROR(check_operand(name.c_str(), "grad", t.grad, grad_bytes));
  PB_RETURN_IF_ERROR(check_operand(name.c_str(), "m", t.m, 4));
  PB_RETURN_IF_ERROR(check_operand(name.c_str(), "v", t.v, 4));
  if (remainder) {
    PB_RETURN_IF_ERROR(check_operand(name.c_str(), "remainder", t.remainder, 2));
    PB_RETURN_IF_ERROR(check_operand(name.c_str(), "param", t.param, 2));
    if (t.master != nullptr)
      return Error{"usage", fmt::format("{} has a master and a remainder", name)};
  } else {
    PB_RETURN_IF_ERROR(check_operand(name.c_str(), "master", t.master, 4));
    if (t.remainder != nullptr)
      return Error{"usage", fmt::format("{} has a remainder, tensor 0 has none", name)};
  }
  return {};
}

bool fits_vectors(const OptimizerTensor& t, size_t grad_bytes) {
  return aligned(t.grad, 4 * grad_bytes) && aligned(t.master, 16) && aligned(t.param, 8) &&
         aligned(t.remainder, 8) && aligned(t.m, 16) && aligned(t.v, 16);
}

}  // namespace

Result<OptimizerTensors> OptimizerTensors::create(std::span<const OptimizerTensor> tensors,
                                                  GradType grads) {
  if (tensors.empty()) return Error{"usage", fmt::format("{}: no tensors", kName)};
  PB_ASSIGN_OR_RETURN(const int sms, multiprocessors());
  const size_t grad_bytes = grads == GradType::f32 ? 4 : 2;
  OptimizerTensors o;
  o.grads_ = grads;
  o.tensors_ = static_cast<int>(tensors.size());
  o.remainder_ = tensors[0].remainder != nullptr;
  o.bf16_copy_ = !o.remainder_ && tensors[0].param != nullptr;
  std::vector<device::TensorEntry> entries;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const OptimizerTensor& t = tensors[i];
    PB_RETURN_IF_ERROR(check(t, i, o.remainder_, grad_bytes));
    if (!o.remainder_ && (t.param != nullptr) != o.bf16_copy_)
      return Error{"usage", fmt::format("{}: tensor {} and tensor 0 differ in having a bf16 param",
                                        kName, i)};
    entries.push_back({t.grad, t.master, t.param, t.remainder, t.m, t.v, t.count, o.chunks_,
                       fits_vectors(t, grad_bytes)});
    o.chunks_ += (t.count + device::kChunk - 1) / device::kChunk;
    o.parameters_ += t.count;
  }
  o.blocks_ = static_cast<int>(std::min<int64_t>(o.chunks_, int64_t{sms} * 8));
  const size_t table_bytes = entries.size() * sizeof entries[0];
  PB_ASSIGN_OR_RETURN(o.table_, DeviceBuffer::zeroed(table_bytes));
  PB_RETURN_IF_ERROR(o.table_.upload(entries.data(), table_bytes));
  PB_ASSIGN_OR_RETURN(o.partial_, DeviceBuffer::zeroed((size_t(o.blocks_) + 1) * sizeof(double)));
  return o;
}

namespace {
device::TensorTable table_of(const DeviceBuffer& entries, int tensors, int64_t chunks, int blocks,
                             GradType grads, bool remainder, bool bf16_copy) {
  return {entries.as<device::TensorEntry>(),
          tensors,
          chunks,
          blocks,
          grads == GradType::f32,
          remainder,
          bf16_copy};
}
}  // namespace

Result<void> OptimizerTensors::grad_norm(float max_norm, float* norm, float* factor,
                                         cudaStream_t stream) {
  PB_RETURN_IF_ERROR(check_operand("gradient norm", "norm", norm, 4));
  PB_RETURN_IF_ERROR(check_operand("gradient norm", "factor", factor, 4));
  if (!(max_norm > 0))
    return Error{"usage", fmt::format("gradient norm: max_norm is {}: it must be > 0", max_norm)};
  const auto table = table_of(table_, tensors_, chunks_, blocks_, grads_, remainder_, bf16_copy_);
  double* partial = partial_.as<double>();
  return launched("gradient norm",
                  device::launch_grad_norm(table, max_norm, partial,
                                           reinterpret_cast<unsigned*>(partial + blocks_), norm,
                                           factor, stream));
}

Result<void> OptimizerTensors::adamw(const AdamW& how, const float* factor, const float* lr_step,
                                     cudaStream_t stream) {
  PB_RETURN_IF_ERROR(check(how));
  device::AdamWArgs a;
  a.lr = how.lr, a.beta1 = how.beta1, a.beta2 = how.beta2;
  a.epsilon = how.epsilon, a.weight_decay = how.weight_decay;
  auto correction = [&](float beta) {
    return static_cast<float>(1 / (1 - std::pow(double{beta}, static_cast<double>(how.step))));
  };
  a.correction1 = correction(how.beta1), a.correction2 = correction(how.beta2);
  a.factor = factor, a.lr_step = lr_step;
  const auto table = table_of(table_, tensors_, chunks_, blocks_, grads_, remainder_, bf16_copy_);
  return launched("AdamW", device::launch_adamw(table, a, stream));
}

std::string OptimizerTensors::describe() const {
  return fmt::format("{} tensors, {} parameters, {} chunks of {}", tensors_, parameters_, chunks_,
                     device::kChunk);
}

}  // namespace ptxbench::te
