// Runtime, live: libraries loaded by a call, limits, what there is of devices besides the first.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "cudart/lib/launch_attributes.h"
#include "cudart/lib/live/backend.h"
#include "cudart/lib/runtime_state.h"

using namespace ptxbench::cudart;
using namespace ptxbench::cudart::live;

namespace {

// The driver's error numbers are the runtime's where both have the error.
cudaError_t from_driver(CUresult result) { return set_last(static_cast<cudaError_t>(result)); }

template <class To, class From>
To as(From from) {
  return reinterpret_cast<To>(from);
}

struct Limits {
  size_t stack = 1024, print_fifo = 1 << 20;
};
Limits& limits() {
  static Limits* all = new Limits;
  return *all;
}

}  // namespace

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* out, const void* code, cudaJitOption*, void**,
                                unsigned, cudaLibraryOption*, void**, unsigned) {
  return from_driver(
      cuLibraryLoadData(as<CUlibrary*>(out), code, nullptr, nullptr, 0, nullptr, nullptr, 0));
}
cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* out, const char* name, cudaJitOption*, void**,
                                    unsigned, cudaLibraryOption*, void**, unsigned) {
  return from_driver(
      cuLibraryLoadFromFile(as<CUlibrary*>(out), name, nullptr, nullptr, 0, nullptr, nullptr, 0));
}
cudaError_t cudaLibraryUnload(cudaLibrary_t m) {
  return from_driver(cuLibraryUnload(as<CUlibrary>(m)));
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* out, cudaLibrary_t m, const char* name) {
  return from_driver(cuLibraryGetKernel(as<CUkernel*>(out), as<CUlibrary>(m), name));
}
cudaError_t cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t m, const char* name) {
  return from_driver(cuLibraryGetGlobal(as<CUdeviceptr*>(address), bytes, as<CUlibrary>(m), name));
}
cudaError_t cudaLibraryGetManaged(void** address, size_t* bytes, cudaLibrary_t m,
                                  const char* name) {
  return cudaLibraryGetGlobal(address, bytes, m, name);
}
cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t m) {
  return from_driver(cuLibraryGetKernelCount(count, as<CUlibrary>(m)));
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* out, unsigned count, cudaLibrary_t m) {
  return from_driver(cuLibraryEnumerateKernels(as<CUkernel*>(out), count, as<CUlibrary>(m)));
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                            int value, int device) {
  if (device != 0) return set_last(cudaErrorInvalidDevice);
  return set_last(set_function_attribute(emulation().kernel(kernel), attribute, value));
}
cudaError_t cudaFuncGetParamInfo(const void* f, size_t index, size_t* offset, size_t* bytes) {
  const Kernel* kernel = emulation().kernel(f);
  if (!kernel) return set_last(cudaErrorInvalidDeviceFunction);
  return from_driver(
      cuKernelGetParamInfo(as<CUkernel>(const_cast<Kernel*>(kernel)), index, offset, bytes));
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  switch (limit) {
    case cudaLimitMallocHeapSize:
      return set_last(emulation().set_heap_size(value));
    case cudaLimitStackSize:  // what a thread needs, it gets
      return limits().stack = value, cudaSuccess;
    case cudaLimitPrintfFifoSize:  // printf is written at once: nothing overflows
      return limits().print_fifo = value, cudaSuccess;
    default:
      return limit < cudaLimitPersistingL2CacheSize + 1 ? cudaSuccess
                                                        : set_last(cudaErrorInvalidValue);
  }
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  if (!value) return set_last(cudaErrorInvalidValue);
  switch (limit) {
    case cudaLimitMallocHeapSize:
      return *value = emulation().heap_size(), cudaSuccess;
    case cudaLimitStackSize:
      return *value = limits().stack, cudaSuccess;
    case cudaLimitPrintfFifoSize:
      return *value = limits().print_fifo, cudaSuccess;
    case cudaLimitMaxL2FetchGranularity:
      return *value = 128, cudaSuccess;
    case cudaLimitPersistingL2CacheSize:
      return *value = 0, cudaSuccess;
    default:
      return set_last(cudaErrorUnsupportedLimit);
  }
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* out) {
  return *out = cudaFuncCachePreferNone, cudaSuccess;
}
cudaError_t cudaGetDeviceFlags(unsigned* flags) { return *flags = 0, cudaSuccess; }
cudaError_t cudaSetValidDevices(int*, int) { return cudaSuccess; }
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  return *device = 0, cudaSuccess;
}
// There is one device.
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 0, cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return set_last(cudaErrorPeerAccessUnsupported);
}
cudaError_t cudaDeviceGetPCIBusId(char* out, int length, int device) {
  if (!out || length < 13 || device != 0) return set_last(cudaErrorInvalidValue);
  return std::snprintf(out, static_cast<size_t>(length), "0000:01:00.0"), cudaSuccess;
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* name) {
  if (!device || !name || !std::strstr(name, "01:00.0")) return set_last(cudaErrorInvalidValue);
  return *device = 0, cudaSuccess;
}
cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }
cudaError_t cudaFuncSetSharedMemConfig(const void*, cudaSharedMemConfig) { return cudaSuccess; }

}  // extern "C"
