// Driver API: initialisation, devices, contexts, errors, entry-point queries, tensor maps.
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

CUresult fill_tiled(CUtensorMap* out, const ptxbench::plan::TensorMapArgs& args) {
  return driver_result(ptxbench_backend()->encode_tensor_map(args, out));
}
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

CUresult cuTensorMapEncodeTiled(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  Backend* backend = ptxbench_backend();
  if (rank < 1 || rank > 5)
    return driver_result(
        backend->refuse(kInvalidValue, "cuTensorMapEncodeTiled: rank is not 1..5"));
  if (!dims || !box || !element_strides || (rank > 1 && !strides))
    return driver_result(backend->refuse(kInvalidValue, "cuTensorMapEncodeTiled: null array"));
  if (type > CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ) {
    const std::string what = "cuTensorMapEncodeTiled with data type " + std::to_string(type);
    return driver_result(backend->unsupported(what.c_str()));
  }
  if (static_cast<unsigned>(swizzle) > CU_TENSOR_MAP_SWIZZLE_128B) {
    const std::string what = "cuTensorMapEncodeTiled with swizzle " + std::to_string(swizzle);
    return driver_result(backend->unsupported(what.c_str()));
  }
  if (static_cast<unsigned>(interleave) > 2 || static_cast<unsigned>(promotion) > 3 ||
      static_cast<unsigned>(fill) > 1)
    return driver_result(
        backend->refuse(kInvalidValue, "cuTensorMapEncodeTiled: enumerator out of range"));
  ptxbench::plan::TensorMapArgs args;
  args.type = static_cast<ptxbench::plan::MapType>(type);
  args.rank = rank;
  args.global_address = reinterpret_cast<uint64_t>(address);
  for (cuuint32_t i = 0; i < rank; ++i) {
    args.dims[i] = dims[i];
    if (i + 1 < rank) args.strides[i] = strides[i];
    args.box[i] = box[i];
    args.element_strides[i] = element_strides[i];
  }
  args.interleave = static_cast<ptxbench::plan::MapInterleave>(interleave);
  args.swizzle = static_cast<ptxbench::plan::MapSwizzle>(swizzle);
  args.l2_promotion = static_cast<uint8_t>(promotion);
  args.nan_fill = fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  return fill_tiled(out, args);
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
