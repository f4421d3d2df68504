// Runtime: devices, errors, versions, driver entry points.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "cudart/lib/backend.h"
#include "cudart/lib/device_info.h"
#include "cudart/lib/driver_errors.h"
#include "cudart/lib/runtime_state.h"

using namespace ptxbench::cudart;

thread_local cudaError_t ptxbench::cudart::last_error = cudaSuccess;

namespace {

int attribute(cudaDeviceAttr which) {
  int value = 0;
  device_attribute(ptxbench_backend()->profile(), which, &value);
  return value;
}

void fill_properties(cudaDeviceProp* out) {
  const DeviceProfile& p = ptxbench_backend()->profile();
  std::memset(out, 0, sizeof *out);
  std::snprintf(out->name, sizeof out->name, "%s", p.name);
  out->totalGlobalMem = p.memory_bytes;
  out->sharedMemPerBlock = DeviceProfile::kSharedPerBlock;
  out->regsPerBlock = out->regsPerMultiprocessor = DeviceProfile::kRegistersPerSm;
  out->warpSize = DeviceProfile::kWarp;
  out->memPitch = 0x7fffffff;
  out->maxThreadsPerBlock = out->maxThreadsDim[0] = out->maxThreadsDim[1] =
      DeviceProfile::kMaxThreadsPerBlock;
  out->maxThreadsDim[2] = 64;
  out->maxGridSize[0] = 0x7fffffff;
  out->maxGridSize[1] = out->maxGridSize[2] = 65535;
  out->totalConstMem = 65536;
  out->major = p.major;
  out->minor = p.minor;
  out->textureAlignment = out->surfaceAlignment = 512;
  out->texturePitchAlignment = 32;
  out->multiProcessorCount = p.sms;
  out->canMapHostMemory = out->concurrentKernels = out->ECCEnabled = out->unifiedAddressing = 1;
  out->pciBusID = 1;
  out->asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
  out->memoryBusWidth = p.memory_bus_bits;
  out->l2CacheSize = p.l2_bytes;
  out->persistingL2CacheMaxSize = p.persisting_l2_bytes;
  out->maxThreadsPerMultiProcessor = DeviceProfile::kMaxThreadsPerSm;
  out->streamPrioritiesSupported = out->globalL1CacheSupported = out->localL1CacheSupported = 1;
  out->sharedMemPerMultiprocessor = DeviceProfile::kSharedPerSm;
  out->managedMemory = out->concurrentManagedAccess = out->computePreemptionSupported = 1;
  out->canUseHostPointerForRegisteredMem = out->cooperativeLaunch = 1;
  out->sharedMemPerBlockOptin = DeviceProfile::kSharedPerBlockOptin;
  out->maxBlocksPerMultiProcessor = DeviceProfile::kMaxBlocksPerSm;
  out->accessPolicyMaxWindowSize = attribute(cudaDevAttrMaxAccessPolicyWindowSize);
  out->reservedSharedMemPerBlock = DeviceProfile::kReservedShared;
  out->hostRegisterSupported = out->memoryPoolsSupported = out->clusterLaunch =
      out->ipcEventSupported = 1;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : set_last(cudaErrorInvalidDevice);
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  if (device != 0) return set_last(cudaErrorInvalidDevice);
  if (!value || !device_attribute(ptxbench_backend()->profile(), which, value))
    return set_last(cudaErrorInvalidValue);
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  if (device != 0) return set_last(cudaErrorInvalidDevice);
  return fill_properties(out), cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  if (!is_sticky(error)) last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorName(cudaError_t error) { return runtime_error_name(error); }
const char* cudaGetErrorString(cudaError_t error) { return error_text(error); }

cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** out, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  if (!name || !out) return set_last(cudaErrorInvalidValue);
  *out = ptxbench_driver_symbol(name);
  if (status) *status = *out ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* name, void** out, unsigned version,
                                                  unsigned long long flags,
                                                  cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, out, version, flags, status);
}
cudaError_t cudaGetDriverEntryPoint(const char* name, void** out, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, out, CUDART_VERSION, flags, status);
}
cudaError_t cudaGetDriverEntryPoint_ptsz(const char* name, void** out, unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, out, CUDART_VERSION, flags, status);
}
cudaError_t __cudaGetProcAddress(const char* name, void** out, unsigned, unsigned long long,
                                 cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, out, CUDART_VERSION, 0, status);
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}

}  // extern "C"
