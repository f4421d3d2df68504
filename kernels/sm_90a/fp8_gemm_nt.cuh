#pragma once
// Candidate entry point; see ptxbench/candidate.cuh for its arguments.

#include <ptxbench/candidate.cuh>

#include "fp8_gemm_launch.cuh"

namespace ptxbench::candidate {

// ScaleRowsB: 1D1D. Specialised: with a warpgroup that copies.
template <bool ScaleRowsB, bool Specialised = true>
void run_gemm(TensorView a, TensorView scale_a, TensorView b, TensorView scale_b, TensorView d) {
  const sm90::GemmShape shape{static_cast<int>(a.size(0)), static_cast<int>(b.size(0)),
                              static_cast<int>(a.size(1))};
  const sm90::Fp8Scales scales{data_of<float>(scale_a), data_of<float>(scale_b), shape.n};
  if constexpr (Specialised) {
    throw_unless_ok("fp8_gemm", sm90::launch_fp8_gemm<ScaleRowsB>(
                                    a.data_ptr(), b.data_ptr(), d.data_ptr(), scales, shape,
                                    a.device().device_id, stream_of(a)));
  } else {
    throw_unless_ok("fp8_gemm_unspecialised",
                    sm90::launch_fp8_gemm_unspecialised<ScaleRowsB>(
                        a.data_ptr(), b.data_ptr(), d.data_ptr(), scales, shape, stream_of(a)));
  }
}

}  // namespace ptxbench::candidate
