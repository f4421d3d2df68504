#pragma once
// The CUDA driver, opened at run time: the same binary starts on machines without one. Entry points
// by their versioned names; those of `optional` may be missing.

#include <cuda.h>

#include <string>

#include "base/result.h"

namespace ptxbench::device::cuda {

#define PTXBENCH_DRIVER_ENTRIES(X) \
  X(cuInit)                        \
  X(cuDriverGetVersion)            \
  X(cuDeviceGet)                   \
  X(cuDeviceGetCount)              \
  X(cuDeviceGetName)               \
  X(cuDeviceGetAttribute)          \
  X(cuDeviceTotalMem_v2)           \
  X(cuDevicePrimaryCtxRetain)      \
  X(cuCtxSetCurrent)               \
  X(cuCtxSetLimit)                 \
  X(cuGetErrorName)                \
  X(cuGetErrorString)              \
  X(cuModuleLoadDataEx)            \
  X(cuModuleGetFunction)           \
  X(cuModuleGetGlobal_v2)          \
  X(cuFuncSetAttribute)            \
  X(cuFuncGetAttribute)            \
  X(cuLaunchKernelEx)              \
  X(cuMemAlloc_v2)                 \
  X(cuMemFree_v2)                  \
  X(cuMemsetD8Async)               \
  X(cuMemsetD16Async)              \
  X(cuMemsetD32Async)              \
  X(cuMemcpyHtoDAsync_v2)          \
  X(cuMemcpyDtoHAsync_v2)          \
  X(cuMemcpyDtoDAsync_v2)          \
  X(cuStreamCreate)                \
  X(cuStreamSynchronize)           \
  X(cuEventCreate)                 \
  X(cuEventRecord)                 \
  X(cuEventSynchronize)            \
  X(cuEventElapsedTime_v2)         \
  X(cuTensorMapEncodeTiled)

#define PTXBENCH_OPTIONAL_DRIVER_ENTRIES(X) \
  X(cuDeviceGetPCIBusId)                    \
  X(cuCtxResetPersistingL2Cache)            \
  X(cuMemAddressReserve)                    \
  X(cuMemAddressFree)                       \
  X(cuMemCreate)                            \
  X(cuMemRelease)                           \
  X(cuMemMap)                               \
  X(cuMemUnmap)                             \
  X(cuMemSetAccess)                         \
  X(cuMemGetAllocationGranularity)          \
  X(cuMemHostRegister_v2)                   \
  X(cuMemHostUnregister)                    \
  X(cuLinkCreate_v2)                        \
  X(cuLinkAddData_v2)                       \
  X(cuLinkComplete)                         \
  X(cuLinkDestroy)                          \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor)

struct Driver {
#define X(entry) decltype(&::entry) entry = nullptr;
  PTXBENCH_DRIVER_ENTRIES(X)
  PTXBENCH_OPTIONAL_DRIVER_ENTRIES(X)
#undef X
  bool emulated = false;  // this project's own library, which runs kernels on the CPU

  // `path` empty: libcuda.so.1 as the loader finds it, and an emulated one is refused; a path is
  // taken as it is. Errors: "no-driver" (no such library, or an entry point is missing).
  static Result<Driver> open(const std::string& path);
  // "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
  std::string describe(CUresult code) const;
};

}  // namespace ptxbench::device::cuda
