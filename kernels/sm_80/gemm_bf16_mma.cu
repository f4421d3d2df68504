// Candidate wrapper of the mma.sync bf16 GEMM: run(A[M,K], B[N,K], C[M,N]), all bf16, row-major,
// contiguous. On a Hopper task it is right but on the wrong instructions.

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include "gemm_bf16_mma.cuh"

namespace {

void run(tvm::ffi::TensorView a, tvm::ffi::TensorView b, tvm::ffi::TensorView c) {
  const ptxbench::sm80::GemmArguments args{static_cast<const __nv_bfloat16*>(a.data_ptr()),
                                           static_cast<const __nv_bfloat16*>(b.data_ptr()),
                                           static_cast<__nv_bfloat16*>(c.data_ptr()),
                                           static_cast<int>(a.size(0)),
                                           static_cast<int>(b.size(0)),
                                           static_cast<int>(a.size(1))};
  const DLDevice device = a.device();
  auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  const cudaError_t status = ptxbench::sm80::launch_gemm_bf16_mma(args, stream);
  if (status != cudaSuccess) {
    TVM_FFI_THROW(RuntimeError) << "gemm_bf16_mma: " << cudaGetErrorString(status);
  }
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
