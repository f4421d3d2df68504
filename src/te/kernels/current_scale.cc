#include "te/kernels/current_scale.h"

#include <fmt/format.h>

#include <algorithm>

#include "te/kernels/current_scale_launch.h"
#include "te/kernels/launch.h"

namespace ptxbench::te {
namespace {

constexpr const char* kName = "amax";

device::ScaleRule rule_of(const CurrentScaling& recipe, Fp8Format format) {
  return {fp8_max(format), recipe.amax_epsilon, recipe.power_of_two_scales};
}

}  // namespace

size_t amax_workspace() { return 16 + device::kMostAmaxBlocks * sizeof(float); }

Result<void> compute_amax(const AmaxCall& c, cudaStream_t stream) {
  PB_RETURN_IF_ERROR(check_shape(kName, c.count, 1));
  PB_RETURN_IF_ERROR(check_operand(kName, "x", c.x, c.f32 ? 4 : 2));
  PB_RETURN_IF_ERROR(check_operand(kName, "amax", c.amax, 4));
  PB_RETURN_IF_ERROR(validate(c.recipe));
  if (c.workspace == nullptr || c.workspace_bytes < amax_workspace() || !aligned(c.workspace, 16))
    return Error{"usage",
                 fmt::format("{}: {} bytes of 16-byte aligned workspace are needed, not {}", kName,
                             amax_workspace(), c.workspace_bytes)};
  PB_ASSIGN_OR_RETURN(const int sms, multiprocessors());
  device::AmaxArgs a;
  a.x = c.x, a.count = c.count, a.amax = c.amax, a.scale = c.scale, a.f32 = c.f32;
  a.counter = static_cast<unsigned*>(c.workspace);
  a.partial = reinterpret_cast<float*>(static_cast<uint8_t*>(c.workspace) + 16);
  constexpr int64_t kPerBlock = 16384;  // elements that are worth a CTA
  a.blocks = static_cast<int>(std::clamp<int64_t>((c.count + kPerBlock - 1) / kPerBlock, 1,
                                                  std::min(sms * 4, device::kMostAmaxBlocks)));
  a.rule = rule_of(c.recipe, c.format);
  return launched(kName, device::launch_amax(a, stream));
}

Result<void> scale_from_amax(const float* amax, float* scale, const CurrentScaling& recipe,
                             Fp8Format format, cudaStream_t stream) {
  PB_RETURN_IF_ERROR(check_operand("scale", "amax", amax, 4));
  PB_RETURN_IF_ERROR(check_operand("scale", "scale", scale, 4));
  PB_RETURN_IF_ERROR(validate(recipe));
  return launched("scale",
                  device::launch_scale_from_amax(amax, scale, rule_of(recipe, format), stream));
}

}  // namespace ptxbench::te
