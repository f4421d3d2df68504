#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

__global__ void saxpy(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

void run(tvm::ffi::TensorView x, tvm::ffi::TensorView y, double a) {
  TVM_FFI_ICHECK_EQ(x.ndim(), 1) << "x must be 1-D";
  TVM_FFI_CHECK(x.size(0) == y.size(0), ValueError) << "shapes differ";
  int n = static_cast<int>(x.size(0));
  cudaStream_t stream =
      static_cast<cudaStream_t>(TVMFFIEnvGetStream(x.device().device_type, x.device().device_id));
  saxpy<<<(n + 255) / 256, 256, 0, stream>>>(static_cast<const float*>(x.data_ptr()),
                                             static_cast<float*>(y.data_ptr()), a, n);
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
