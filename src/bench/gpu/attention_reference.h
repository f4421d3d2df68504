#pragma once
// The fp64 reference of attention on a device: a plan of this project's own kernels, replayed in a
// process that has never seen the candidate. Values and noise as attention_math.h defines them.

#include <functional>
#include <span>

#include "bench/op/attention_math.h"
#include "device/device.h"

namespace ptxbench::bench {

struct AttentionOnDevice {
  int64_t heads = 0, s = 0, d = 0;
  AttentionHead head;       // scale, mask and roundings; its sizes and tensors are not read
  double value_factor = 1;  // O is multiplied by it
};

// Results of heads first .. first + count - 1, one after another.
struct AttentionHeads {
  int64_t first = 0, count = 0;
  std::span<const double> o, o_noise, lse;                           // forward
  std::span<const double> dq, dk, dv, dq_noise, dk_noise, dv_noise;  // gradient
};
using HeadsSink = std::function<void(const AttentionHeads&)>;

// Of LSE, head by head; `qk(head)` gives Q and K of a head, widened.
std::vector<double> noise_of_heads(
    const AttentionHeads& heads, const AttentionHead& head, int threads,
    const std::function<std::pair<std::vector<double>, std::vector<double>>(int64_t)>& qk);

// q, k, v ...: bf16 bits [heads,s,d]; lse: [heads,s]. Called with all heads, some at a time, in
// order. Errors: the device's.
Result<void> attend_on(device::Device& device, const AttentionOnDevice& problem,
                       std::span<const uint16_t> q, std::span<const uint16_t> k,
                       std::span<const uint16_t> v, const HeadsSink& sink);
struct GradientInputs {
  std::span<const uint16_t> q, k, v, o, d_o;
  std::span<const float> lse;
};
Result<void> attend_backward_on(device::Device& device, const AttentionOnDevice& problem,
                                const GradientInputs& inputs, const HeadsSink& sink);

}  // namespace ptxbench::bench
