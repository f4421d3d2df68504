#ifndef PTXBENCH_FFI_EXTRA_CUDA_DEVICE_GUARD_H_
#define PTXBENCH_FFI_EXTRA_CUDA_DEVICE_GUARD_H_
#include <tvm/ffi/extra/cuda/base.h>

namespace tvm {
namespace ffi {

// Makes a device current for the guard's lifetime.
struct CUDADeviceGuard {
  explicit CUDADeviceGuard(int device) : target_(device) {
    TVM_FFI_CHECK_CUDA_ERROR(cudaGetDevice(&original_));
    if (target_ != original_) TVM_FFI_CHECK_CUDA_ERROR(cudaSetDevice(target_));
  }
  ~CUDADeviceGuard() noexcept(false) {
    if (target_ != original_) TVM_FFI_CHECK_CUDA_ERROR(cudaSetDevice(original_));
  }

 private:
  int original_ = 0;
  int target_;
};

}  // namespace ffi
}  // namespace tvm

#endif  // PTXBENCH_FFI_EXTRA_CUDA_DEVICE_GUARD_H_
