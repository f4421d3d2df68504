// The block-scaled FP8 GEMM as a candidate: see ptxbench/candidate.cuh for its arguments.

#include <ptxbench/candidate.cuh>

#include "fp8_gemm_launch.cuh"

namespace ptxbench::candidate {

void run_gemm(TensorView a, TensorView scale_a, TensorView b, TensorView scale_b, TensorView d) {
  const sm90::GemmShape shape{static_cast<int>(a.size(0)), static_cast<int>(b.size(0)),
                              static_cast<int>(a.size(1))};
  const cudaError_t status = sm90::launch_fp8_gemm(
      a.data_ptr(), b.data_ptr(), d.data_ptr(), {data_of<float>(scale_a), data_of<float>(scale_b)},
      shape, a.device().device_id, stream_of(a));
  throw_unless_ok("fp8_gemm", status);
}

}  // namespace ptxbench::candidate

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, ptxbench::candidate::run_gemm);
