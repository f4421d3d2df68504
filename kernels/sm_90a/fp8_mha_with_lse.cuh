#pragma once
// Candidate entry point; see ptxbench/candidate.cuh for its arguments.

#include <ptxbench/candidate.cuh>

#include "fp8_attention_launch.cuh"

namespace ptxbench::candidate {

template <int HeadDim, bool Causal>
void run_fp8_forward(TensorView q, TensorView k, TensorView v, TensorView descale_q,
                     TensorView descale_k, TensorView descale_v, TensorView o, TensorView lse) {
  const cudaError_t status = sm90::launch_fp8_attention<HeadDim, Causal>(
      {q.data_ptr(), k.data_ptr(), v.data_ptr(), o.data_ptr()},
      {data_of<float>(descale_q), data_of<float>(descale_k), data_of<float>(descale_v),
       data_of<float>(lse), heads_of(q), seq_of(q), scale_of(HeadDim)},
      stream_of(q));
  throw_unless_ok("fp8_attention_forward", status);
}

}  // namespace ptxbench::candidate
