#pragma once
// Error numbers: what the backend returns is the runtime's; names and texts of those
// that can occur.

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
#define PBX_ERRORS(X)                                                                              \
  X(0, "cudaSuccess", 0, "CUDA_SUCCESS", "no error")                                               \
  X(1, "cudaErrorInvalidValue", 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument")                 \
  X(2, "cudaErrorMemoryAllocation", 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")                \
  X(3, "cudaErrorInitializationError", 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error")    \
  X(4, "cudaErrorCudartUnloading", 4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down")          \
  X(9, "cudaErrorInvalidConfiguration", -1, "", "invalid configuration argument")                  \
  X(12, "cudaErrorInvalidPitchValue", -1, "", "invalid pitch argument")                            \
  X(13, "cudaErrorInvalidSymbol", -1, "", "invalid device symbol")                                 \
  X(21, "cudaErrorInvalidMemcpyDirection", -1, "", "invalid copy direction for memcpy")            \
  X(35, "cudaErrorInsufficientDriver", -1, "",                                                     \
    "CUDA driver version is insufficient for CUDA runtime version")                                \
  X(36, "cudaErrorCallRequiresNewerDriver", 36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER",           \
    "API call is not supported in the installed CUDA driver")                                      \
  X(52, "cudaErrorMissingConfiguration", -1, "", "__global__ function call is not configured")     \
  X(98, "cudaErrorInvalidDeviceFunction", -1, "", "invalid device function")                       \
  X(100, "cudaErrorNoDevice", 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")   \
  X(101, "cudaErrorInvalidDevice", 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal")     \
  X(201, "cudaErrorDeviceUninitialized", 201, "CUDA_ERROR_INVALID_CONTEXT",                        \
    "invalid device context")                                                                      \
  X(209, "cudaErrorNoKernelImageForDevice", 209, "CUDA_ERROR_NO_BINARY_FOR_GPU",                   \
    "no kernel image is available for execution on the device")                                    \
  X(217, "cudaErrorPeerAccessUnsupported", 217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",              \
    "peer access is not supported between these two devices")                                      \
  X(218, "cudaErrorInvalidPtx", 218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed")     \
  X(300, "cudaErrorInvalidSource", 300, "CUDA_ERROR_INVALID_SOURCE",                               \
    "device kernel image is invalid")                                                              \
  X(301, "cudaErrorFileNotFound", 301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found")              \
  X(400, "cudaErrorInvalidResourceHandle", 400, "CUDA_ERROR_INVALID_HANDLE",                       \
    "invalid resource handle")                                                                     \
  X(401, "cudaErrorIllegalState", 401, "CUDA_ERROR_ILLEGAL_STATE",                                 \
    "the operation cannot be performed in the present state")                                      \
  X(500, "cudaErrorSymbolNotFound", 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found")         \
  X(600, "cudaErrorNotReady", 600, "CUDA_ERROR_NOT_READY", "device not ready")                     \
  X(700, "cudaErrorIllegalAddress", 700, "CUDA_ERROR_ILLEGAL_ADDRESS",                             \
    "an illegal memory access was encountered")                                                    \
  X(701, "cudaErrorLaunchOutOfResources", 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",               \
    "too many resources requested for launch")                                                     \
  X(702, "cudaErrorLaunchTimeout", 702, "CUDA_ERROR_LAUNCH_TIMEOUT",                               \
    "the launch timed out and was terminated")                                                     \
  X(704, "cudaErrorPeerAccessAlreadyEnabled", 704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",       \
    "peer access is already enabled")                                                              \
  X(710, "cudaErrorAssert", 710, "CUDA_ERROR_ASSERT", "device-side assert triggered")              \
  X(712, "cudaErrorHostMemoryAlreadyRegistered", 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", \
    "part or all of the requested memory range is already mapped")                                 \
  X(713, "cudaErrorHostMemoryNotRegistered", 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",         \
    "pointer does not correspond to a registered memory region")                                   \
  X(715, "cudaErrorIllegalInstruction", 715, "CUDA_ERROR_ILLEGAL_INSTRUCTION",                     \
    "an illegal instruction was encountered")                                                      \
  X(716, "cudaErrorMisalignedAddress", 716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address") \
  X(719, "cudaErrorLaunchFailure", 719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure")  \
  X(720, "cudaErrorCooperativeLaunchTooLarge", 720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",     \
    "too many blocks in cooperative launch")                                                       \
  X(800, "cudaErrorNotPermitted", 800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted")      \
  X(801, "cudaErrorNotSupported", 801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported")      \
  X(900, "cudaErrorStreamCaptureUnsupported", 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",        \
    "operation not permitted when stream is capturing")                                            \
  X(901, "cudaErrorStreamCaptureInvalidated", 901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",        \
    "operation failed due to a previous error during capture")                                     \
  X(902, "cudaErrorStreamCaptureMerge", 902, "CUDA_ERROR_STREAM_CAPTURE_MERGE",                    \
    "operation would result in a merge of separate capture sequences")                             \
  X(903, "cudaErrorStreamCaptureUnmatched", 903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",            \
    "capture was not ended in the same stream as it began")                                        \
  X(904, "cudaErrorStreamCaptureUnjoined", 904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",              \
    "capturing stream has unjoined work")                                                          \
  X(905, "cudaErrorStreamCaptureIsolation", 905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",            \
    "dependency created on uncaptured work in another stream")                                     \
  X(906, "cudaErrorStreamCaptureImplicit", 906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",              \
    "operation would make the legacy stream depend on a capturing blocking stream")                \
  X(907, "cudaErrorCapturedEvent", 907, "CUDA_ERROR_CAPTURED_EVENT",                               \
    "operation not permitted on an event last recorded in a capturing stream")                     \
  X(908, "cudaErrorStreamCaptureWrongThread", 908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",       \
    "attempt to terminate a thread-local capture sequence from another thread")                    \
  X(910, "cudaErrorGraphExecUpdateFailure", 910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",           \
    "the graph update was not performed because it included changes which violated constraints "   \
    "specific to instantiated graph update")                                                       \
  X(912, "cudaErrorInvalidClusterSize", 912, "CUDA_ERROR_INVALID_CLUSTER_SIZE",                    \
    "invalid cluster size")                                                                        \
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
