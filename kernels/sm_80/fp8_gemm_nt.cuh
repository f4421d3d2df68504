#pragma once
// The block-scaled FP8 GEMM of mma.sync as a candidate: see ptxbench/candidate.cuh for its
// arguments.

#include <ptxbench/candidate.cuh>

#include "fp8_gemm_mma.cuh"

namespace ptxbench::candidate {

template <bool ScaleRowsB>
void run_gemm(TensorView a, TensorView scale_a, TensorView b, TensorView scale_b, TensorView d) {
  const cudaError_t status = sm80::launch_fp8_gemm_mma<ScaleRowsB>(
      {data_of<uint8_t>(a), data_of<uint8_t>(b), data_of<float>(scale_a), data_of<float>(scale_b),
       data_of<__nv_bfloat16>(d), static_cast<int>(a.size(0)), static_cast<int>(b.size(0)),
       static_cast<int>(a.size(1))},
      stream_of(a));
  throw_unless_ok("fp8_gemm_mma", status);
}

}  // namespace ptxbench::candidate
