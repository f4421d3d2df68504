#include "bench/op/gated_delta_math.h"

#include <algorithm>
#include <cmath>

#include "bench/op/operation.h"

namespace ptxbench::bench {
namespace {

// A sum in fp32 and what exp, log and reciprocal of the special function unit add to it, relative
// to its terms.
constexpr double kFloatVariance = 0x1p-44;

}  // namespace

DeltaRule::DeltaRule(std::span<const double> state, int64_t d_k, int64_t d_v, double scale,
                     int operand_bits)
    : d_k_(d_k),
      d_v_(d_v),
      scale_(scale),
      operand_variance_(operand_bits > 0 ? rounding_variance(operand_bits) : 0),
      state_(state.begin(), state.end()),
      noise_(state.size(), 0.0) {
  for (size_t i = 0; i < noise_.size(); ++i) noise_[i] = 0x1p-50 * state_[i] * state_[i];
}

void DeltaRule::step(const DeltaToken& t, double* o, double* o_noise) {
  const double output_variance = rounding_variance(8), decay2 = t.decay * t.decay;
  for (int64_t r = 0; r < d_v_; ++r) {
    double* s = &state_[static_cast<size_t>(r * d_k_)];
    double* noise = &noise_[static_cast<size_t>(r * d_k_)];
    double sum = 0, size2 = 0, arrived = 0;
    for (int64_t c = 0; c < d_k_; ++c) {
      s[c] *= t.decay;
      noise[c] *= decay2;
      sum += s[c] * t.k[c];
      size2 += s[c] * s[c] * t.k[c] * t.k[c];
      arrived += noise[c] * t.k[c] * t.k[c];
    }
    const double u = t.beta * (t.v[r] - sum);
    const double beta2 = t.beta * t.beta;
    // S k is a product of the tensor core, too.
    const double u_noise = operand_variance_ * (u * u + beta2 * size2) + beta2 * arrived +
                           kFloatVariance * beta2 * (t.v[r] * t.v[r] + size2);
    double out = 0, out_noise = 0;
    for (int64_t c = 0; c < d_k_; ++c) {
      s[c] += u * t.k[c];
      noise[c] += u_noise * t.k[c] * t.k[c] + kFloatVariance * s[c] * s[c];
      out += s[c] * t.q[c];
      out_noise +=
          (noise[c] + (operand_variance_ + kFloatVariance) * s[c] * s[c]) * t.q[c] * t.q[c];
    }
    o[r] = scale_ * out;
    o_noise[r] = scale_ * scale_ * out_noise + output_variance * o[r] * o[r];
  }
}

double delta_decay(double a_log, double x) {
  const double softplus = x > 30 ? x : std::log1p(std::exp(x));
  return std::exp(-std::exp(a_log) * softplus);
}

double delta_beta(double b) { return 1 / (1 + std::exp(-b)); }

}  // namespace ptxbench::bench
