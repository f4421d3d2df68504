// Exercises what a host function may ask of its arguments; launches nothing.
#include <cuda_runtime.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>

#include <stdexcept>

__global__ void nothing() {}

int64_t run(tvm::ffi::TensorView x, int n, double a, bool flag, tvm::ffi::Optional<int64_t> maybe) {
  if (n == 1) TVM_FFI_THROW(ValueError) << "n is " << n << " and a is " << a;
  if (n == 2) throw std::runtime_error("plain exception");
  if (n == 3) return x.size(7);
  TVM_FFI_ICHECK_NE(n, 4) << "not four";
  TVM_FFI_ICHECK(x.dtype().code == kDLFloat && x.dtype().bits == 32) << "float32 only";
  TVM_FFI_CHECK(x.device().device_type == kDLCUDA, ValueError) << "on a GPU only";
  TVM_FFI_ICHECK_EQ(x.ndim(), 2);
  TVM_FFI_ICHECK(x.IsContiguous());
  if (TVMFFIEnvGetStream(x.device().device_type, x.device().device_id) != nullptr) return -1;
  int64_t product = 1;
  for (int64_t extent : x.shape()) product *= extent;
  TVM_FFI_ICHECK_EQ(product, x.numel()) << "shape";
  TVM_FFI_ICHECK_EQ(x.size(-1), x.shape()[1]);
  return product * 1000 + static_cast<int64_t>(a) * 100 + (flag ? 10 : 0) + maybe.value_or(0);
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
