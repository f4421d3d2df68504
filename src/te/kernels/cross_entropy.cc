#include "te/kernels/cross_entropy.h"

#include <fmt/format.h>

#include <cmath>

#include "te/kernels/cross_entropy_launch.h"
#include "te/kernels/launch.h"

namespace ptxbench::te {

Result<void> cross_entropy(const CrossEntropy& c, cudaStream_t stream) {
  constexpr const char* kName = "cross entropy";
  PB_RETURN_IF_ERROR(check_shape(kName, c.rows, c.vocabulary));
  PB_RETURN_IF_ERROR(check_operand(kName, "logits", c.logits, 2));
  PB_RETURN_IF_ERROR(check_operand(kName, "targets", c.targets, 4));
  PB_RETURN_IF_ERROR(check_operand(kName, "loss", c.loss, 4));
  if (c.stride < c.vocabulary)
    return Error{"usage", fmt::format("{}: stride {} is below the vocabulary of {}", kName,
                                      c.stride, c.vocabulary)};
  if (c.rows > 0x7fffffff)
    return Error{"usage", fmt::format("{}: {} rows are more than one grid holds", kName, c.rows)};
  if (!std::isfinite(c.grad_scale))
    return Error{"usage", fmt::format("{}: grad_scale is {}", kName, c.grad_scale)};
  device::CrossEntropyArgs a;
  a.logits = static_cast<uint16_t*>(c.logits), a.targets = c.targets, a.loss = c.loss;
  a.device_grad_scale = c.device_grad_scale, a.errors = c.errors;
  a.rows = c.rows, a.vocabulary = c.vocabulary, a.stride = c.stride;
  a.grad_scale = c.grad_scale, a.ignore_index = c.ignore_index, a.gradient = c.gradient;
  a.threads = c.vocabulary <= 4096 ? 128 : 1024;
  return launched(kName, device::launch_cross_entropy(a, stream));
}

}  // namespace ptxbench::te
