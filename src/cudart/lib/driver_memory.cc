// Driver API: memory.
#include <cuda.h>

#include "cudart/lib/backend.h"
#include "cudart/lib/driver_errors.h"

using namespace ptxbench::cudart;

namespace {
CUresult copy(uint64_t dst, uint64_t src, size_t bytes, CUstream stream = nullptr) {
  return driver_result(ptxbench_backend()->copy(CopyCall::flat(dst, src, bytes, stream)));
}
CUresult fill(CUdeviceptr dst, uint32_t value, uint32_t size, size_t count,
              CUstream stream = nullptr) {
  MemsetCall call;
  call.dst = dst;
  call.value = value;
  call.element_size = size;
  call.width = uint64_t{size} * count;
  call.stream = stream;
  return driver_result(ptxbench_backend()->memset(call));
}
uint64_t host(const void* p) { return reinterpret_cast<uint64_t>(p); }
}  // namespace

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  uint64_t address = 0;
  if (!out || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const int status = ptxbench_backend()->allocate(bytes, &address);
  *out = address;
  return driver_result(status);
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  return driver_result(ptxbench_backend()->release(address));
}
CUresult cuMemAllocHost_v2(void** out, size_t bytes) {
  *out = ptxbench_backend()->allocate_host(bytes);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned) {
  return cuMemAllocHost_v2(out, bytes);
}
CUresult cuMemFreeHost(void* p) { return driver_result(ptxbench_backend()->release_host(p)); }
CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  *total = ptxbench_backend()->profile().memory_bytes;
  *free_bytes = *total - ptxbench_backend()->allocated_bytes();
  return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  uint64_t b = 0, n = 0;
  if (!ptxbench_backend()->find(address, &b, &n)) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = b;
  if (bytes) *bytes = n;
  return CUDA_SUCCESS;
}

CUresult cuMemcpy(CUdeviceptr d, CUdeviceptr s, size_t n) { return copy(d, s, n); }
CUresult cuMemcpyAsync(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream t) {
  return copy(d, s, n, t);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void* s, size_t n) { return copy(d, host(s), n); }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void* s, size_t n, CUstream t) {
  return copy(d, host(s), n, t);
}
CUresult cuMemcpyDtoH_v2(void* d, CUdeviceptr s, size_t n) { return copy(host(d), s, n); }
CUresult cuMemcpyDtoHAsync_v2(void* d, CUdeviceptr s, size_t n, CUstream t) {
  return copy(host(d), s, n, t);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr d, CUdeviceptr s, size_t n) { return copy(d, s, n); }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream t) {
  return copy(d, s, n, t);
}
CUresult cuMemsetD8_v2(CUdeviceptr d, unsigned char v, size_t n) { return fill(d, v, 1, n); }
CUresult cuMemsetD16_v2(CUdeviceptr d, unsigned short v, size_t n) { return fill(d, v, 2, n); }
CUresult cuMemsetD32_v2(CUdeviceptr d, unsigned v, size_t n) { return fill(d, v, 4, n); }
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, CUstream t) {
  return fill(d, v, 1, n, t);
}
CUresult cuMemsetD16Async(CUdeviceptr d, unsigned short v, size_t n, CUstream t) {
  return fill(d, v, 2, n, t);
}
CUresult cuMemsetD32Async(CUdeviceptr d, unsigned v, size_t n, CUstream t) {
  return fill(d, v, 4, n, t);
}

}  // extern "C"
