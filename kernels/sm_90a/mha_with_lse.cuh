#pragma once
// Candidate entry point; see ptxbench/candidate.cuh for its arguments.

#include <ptxbench/candidate.cuh>

#include "attention_forward_launch.cuh"

namespace ptxbench::candidate {

template <int HeadDim, bool Causal>
void run_forward(TensorView q, TensorView k, TensorView v, TensorView o, TensorView lse) {
  const cudaError_t status = sm90::launch_attention_forward<HeadDim, Causal>(
      {q.data_ptr(), k.data_ptr(), v.data_ptr(), o.data_ptr()},
      {data_of<float>(lse), heads_of(q), seq_of(q), scale_of(HeadDim)}, q.device().device_id,
      stream_of(q));
  throw_unless_ok("attention_forward", status);
}

}  // namespace ptxbench::candidate
