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

void** __cudaRegisterFatBinary(void* fatbin) {
  static std::vector<void*>* handles = new std::vector<void*>;
  handles->push_back(fatbin);
  return new void*(fatbin);
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*,
                            void*, void*, int*) {
  ptxbench_backend()->register_function(host, name);
}
void __cudaRegisterVar(void**, char* host, char*, const char* name, int, size_t bytes, int, int) {
  ptxbench_backend()->register_symbol(host, name, bytes);
}
void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int, int) {
  ptxbench_backend()->unsupported("__cudaRegisterManagedVar (__managed__ variables)");
}
char __cudaInitModule(void**) { return 0; }

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
