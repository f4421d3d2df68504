// Driver API: initialisation, devices, contexts, errors, entry-point queries. Tensor maps:
// driver_tensor_map.cc.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "cudart/lib/backend.h"
#include "cudart/lib/device_info.h"
#include "cudart/lib/driver_errors.h"

using namespace ptxbench::cudart;

namespace {
CUcontext context() { return reinterpret_cast<CUcontext>(ptxbench_backend()); }
}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) { return *version = CUDA_VERSION, CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = 0;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetCount(int* count) { return *count = 1, CUDA_SUCCESS; }
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::snprintf(name, static_cast<size_t>(length), "%s", ptxbench_backend()->profile().name);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  return value && device_attribute(ptxbench_backend()->profile(), attribute, value)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  return *bytes = ptxbench_backend()->profile().memory_bytes, CUDA_SUCCESS;
}
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice) {
  const DeviceProfile& p = ptxbench_backend()->profile();
  return *major = p.major, *minor = p.minor, CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* out) { return *out = context(), CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent_v2(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent_v2(CUcontext* out) {
  if (out) *out = context();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) { return *device = 0, CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice) {
  return *out = context(), CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }

CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = driver_error_name(error);
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = driver_error_text(error);
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetProcAddress_v2(const char* name, void** out, int, cuuint64_t,
                             CUdriverProcAddressQueryResult* status) {
  if (!name || !out) return CUDA_ERROR_INVALID_VALUE;
  *out = ptxbench_driver_symbol(name);
  if (status) *status = *out ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
// The header maps the plain name to _v2; the symbol exists beside it.
__attribute__((visibility("default"))) CUresult first_get_proc_address(
    const char* name, void** out, int version, cuuint64_t flags) __asm__("cuGetProcAddress");
CUresult first_get_proc_address(const char* name, void** out, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, out, version, flags, nullptr);
}

}  // extern "C"

namespace ptxbench::cudart {

extern "C" void* ptxbench_driver_symbol(const char* name) {
  // A query by plain name means the newest version that the headers map it to.
  if (std::strncmp(name, "cu", 2) != 0 || std::strncmp(name, "cuda", 4) == 0) return nullptr;
  static void* self = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&ptxbench_driver_symbol), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  for (const char* suffix : {"_v3", "_v2", ""})
    if (void* found = self ? dlsym(self, (std::string(name) + suffix).c_str()) : nullptr)
      return found;
  return nullptr;
}

}  // namespace ptxbench::cudart
