#pragma once
// The runtime's "last error", per thread.

#include <cuda_runtime_api.h>

namespace ptxbench::cudart {

extern thread_local cudaError_t last_error;

inline cudaError_t set_last(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}
// Errors of a device that has stopped: nothing takes them back.
inline bool is_sticky(cudaError_t error) {
  return error == cudaErrorIllegalAddress || error == cudaErrorLaunchTimeout ||
         error == cudaErrorAssert || error == cudaErrorMisalignedAddress ||
         error == cudaErrorLaunchFailure;
}
inline cudaError_t set_last(int status) { return set_last(static_cast<cudaError_t>(status)); }

}  // namespace ptxbench::cudart
