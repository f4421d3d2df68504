// Runtime: memory and symbols.
#include <cuda_runtime_api.h>

#include <cstdlib>

#include "cudart/lib/backend.h"
#include "cudart/lib/runtime_state.h"

using namespace ptxbench::cudart;

namespace {

uint64_t number(const void* p) { return reinterpret_cast<uint64_t>(p); }

cudaError_t copy(const CopyCall& call, cudaMemcpyKind kind) {
  Backend* b = ptxbench_backend();
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool fits = kind == cudaMemcpyDefault || call.width == 0 ||
                    ((to_device ? b->is_device(call.dst) : b->is_host(call.dst)) &&
                     (from_device ? b->is_device(call.src) : b->is_host(call.src)));
  if (!fits)
    return set_last(
        b->refuse(kInvalidValue, "cudaMemcpy: the direction does not fit the addresses"));
  return set_last(b->copy(call));
}

cudaError_t copy(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream = nullptr) {
  return copy(CopyCall::flat(number(dst), number(src), bytes, stream), kind);
}

cudaError_t copy_2d(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                    size_t height, cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
  if (width > dst_pitch || width > src_pitch)
    return set_last(
        ptxbench_backend()->refuse(kInvalidValue, "cudaMemcpy2D: width is larger than a pitch"));
  CopyCall call = CopyCall::flat(number(dst), number(src), width, stream);
  call.height = height;
  call.dst_pitch = dst_pitch;
  call.src_pitch = src_pitch;
  return copy(call, kind);
}

cudaError_t fill(void* dst, int value, size_t pitch, size_t width, size_t height,
                 cudaStream_t stream) {
  if (width > pitch && height > 1) return set_last(cudaErrorInvalidValue);
  MemsetCall call;
  call.dst = number(dst);
  call.value = static_cast<uint8_t>(value);
  call.width = width;
  call.height = height;
  call.pitch = pitch;
  call.stream = stream;
  return set_last(ptxbench_backend()->memset(call));
}

// The address of `offset` within a symbol, checked for `bytes`.
cudaError_t locate(const void* symbol, size_t offset, size_t bytes, uint64_t* address) {
  uint64_t base = 0, size = 0;
  if (!ptxbench_backend()->symbol(symbol, &base, &size)) return set_last(cudaErrorInvalidSymbol);
  if (offset > size || bytes > size - offset)
    return set_last(
        ptxbench_backend()->refuse(kInvalidValue, "copy runs past the end of a device symbol"));
  return *address = base + offset, cudaSuccess;
}

cudaError_t allocate(void** out, size_t bytes) {
  if (!out) return set_last(cudaErrorInvalidValue);
  uint64_t address = 0;
  const int status = ptxbench_backend()->allocate(bytes, &address);
  return *out = reinterpret_cast<void*>(address), set_last(status);
}
cudaError_t allocate_host(void** out, size_t bytes) {
  *out = ptxbench_backend()->allocate_host(bytes);
  return *out || bytes == 0 ? cudaSuccess : set_last(cudaErrorMemoryAllocation);
}

}  // namespace

// A function and its per-thread-default-stream twin.
#define WITH_PTSZ(name, parameters, arguments) \
  cudaError_t name##_ptsz parameters { return name arguments; }
#define WITH_PTDS(name, parameters, arguments) \
  cudaError_t name##_ptds parameters { return name arguments; }

extern "C" {

cudaError_t cudaMalloc(void** out, size_t bytes) { return allocate(out, bytes); }
cudaError_t cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return allocate(out, *pitch * height);
}
cudaError_t cudaFree(void* p) { return set_last(ptxbench_backend()->release(number(p))); }
cudaError_t cudaMallocHost(void** out, size_t bytes) { return allocate_host(out, bytes); }
cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned) { return allocate_host(out, bytes); }
cudaError_t cudaFreeHost(void* p) { return set_last(ptxbench_backend()->release_host(p)); }
cudaError_t cudaHostRegister(void* p, size_t bytes, unsigned) {
  return set_last(ptxbench_backend()->register_host(p, bytes));
}
cudaError_t cudaHostUnregister(void* p) { return set_last(ptxbench_backend()->unregister_host(p)); }

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  *total = ptxbench_backend()->profile().memory_bytes;
  return *free_bytes = *total - ptxbench_backend()->allocated_bytes(), cudaSuccess;
}

cudaError_t cudaMemset(void* p, int value, size_t bytes) {
  return fill(p, value, bytes, bytes, 1, nullptr);
}
WITH_PTDS(cudaMemset, (void* p, int v, size_t n), (p, v, n))
cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t s) {
  return fill(p, value, bytes, bytes, 1, s);
}
WITH_PTSZ(cudaMemsetAsync, (void* p, int v, size_t n, cudaStream_t s), (p, v, n, s))
cudaError_t cudaMemset2D(void* p, size_t pitch, int value, size_t width, size_t height) {
  return fill(p, value, pitch, width, height, nullptr);
}
WITH_PTDS(cudaMemset2D, (void* p, size_t pitch, int v, size_t w, size_t h), (p, pitch, v, w, h))
cudaError_t cudaMemset2DAsync(void* p, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t s) {
  return fill(p, value, pitch, width, height, s);
}
WITH_PTSZ(cudaMemset2DAsync, (void* p, size_t i, int v, size_t w, size_t h, cudaStream_t s),
          (p, i, v, w, h, s))

cudaError_t cudaMemcpy(void* d, const void* s, size_t n, cudaMemcpyKind kind) {
  return copy(d, s, n, kind);
}
WITH_PTDS(cudaMemcpy, (void* d, const void* s, size_t n, cudaMemcpyKind k), (d, s, n, k))
cudaError_t cudaMemcpyAsync(void* d, const void* s, size_t n, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return copy(d, s, n, kind, stream);
}
WITH_PTSZ(cudaMemcpyAsync, (void* d, const void* s, size_t n, cudaMemcpyKind k, cudaStream_t t),
          (d, s, n, k, t))
cudaError_t cudaMemcpy2D(void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h,
                         cudaMemcpyKind kind) {
  return copy_2d(d, dp, s, sp, w, h, kind);
}
WITH_PTDS(cudaMemcpy2D,
          (void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h, cudaMemcpyKind k),
          (d, dp, s, sp, w, h, k))
cudaError_t cudaMemcpy2DAsync(void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_2d(d, dp, s, sp, w, h, kind, stream);
}
WITH_PTSZ(cudaMemcpy2DAsync,
          (void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h, cudaMemcpyKind k,
           cudaStream_t t),
          (d, dp, s, sp, w, h, k, t))

cudaError_t cudaGetSymbolAddress(void** out, const void* symbol) {
  uint64_t address = 0;
  const cudaError_t error = locate(symbol, 0, 0, &address);
  return *out = reinterpret_cast<void*>(address), error;
}
cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  uint64_t address = 0;
  return ptxbench_backend()->symbol(symbol, &address, bytes) ? cudaSuccess
                                                             : set_last(cudaErrorInvalidSymbol);
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* s, size_t n, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  uint64_t address = 0;
  if (const cudaError_t error = locate(symbol, offset, n, &address)) return error;
  return copy(CopyCall::flat(address, number(s), n, stream), kind);
}
WITH_PTSZ(cudaMemcpyToSymbolAsync,
          (const void* y, const void* s, size_t n, size_t o, cudaMemcpyKind k, cudaStream_t t),
          (y, s, n, o, k, t))
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* s, size_t n, size_t offset,
                               cudaMemcpyKind kind) {
  return cudaMemcpyToSymbolAsync(symbol, s, n, offset, kind, nullptr);
}
WITH_PTDS(cudaMemcpyToSymbol, (const void* y, const void* s, size_t n, size_t o, cudaMemcpyKind k),
          (y, s, n, o, k))
cudaError_t cudaMemcpyFromSymbolAsync(void* d, const void* symbol, size_t n, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  uint64_t address = 0;
  if (const cudaError_t error = locate(symbol, offset, n, &address)) return error;
  return copy(CopyCall::flat(number(d), address, n, stream), kind);
}
WITH_PTSZ(cudaMemcpyFromSymbolAsync,
          (void* d, const void* y, size_t n, size_t o, cudaMemcpyKind k, cudaStream_t t),
          (d, y, n, o, k, t))
cudaError_t cudaMemcpyFromSymbol(void* d, const void* symbol, size_t n, size_t offset,
                                 cudaMemcpyKind kind) {
  return cudaMemcpyFromSymbolAsync(d, symbol, n, offset, kind, nullptr);
}
WITH_PTDS(cudaMemcpyFromSymbol, (void* d, const void* y, size_t n, size_t o, cudaMemcpyKind k),
          (d, y, n, o, k))
}  // extern "C"
