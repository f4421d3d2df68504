#pragma once
// Candidate entry points; see ptxbench/candidate.cuh for their arguments.

#include <ptxbench/candidate.cuh>

#include "attention_backward_launch.cuh"

namespace ptxbench::candidate {

// Split: by two kernels, deterministic.
template <int HeadDim, bool Causal, bool Split = false>
void run_backward(TensorView q, TensorView k, TensorView v, TensorView o, TensorView d_o,
                  TensorView lse, TensorView d_q, TensorView d_k, TensorView d_v) {
  const int heads = heads_of(q), seq = seq_of(q);
  const Workspace workspace(sm90::attention_backward_workspace(heads, seq, HeadDim, Split),
                            stream_of(q));
  const sm90::AttentionBackwardTensors tensors{q.data_ptr(),   k.data_ptr(),   v.data_ptr(),
                                               o.data_ptr(),   d_o.data_ptr(), data_of<float>(lse),
                                               d_q.data_ptr(), d_k.data_ptr(), d_v.data_ptr()};
  const sm90::AttentionBackwardArguments args{workspace.floats(), heads, seq, scale_of(HeadDim)};
  if constexpr (Split) {
    throw_unless_ok(
        "attention_backward_split",
        sm90::launch_attention_backward_split<HeadDim, Causal>(tensors, args, stream_of(q)));
  } else {
    throw_unless_ok("attention_backward",
                    sm90::launch_attention_backward<HeadDim, Causal>(tensors, args, stream_of(q)));
  }
}

}  // namespace ptxbench::candidate
