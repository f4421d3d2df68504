#pragma once
// What nvcc generates around host code, by hand: registration of kernels and symbols, and the
// exported entry points of the TVM-FFI C ABI.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*,
                            void*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, void*);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*);
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message);
}

struct Tensor {
  void* data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  const int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct Any {
  int32_t type_index;
  uint32_t padding;
  Tensor* tensor;
};

inline int fail(const char* kind, const char* message) {
  TVMFFIErrorSetRaisedFromCStr(kind, message);
  return -1;
}
inline int check(cudaError_t error) {
  return error == cudaSuccess ? 0 : fail("RuntimeError", cudaGetErrorString(error));
}

// Host stubs of the kernels: only their addresses matter.
inline char vec, with_struct, with_map, shared_user, pairs, not_in_ptx;
inline char table, scale;

#define PROGRAM(name)                                                     \
  extern "C" __attribute__((visibility("default"))) int __tvm_ffi_##name( \
      void*, const Any* arguments, int32_t count, Any*)
#define DATA(i) static_cast<char*>(arguments[i].tensor->data)
#define UNUSED (void)arguments, (void)count

template <class... T>
cudaError_t launch(void* stub, dim3 grid, dim3 block, size_t shared, T... values) {
  void* pointers[] = {&values...};
  return cudaLaunchKernel(stub, grid, block, pointers, shared, nullptr);
}
