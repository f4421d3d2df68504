#pragma once
// Candidate entry point; see ptxbench/candidate.cuh for its arguments.

#include <ptxbench/candidate.cuh>

#include "attention_forward_launch.cuh"

namespace ptxbench::candidate {

// Specialised: with a warpgroup that copies.
template <int HeadDim, bool Causal, bool Specialised = true>
void run_forward(TensorView q, TensorView k, TensorView v, TensorView o, TensorView lse) {
  const sm90::AttentionForwardTensors tensors{q.data_ptr(), k.data_ptr(), v.data_ptr(),
                                              o.data_ptr()};
  const sm90::AttentionForwardArguments args{data_of<float>(lse), heads_of(q), seq_of(q),
                                             scale_of(HeadDim)};
  if constexpr (Specialised) {
    throw_unless_ok("attention_forward", sm90::launch_attention_forward<HeadDim, Causal>(
                                             tensors, args, q.device().device_id, stream_of(q)));
  } else {
    throw_unless_ok(
        "attention_forward_unspecialised",
        sm90::launch_attention_forward_unspecialised<HeadDim, Causal>(tensors, args, stream_of(q)));
  }
}

}  // namespace ptxbench::candidate
