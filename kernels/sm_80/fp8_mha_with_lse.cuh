#pragma once
// Candidate entry point of the mma.sync kernel; see ptxbench/candidate.cuh for its arguments.

#include <ptxbench/candidate.cuh>

#include "fp8_attention_forward_mma.cuh"

namespace ptxbench::candidate {

template <int HeadDim, bool Causal>
void run_fp8_forward(TensorView q, TensorView k, TensorView v, TensorView descale_q,
                     TensorView descale_k, TensorView descale_v, TensorView o, TensorView lse) {
  const cudaError_t status = sm80::launch_fp8_attention_mma<HeadDim, Causal>(
      {data_of<uint8_t>(q), data_of<uint8_t>(k), data_of<uint8_t>(v), data_of<float>(descale_q),
       data_of<float>(descale_k), data_of<float>(descale_v), data_of<uint8_t>(o),
       data_of<float>(lse), heads_of(q), seq_of(q), scale_of(HeadDim)},
      stream_of(q));
  throw_unless_ok("fp8_attention_mma", status);
}

}  // namespace ptxbench::candidate
