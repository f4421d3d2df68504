#include "te/kernels/norm_backward.h"

#include <fmt/format.h>

#include <algorithm>

#include "te/kernels/launch.h"
#include "te/kernels/norm_forward.h"
#include "te/kernels/norm_launch.h"

namespace ptxbench::te {
namespace {

constexpr const char* kName = "norm backward";

// Clusters that the multiprocessors hold at 512 threads each: the sums of columns need registers.
uint32_t most_groups(int threads, uint32_t cluster, int sms) {
  return std::max(1u, static_cast<uint32_t>(sms) * static_cast<uint32_t>(512 / threads) / cluster);
}

int threads_for(int64_t cols) {
  for (int threads : {64, 128, 256})
    if (cols <= threads * 8) return threads;
  return 512;
}
uint32_t cluster_for(int64_t cols, int threads) {
  return static_cast<uint32_t>((cols + threads * 8 - 1) / (threads * 8));
}

Result<void> check(const NormBackward& c, int sms) {
  PB_RETURN_IF_ERROR(check_shape(kName, c.rows, c.cols));
  if (c.cols > kWidestNorm)
    return Error{"usage",
                 fmt::format("{}: {} columns; {} is the most", kName, c.cols, kWidestNorm)};
  PB_RETURN_IF_ERROR(check_operand(kName, "dy", c.dy, 2));
  PB_RETURN_IF_ERROR(check_operand(kName, "x", c.x, 2));
  PB_RETURN_IF_ERROR(check_operand(kName, "gamma", c.gamma, 2));
  PB_RETURN_IF_ERROR(check_operand(kName, "rstd", c.rstd, 4));
  PB_RETURN_IF_ERROR(check_operand(kName, "dx", c.dx, 2));
  PB_RETURN_IF_ERROR(check_operand(kName, "dgamma", c.dgamma, 4));
  if (c.kind == NormKind::layer) {
    PB_RETURN_IF_ERROR(check_operand(kName, "mean", c.mean, 4));
  } else if (c.mean != nullptr || c.dbeta != nullptr) {
    return Error{"usage", fmt::format("{}: RMSNorm has neither dbeta nor mean", kName)};
  }
  const size_t needed = norm_backward_workspace(c.cols, sms);
  if (c.workspace == nullptr || c.workspace_bytes < needed || !aligned(c.workspace, 16))
    return Error{"usage",
                 fmt::format("{}: {} bytes of 16-byte aligned workspace are needed, not {}", kName,
                             needed, c.workspace_bytes)};
  return {};
}

}  // namespace

std::string NormBackwardPlan::describe() const {
  return fmt::format("{} threads, clusters of {}, {} groups of rows, {}", threads, cluster, groups,
                     vector ? "16-byte accesses" : "element by element");
}

NormBackwardPlan plan_norm_backward(const NormBackward& c, int sms) {
  NormBackwardPlan plan;
  plan.threads = threads_for(c.cols);
  plan.cluster = cluster_for(c.cols, plan.threads);
  plan.groups = static_cast<uint32_t>(
      std::min<int64_t>((c.rows + 3) / 4, most_groups(plan.threads, plan.cluster, sms)));
  plan.vector = c.cols % 8 == 0 && aligned(c.dy, 16) && aligned(c.x, 16) && aligned(c.gamma, 16) &&
                aligned(c.residual, 16) && aligned(c.dx, 16);
  return plan;
}

size_t norm_backward_workspace(int64_t cols, int sms) {
  const int threads = threads_for(cols);
  return size_t{most_groups(threads, cluster_for(cols, threads), sms)} * 2 *
         static_cast<size_t>(cols) * sizeof(float);
}

Result<void> norm_backward(const NormBackward& c, cudaStream_t stream) {
  PB_ASSIGN_OR_RETURN(const int sms, multiprocessors());
  PB_RETURN_IF_ERROR(check(c, sms));
  const NormBackwardPlan plan = plan_norm_backward(c, sms);
  device::NormBackwardArgs a;
  a.dy = static_cast<const uint16_t*>(c.dy), a.x = static_cast<const uint16_t*>(c.x);
  a.gamma = static_cast<const uint16_t*>(c.gamma);
  a.residual = static_cast<const uint16_t*>(c.residual);
  a.mean = c.mean, a.rstd = c.rstd;
  a.dx = static_cast<uint16_t*>(c.dx), a.dgamma = c.dgamma, a.dbeta = c.dbeta;
  a.partial = static_cast<float*>(c.workspace);
  a.rows = c.rows, a.cols = c.cols;
  a.gamma_offset = c.zero_centered_gamma ? 1.0f : 0.0f;
  a.cluster = plan.cluster, a.groups = plan.groups, a.threads = plan.threads;
  a.kind = c.kind, a.vector = plan.vector;
  return launched(kName, device::launch_norm_backward(a, stream));
}

}  // namespace ptxbench::te
