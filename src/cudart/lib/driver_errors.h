#pragma once
// Error numbers: what the backend returns is the runtime's; names and texts of those that can
// occur.

#include <cuda.h>

#include "cudart/lib/backend.h"

namespace ptxbench::cudart {

inline CUresult driver_result(int status) {
  switch (status) {
    case kInvalidConfiguration:
      return CUDA_ERROR_INVALID_VALUE;
    case kInvalidDeviceFunction:
      return CUDA_ERROR_NOT_FOUND;
    case kInvalidSymbol:
      return CUDA_ERROR_NOT_FOUND;
    default:
      return static_cast<CUresult>(status);
  }
}

// X(runtime number, runtime name, driver number, driver name, text)
#define PBX_ERRORS(X)                                                                            \
  X(0, "cudaSuccess", 0, "CUDA_SUCCESS", "no error")                                             \
  X(1, "cudaErrorInvalidValue", 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument")               \
  X(2, "cudaErrorMemoryAllocation", 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")              \
  X(3, "cudaErrorInitializationError", 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error")  \
  X(9, "cudaErrorInvalidConfiguration", -1, "", "invalid configuration argument")                \
  X(13, "cudaErrorInvalidSymbol", -1, "", "invalid device symbol")                               \
  X(98, "cudaErrorInvalidDeviceFunction", -1, "", "invalid device function")                     \
  X(100, "cudaErrorNoDevice", 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected") \
  X(101, "cudaErrorInvalidDevice", 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal")   \
  X(201, "cudaErrorDeviceUninitialized", 201, "CUDA_ERROR_INVALID_CONTEXT",                      \
    "invalid device context")                                                                    \
  X(209, "cudaErrorNoKernelImageForDevice", 209, "CUDA_ERROR_NO_BINARY_FOR_GPU",                 \
    "no kernel image is available for execution on the device")                                  \
  X(400, "cudaErrorInvalidResourceHandle", 400, "CUDA_ERROR_INVALID_HANDLE",                     \
    "invalid resource handle")                                                                   \
  X(500, "cudaErrorSymbolNotFound", 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found")       \
  X(600, "cudaErrorNotReady", 600, "CUDA_ERROR_NOT_READY", "device not ready")                   \
  X(701, "cudaErrorLaunchOutOfResources", 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",             \
    "too many resources requested for launch")                                                   \
  X(720, "cudaErrorCooperativeLaunchTooLarge", 720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",   \
    "too many blocks in cooperative launch")                                                     \
  X(801, "cudaErrorNotSupported", 801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported")    \
  X(912, "cudaErrorInvalidClusterSize", 912, "CUDA_ERROR_INVALID_CLUSTER_SIZE",                  \
    "invalid cluster size")                                                                      \
  X(999, "cudaErrorUnknown", 999, "CUDA_ERROR_UNKNOWN", "unknown error")

inline const char* runtime_error_name(int error) {
#define X(number, name, dn, dname, text) \
  if (error == number) return name;
  PBX_ERRORS(X)
#undef X
  return "unrecognized error code";
}
inline const char* error_text(int error) {
#define X(number, name, dn, dname, text) \
  if (error == number) return text;
  PBX_ERRORS(X)
#undef X
  return "unrecognized error code";
}
inline const char* driver_error_name(int error) {
#define X(number, name, dn, dname, text) \
  if (error == dn) return dname;
  PBX_ERRORS(X)
#undef X
  return nullptr;
}
inline const char* driver_error_text(int error) {
  return driver_error_name(error) ? error_text(error) : nullptr;
}

}  // namespace ptxbench::cudart
