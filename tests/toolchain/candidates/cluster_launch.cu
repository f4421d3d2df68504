// Launched through cudaLaunchKernelEx with a cluster; a templated kernel and a templated entry.
#include <cuda_bf16.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/cuda/device_guard.h>
#include <tvm/ffi/function.h>

template <int kBlock>
__global__ void __launch_bounds__(kBlock) scale(const __nv_bfloat16* x, __nv_bfloat16* y, int n) {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < n) y[i] = __float2bfloat16(__bfloat162float(x[i]) * (1 + rank));
}

constexpr DLDataType kBf16 = DLDataType{kDLBfloat, 16, 1};

template <int kBlock>
int run(tvm::ffi::TensorView x, tvm::ffi::TensorView y, tvm::ffi::Optional<int64_t> blocks) {
  TVM_FFI_ICHECK(x.is_contiguous() && y.is_contiguous()) << "contiguous tensors only";
  TVM_FFI_ICHECK(x.dtype() == kBf16) << "bf16 only, not " << x.dtype();
  TVM_FFI_ICHECK_GE(x.shape()[0], 1);
  tvm::ffi::CUDADeviceGuard guard(x.device().device_id);
  const int n = static_cast<int>(x.numel());
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {2, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim =
      dim3(static_cast<unsigned>(blocks.value_or(2 * ((n + 2 * kBlock - 1) / (2 * kBlock)))));
  config.blockDim = dim3(kBlock);
  config.stream =
      static_cast<cudaStream_t>(TVMFFIEnvGetStream(x.device().device_type, x.device().device_id));
  config.attrs = &attribute;
  config.numAttrs = 1;
  TVM_FFI_CHECK_CUDA_ERROR(cudaLaunchKernelEx(&config, scale<kBlock>,
                                              static_cast<const __nv_bfloat16*>(x.data_ptr()),
                                              static_cast<__nv_bfloat16*>(y.data_ptr()), n));
  return n;
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run<128>);
