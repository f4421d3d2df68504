// Runtime: what compiled host code calls before main and around <<<>>>.
#include <cuda_runtime_api.h>

#include <vector>

#include "cudart/lib/backend.h"
#include "cudart/lib/runtime_state.h"

using namespace ptxbench::cudart;

namespace {
struct Configuration {
  dim3 grid, block;
  size_t shared;
  void* stream;
};
thread_local std::vector<Configuration> pending;  // nested: arguments of <<<>>> may launch
}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* fatbin) { return ptxbench_backend()->register_module(fatbin); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** module) { ptxbench_backend()->unregister_module(module); }
void __cudaRegisterFunction(void** module, const char* host, char*, const char* name, int, void*,
                            void*, void*, void*, int*) {
  ptxbench_backend()->register_function(module, host, name);
}
void __cudaRegisterVar(void** module, char* host, char*, const char* name, int, size_t bytes, int,
                       int) {
  ptxbench_backend()->register_symbol(module, host, name, bytes);
}
void __cudaRegisterManagedVar(void** module, void** host, char*, const char* name, int,
                              size_t bytes, int, int) {
  ptxbench_backend()->register_managed(module, host, name, bytes);
}
char __cudaInitModule(void** module) { return ptxbench_backend()->init_module(module), char{1}; }

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
  pending.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (pending.empty()) return set_last(cudaErrorMissingConfiguration);
  const Configuration top = pending.back();
  pending.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<void**>(stream) = top.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* out, const void* host) {
  *out = reinterpret_cast<cudaKernel_t>(ptxbench_backend()->kernel(host));
  return *out ? cudaSuccess : set_last(cudaErrorInvalidDeviceFunction);
}

}  // extern "C"
