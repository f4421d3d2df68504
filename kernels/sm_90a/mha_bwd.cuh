#pragma once
// Candidate entry point; see ptxbench/candidate.cuh for its arguments.

#include <ptxbench/candidate.cuh>

#include "attention_backward_launch.cuh"

namespace ptxbench::candidate {

template <int HeadDim, bool Causal, bool Deterministic>
void run_backward(TensorView q, TensorView k, TensorView v, TensorView o, TensorView d_o,
                  TensorView lse, TensorView d_q, TensorView d_k, TensorView d_v) {
  const int heads = heads_of(q), seq = seq_of(q);
  const Workspace workspace(sm90::attention_backward_workspace(heads, seq, HeadDim), stream_of(q));
  const cudaError_t status = sm90::launch_attention_backward<HeadDim, Causal, Deterministic>(
      {q.data_ptr(), k.data_ptr(), v.data_ptr(), o.data_ptr(), d_o.data_ptr(), data_of<float>(lse),
       d_q.data_ptr(), d_k.data_ptr(), d_v.data_ptr()},
      {workspace.floats(), heads, seq, scale_of(HeadDim)}, stream_of(q));
  throw_unless_ok("attention_backward", status);
}

}  // namespace ptxbench::candidate
