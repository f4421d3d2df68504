#pragma once
// The gated delta rule in fp64, one head of one sequence at a time (Yang et al., Gated Delta
// Networks, 2024), state S [v,k]:
//   S <- g S;  u = beta (v - S k);  S <- S + u k^T;  o = scale S q
// Beside each result stands the variance that honest arithmetic gives it: u and S as operands of a
// tensor core rounded to `operand_bits`, or fp32 throughout.

#include <cstdint>
#include <span>
#include <vector>

namespace ptxbench::bench {

struct DeltaToken {
  std::span<const double> q, k, v;  // [d_k], [d_k], [d_v]
  double decay = 1, beta = 1;       // g, beta
};

class DeltaRule {
 public:
  // `state` [d_v, d_k]. operand_bits 0: fp32 throughout.
  DeltaRule(std::span<const double> state, int64_t d_k, int64_t d_v, double scale,
            int operand_bits);
  // o and its variance, [d_v] each, the rounding to bf16 included.
  void step(const DeltaToken& token, double* o, double* noise);
  const std::vector<double>& state() const { return state_; }
  const std::vector<double>& noise() const { return noise_; }

 private:
  int64_t d_k_, d_v_;
  double scale_, operand_variance_;
  std::vector<double> state_, noise_;
};

// exp(-exp(a_log) * softplus(x)) and 1 / (1 + exp(-b)).
double delta_decay(double a_log, double x);
double delta_beta(double b);

}  // namespace ptxbench::bench
