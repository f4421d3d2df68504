#ifndef PTXBENCH_FFI_EXTRA_CUDA_BASE_H_
#define PTXBENCH_FFI_EXTRA_CUDA_BASE_H_
#include <cuda_runtime.h>
#include <tvm/ffi/error.h>

#define TVM_FFI_CHECK_CUDA_ERROR(stmt)                                                          \
  do {                                                                                          \
    cudaError_t ptxbench_error = (stmt);                                                        \
    if (ptxbench_error != cudaSuccess)                                                          \
      TVM_FFI_THROW(RuntimeError) << "CUDA Runtime Error: " << cudaGetErrorName(ptxbench_error) \
                                  << " (" << static_cast<int>(ptxbench_error)                   \
                                  << "): " << cudaGetErrorString(ptxbench_error);               \
  } while (0)

#endif  // PTXBENCH_FFI_EXTRA_CUDA_BASE_H_
