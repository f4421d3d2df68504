#pragma once
// Attention and its gradient in fp64, one head at a time, from the definition:
//   S = scale * Q K^T, masked;  LSE = ln sum exp S;  P = exp(S - LSE);  O = P V
//   dV = P^T dO;  dP = dO V^T;  dS = P o (dP - rowsum(dO o O));  dQ = scale * dS K;  dK = scale *
//   dS^T Q
// P and dS exist for a block of rows only. Beside each result stands the variance that honest
// rounding gives it: kernels for tensor cores round P and dS to the type of the operands
// (FlashAttention-2, Dao 2023, and every library measured), then the result to the type of the
// output.

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace ptxbench::bench {

struct AttentionHead {
  int64_t queries = 0, keys = 0, d = 0, d_v = 0;
  std::span<const double> q, k, v;  // [queries,d], [keys,d], [keys,d_v]
  double scale = 1;
  bool causal = false;   // query i sees keys j <= i + offset
  int64_t offset = 0;    // usually keys - queries: the last query sees all
  int operand_bits = 8;  // significant bits to which P and dS are rounded; 0: they are not
  int output_bits = 8;   // of O, dQ, dK, dV
  // Of formats with few exponents: least distance of two numbers, of P in units of the row's
  // largest and of the outputs. 0: far below.
  double operand_unit = 0, output_unit = 0;
  // Of scores and what becomes of them on the way to LSE, relative to the numbers that are added:
  // fp32 sums of the tensor core, exp2 and log2 of the special function unit.
  double score_error = 0x1p-22;

  int64_t visible(int64_t query) const {  // number of keys it sees
    if (!causal) return keys;
    const int64_t count = query + offset + 1;
    return count < 0 ? 0 : count > keys ? keys : count;
  }
};

struct AttentionResult {
  std::vector<double> o, o_noise;  // [queries,d_v]
  std::vector<double> lse,
      lse_noise;  // [queries], natural logarithm; -inf for a query without keys
};

// Error "no-blas".
Result<AttentionResult> attend(const AttentionHead& head, int threads);

// Variance of honest rounding of `lse` [queries]. Reads q, k and the sizes of the head alone.
std::vector<double> lse_noise(const AttentionHead& head, std::span<const double> lse);

struct AttentionGradient {
  std::vector<double> dq, dk, dv;                    // shapes of q, k, v
  std::vector<double> dq_noise, dk_noise, dv_noise;  // the same
};

// `o`, `d_o` [queries,d_v], `lse` [queries]: as handed to the kernel, so that rounding them is not
// the kernel's error. Error "no-blas".
Result<AttentionGradient> attend_backward(const AttentionHead& head, std::span<const double> o,
                                          std::span<const double> d_o, std::span<const double> lse,
                                          int threads);

}  // namespace ptxbench::bench
