#pragma once
// Candidate entry point; see ptxbench/candidate.cuh for its arguments.

#include <ptxbench/candidate.cuh>

#include "attention_forward_mma.cuh"

namespace ptxbench::candidate {

template <int HeadDim, bool Causal>
void run_forward(TensorView q, TensorView k, TensorView v, TensorView o, TensorView lse) {
  using Element = __nv_bfloat16;
  const cudaError_t status = sm80::launch_attention_forward_mma<HeadDim, Causal>(
      {data_of<Element>(q), data_of<Element>(k), data_of<Element>(v), data_of<Element>(o),
       data_of<float>(lse), heads_of(q), seq_of(q), scale_of(HeadDim)},
      stream_of(q));
  throw_unless_ok("attention_forward_mma", status);
}

}  // namespace ptxbench::candidate
