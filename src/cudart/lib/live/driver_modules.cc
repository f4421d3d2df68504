// Driver API, live: modules, libraries and kernels loaded by a call. A CUmodule and a CUlibrary are
// the same object here, as are CUfunction and CUkernel.
#include <cuda.h>

#include <cstdio>
#include <cstring>

#include "base/files.h"
#include "cudart/lib/driver_errors.h"
#include "cudart/lib/live/backend.h"

using namespace ptxbench::cudart;
using namespace ptxbench::cudart::live;

namespace {

// Where the caller wants to read why an image was refused.
struct ErrorLog {
  char* text = nullptr;
  size_t bytes = 0;

  void write(const std::string& why) const {
    if (text && bytes) std::snprintf(text, bytes, "%s", why.c_str());
  }
};

ErrorLog error_log(const CUjit_option* options, void** values, unsigned count) {
  ErrorLog log;
  for (unsigned i = 0; options && values && i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log.text = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      log.bytes = static_cast<unsigned>(reinterpret_cast<uintptr_t>(values[i]));
  }
  return log;
}

CUresult load(Module** out, const void* image, const ErrorLog& log = {}) {
  if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
  std::string why;
  const int status = emulation().load_module(image, out, &why);
  if (status) log.write(why);
  return driver_result(status);
}

CUresult load_file(Module** out, const char* name) {
  if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
  const auto bytes = ptxbench::read_bytes(name);
  if (!bytes.ok()) return CUDA_ERROR_FILE_NOT_FOUND;
  std::string why;
  return driver_result(emulation().load_module_bytes(*bytes, out, &why));
}

Module* module_of(const void* handle) {
  return emulation().is_module(handle) ? static_cast<Module*>(const_cast<void*>(handle)) : nullptr;
}

CUresult find_kernel(void** out, const void* module, const char* name) {
  Lock lock;
  Module* m = module_of(module);
  if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  *out = emulation().kernel_in(*m, name);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult find_variable(CUdeviceptr* address, size_t* bytes, const void* module, const char* name) {
  Lock lock;
  Module* m = module_of(module);
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  const Variable* v = emulation().variable_in(*m, name);
  if (!v) return CUDA_ERROR_NOT_FOUND;
  if (address) *address = v->address;
  if (bytes) *bytes = v->bytes;
  return CUDA_SUCCESS;
}

CUresult list_kernels(void** out, unsigned count, const void* module) {
  Lock lock;
  const Module* m = module_of(module);
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  unsigned i = 0;
  for (const auto& [name, kernel] : m->kernels)
    if (i < count) out[i++] = kernel.get();
  return CUDA_SUCCESS;
}

CUresult count_kernels(unsigned* count, const void* module) {
  Lock lock;
  const Module* m = module_of(module);
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  return *count = static_cast<unsigned>(m->kernels.size()), CUDA_SUCCESS;
}

CUresult unload(const void* module) {
  Lock lock;
  return driver_result(emulation().unload_module(module_of(module)));
}

CUresult parameter(const void* function, size_t index, size_t* offset, size_t* bytes) {
  const Kernel* kernel = emulation().kernel(function);
  if (!kernel || !kernel->info) return CUDA_ERROR_INVALID_HANDLE;
  if (index >= kernel->info->params.size()) return CUDA_ERROR_INVALID_VALUE;
  const wire::ParamSlot& slot = kernel->info->params[index];
  if (offset) *offset = slot.offset;
  if (bytes) *bytes = slot.bytes;
  return CUDA_SUCCESS;
}

CUresult name_of(const char** name, const void* function) {
  const Kernel* kernel = emulation().kernel(function);
  if (!kernel || !name) return CUDA_ERROR_INVALID_HANDLE;
  return *name = kernel->name, CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  return load(reinterpret_cast<Module**>(out), image);
}
CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned count, CUjit_option* options,
                            void** values) {
  return load(reinterpret_cast<Module**>(out), image, error_log(options, values, count));
}
CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) {
  return load(reinterpret_cast<Module**>(out), image);
}
CUresult cuModuleLoad(CUmodule* out, const char* name) {
  return load_file(reinterpret_cast<Module**>(out), name);
}
CUresult cuModuleUnload(CUmodule m) { return unload(m); }
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return *mode = CU_MODULE_LAZY_LOADING, CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* out, CUmodule m, const char* name) {
  return find_kernel(reinterpret_cast<void**>(out), m, name);
}
CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule m) { return count_kernels(count, m); }
CUresult cuModuleEnumerateFunctions(CUfunction* out, unsigned count, CUmodule m) {
  return list_kernels(reinterpret_cast<void**>(out), count, m);
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule m, const char* name) {
  return find_variable(address, bytes, m, name);
}

CUresult cuLibraryLoadData(CUlibrary* out, const void* image, CUjit_option* options, void** values,
                           unsigned count, CUlibraryOption*, void**, unsigned) {
  return load(reinterpret_cast<Module**>(out), image, error_log(options, values, count));
}
CUresult cuLibraryLoadFromFile(CUlibrary* out, const char* name, CUjit_option*, void**, unsigned,
                               CUlibraryOption*, void**, unsigned) {
  return load_file(reinterpret_cast<Module**>(out), name);
}
CUresult cuLibraryUnload(CUlibrary m) { return unload(m); }
CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary m, const char* name) {
  return find_kernel(reinterpret_cast<void**>(out), m, name);
}
CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary m) { return count_kernels(count, m); }
CUresult cuLibraryEnumerateKernels(CUkernel* out, unsigned count, CUlibrary m) {
  return list_kernels(reinterpret_cast<void**>(out), count, m);
}
CUresult cuLibraryGetModule(CUmodule* out, CUlibrary m) {
  return *out = reinterpret_cast<CUmodule>(m), CUDA_SUCCESS;
}
CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary m, const char* name) {
  return find_variable(address, bytes, m, name);
}
CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary m, const char* name) {
  return find_variable(address, bytes, m, name);
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice) {
  return cuFuncGetAttribute(value, attribute, reinterpret_cast<CUfunction>(kernel));
}
CUresult cuKernelGetName(const char** name, CUkernel kernel) { return name_of(name, kernel); }
CUresult cuFuncGetName(const char** name, CUfunction function) { return name_of(name, function); }
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  return parameter(kernel, index, offset, bytes);
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  return parameter(function, index, offset, bytes);
}
CUresult cuKernelSetCacheConfig(CUkernel, CUfunc_cache, CUdevice) { return CUDA_SUCCESS; }
CUresult cuFuncGetModule(CUmodule* out, CUfunction function) {
  const auto* kernel = static_cast<LiveKernel*>(emulation().kernel(function));
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  return *out = reinterpret_cast<CUmodule>(kernel->module), CUDA_SUCCESS;
}
CUresult cuKernelGetLibrary(CUlibrary* out, CUkernel kernel) {
  return cuFuncGetModule(reinterpret_cast<CUmodule*>(out), reinterpret_cast<CUfunction>(kernel));
}

}  // extern "C"
