#pragma once
// Candidate entry point; see ptxbench/candidate.cuh for its arguments.

#include <ptxbench/candidate.cuh>

#include "attention_backward_mma.cuh"

namespace ptxbench::candidate {

template <int HeadDim, bool Causal>
void run_backward(TensorView q, TensorView k, TensorView v, TensorView o, TensorView d_o,
                  TensorView lse, TensorView d_q, TensorView d_k, TensorView d_v) {
  using Element = __nv_bfloat16;
  const int heads = heads_of(q), seq = seq_of(q);
  const Workspace workspace(static_cast<size_t>(heads) * seq * sizeof(float), stream_of(q));
  const cudaError_t status = sm80::launch_attention_backward_mma<HeadDim, Causal>(
      {data_of<Element>(q), data_of<Element>(k), data_of<Element>(v), data_of<Element>(o),
       data_of<Element>(d_o), data_of<float>(lse), data_of<Element>(d_q), data_of<Element>(d_k),
       data_of<Element>(d_v), workspace.floats(), heads, seq, scale_of(HeadDim)},
      stream_of(q));
  throw_unless_ok("attention_backward_mma", status);
}

}  // namespace ptxbench::candidate
