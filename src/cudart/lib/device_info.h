#pragma once
// Device attributes of a profile. Driver and runtime number them alike.

#include <cuda_runtime_api.h>

#include "cudart/lib/profiles.h"

namespace ptxbench::cudart {

// False: no such attribute.
inline bool device_attribute(const DeviceProfile& p, int attribute, int* value) {
  using P = DeviceProfile;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return *value = P::kMaxThreadsPerBlock, true;
    case cudaDevAttrMaxBlockDimZ:
      return *value = 64, true;
    case cudaDevAttrMaxGridDimX:
    case cudaDevAttrMaxPitch:
      return *value = 0x7fffffff, true;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return *value = 65535, true;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return *value = P::kSharedPerBlock, true;
    case cudaDevAttrTotalConstantMemory:
      return *value = 65536, true;
    case cudaDevAttrWarpSize:
      return *value = P::kWarp, true;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return *value = P::kRegistersPerSm, true;
    case cudaDevAttrClockRate:
      return *value = p.clock_khz, true;
    case cudaDevAttrMemoryClockRate:
      return *value = p.memory_clock_khz, true;
    case cudaDevAttrGlobalMemoryBusWidth:
      return *value = p.memory_bus_bits, true;
    case cudaDevAttrTextureAlignment:
    case cudaDevAttrSurfaceAlignment:
      return *value = 512, true;
    case cudaDevAttrTexturePitchAlignment:
      return *value = 32, true;
    case cudaDevAttrMultiProcessorCount:
      return *value = p.sms, true;
    case cudaDevAttrL2CacheSize:
      return *value = p.l2_bytes, true;
    case cudaDevAttrMaxPersistingL2CacheSize:
      return *value = p.persisting_l2_bytes, true;
    case cudaDevAttrMaxAccessPolicyWindowSize:
      return *value = 134'213'632, true;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return *value = P::kMaxThreadsPerSm, true;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return *value = P::kMaxBlocksPerSm, true;
    case cudaDevAttrComputeCapabilityMajor:
      return *value = p.major, true;
    case cudaDevAttrComputeCapabilityMinor:
      return *value = p.minor, true;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return *value = P::kSharedPerSm, true;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return *value = P::kSharedPerBlockOptin, true;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return *value = P::kReservedShared, true;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
      return *value = 2, true;
    case cudaDevAttrMemSyncDomainCount:
      return *value = 4, true;
    case cudaDevAttrAsyncEngineCount:
      return *value = 3, true;
    case cudaDevAttrPciBusId:
      return *value = 1, true;
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrClusterLaunch:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrSparseCudaArraySupported:
    case cudaDevAttrTimelineSemaphoreInteropSupported:
    case cudaDevAttrMemoryPoolSupportedHandleTypes:
    case cudaDevAttrIpcEventSupport:
    case cudaDevAttrDeferredMappingCudaArraySupported:
      return *value = 1, true;
    default:
      // Textures, interop, topology: nothing a kernel's host code decides by; absent features are
      // 0.
      return *value = 0, attribute > 0 && attribute < cudaDevAttrMax;
  }
}

}  // namespace ptxbench::cudart
