// Runtime: memory, symbols, streams, events.
#include <cuda_runtime_api.h>

#include <cstdlib>

#include "cudart/lib/backend.h"
#include "cudart/lib/runtime_state.h"

using namespace ptxbench::cudart;

namespace {

uint64_t number(const void* p) { return reinterpret_cast<uint64_t>(p); }

cudaError_t copy(uint64_t dst, uint64_t src, size_t bytes, cudaMemcpyKind kind) {
  Backend* b = ptxbench_backend();
  const bool dst_device = b->is_device(dst), src_device = b->is_device(src);
  const bool fits =
      kind == cudaMemcpyDefault || bytes == 0 ||
      (dst_device == (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) &&
       src_device == (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice));
  if (!fits)
    return set_last(
        b->refuse(kInvalidValue, "cudaMemcpy: the direction does not fit the addresses"));
  return set_last(b->copy(dst, src, bytes));
}

cudaError_t copy_2d(uint64_t dst, size_t dst_pitch, uint64_t src, size_t src_pitch, size_t width,
                    size_t height, cudaMemcpyKind kind) {
  if (width > dst_pitch || width > src_pitch)
    return set_last(
        ptxbench_backend()->refuse(kInvalidValue, "cudaMemcpy2D: width is larger than a pitch"));
  if (width == dst_pitch && width == src_pitch) return copy(dst, src, width * height, kind);
  for (size_t row = 0; row < height; ++row)
    if (const cudaError_t error = copy(dst + row * dst_pitch, src + row * src_pitch, width, kind))
      return error;
  return cudaSuccess;
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
cudaError_t make_stream(cudaStream_t* out) {
  if (!out) return set_last(cudaErrorInvalidValue);
  *out = static_cast<cudaStream_t>(const_cast<void*>(ptxbench_backend()->create_stream()));
  return cudaSuccess;
}
cudaError_t make_event(cudaEvent_t* out) {
  return *out = static_cast<cudaEvent_t>(std::calloc(1, 64)), cudaSuccess;
}

}  // namespace

// A function and its per-thread-default-stream twin.
#define WITH_PTSZ(name, parameters, arguments) \
  cudaError_t name##_ptsz parameters { return name arguments; }

extern "C" {

cudaError_t cudaMalloc(void** out, size_t bytes) { return allocate(out, bytes); }
cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t) { return allocate(out, bytes); }
WITH_PTSZ(cudaMallocAsync, (void** out, size_t bytes, cudaStream_t s), (out, bytes, s))
cudaError_t cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return allocate(out, *pitch * height);
}
cudaError_t cudaFree(void* p) { return set_last(ptxbench_backend()->release(number(p))); }
cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return cudaFree(p); }
WITH_PTSZ(cudaFreeAsync, (void* p, cudaStream_t s), (p, s))
cudaError_t cudaMallocHost(void** out, size_t bytes) { return allocate_host(out, bytes); }
cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned) { return allocate_host(out, bytes); }
cudaError_t cudaFreeHost(void* p) { return std::free(p), cudaSuccess; }
cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }

// Memory pools: one, without limits; its attributes tune reuse, which does not happen here.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* out, int) {
  return *out = reinterpret_cast<cudaMemPool_t>(ptxbench_backend()), cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* out, int device) {
  return cudaDeviceGetDefaultMemPool(out, device);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
cudaError_t cudaMallocFromPoolAsync(void** out, size_t bytes, cudaMemPool_t, cudaStream_t) {
  return allocate(out, bytes);
}
WITH_PTSZ(cudaMallocFromPoolAsync, (void** out, size_t n, cudaMemPool_t p, cudaStream_t s),
          (out, n, p, s))

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  *total = ptxbench_backend()->profile().memory_bytes;
  return *free_bytes = *total - ptxbench_backend()->allocated_bytes(), cudaSuccess;
}

cudaError_t cudaMemset(void* p, int value, size_t bytes) {
  return set_last(ptxbench_backend()->memset(number(p), static_cast<uint8_t>(value), 1, bytes));
}
WITH_PTSZ(cudaMemset, (void* p, int v, size_t n), (p, v, n))
cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t) {
  return cudaMemset(p, value, bytes);
}
WITH_PTSZ(cudaMemsetAsync, (void* p, int v, size_t n, cudaStream_t s), (p, v, n, s))
cudaError_t cudaMemset2D(void* p, size_t pitch, int value, size_t width, size_t height) {
  if (width > pitch) return set_last(cudaErrorInvalidValue);
  for (size_t row = 0; row < height; ++row)
    if (const cudaError_t error = cudaMemset(static_cast<char*>(p) + row * pitch, value, width))
      return error;
  return cudaSuccess;
}
cudaError_t cudaMemset2DAsync(void* p, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t) {
  return cudaMemset2D(p, pitch, value, width, height);
}

cudaError_t cudaMemcpy(void* d, const void* s, size_t n, cudaMemcpyKind kind) {
  return copy(number(d), number(s), n, kind);
}
WITH_PTSZ(cudaMemcpy, (void* d, const void* s, size_t n, cudaMemcpyKind k), (d, s, n, k))
cudaError_t cudaMemcpyAsync(void* d, const void* s, size_t n, cudaMemcpyKind kind, cudaStream_t) {
  return copy(number(d), number(s), n, kind);
}
WITH_PTSZ(cudaMemcpyAsync, (void* d, const void* s, size_t n, cudaMemcpyKind k, cudaStream_t t),
          (d, s, n, k, t))
cudaError_t cudaMemcpy2D(void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h,
                         cudaMemcpyKind kind) {
  return copy_2d(number(d), dp, number(s), sp, w, h, kind);
}
cudaError_t cudaMemcpy2DAsync(void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h,
                              cudaMemcpyKind kind, cudaStream_t) {
  return copy_2d(number(d), dp, number(s), sp, w, h, kind);
}

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
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* s, size_t n, size_t offset,
                               cudaMemcpyKind kind) {
  uint64_t address = 0;
  if (const cudaError_t error = locate(symbol, offset, n, &address)) return error;
  return copy(address, number(s), n, kind);
}
WITH_PTSZ(cudaMemcpyToSymbol, (const void* y, const void* s, size_t n, size_t o, cudaMemcpyKind k),
          (y, s, n, o, k))
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* s, size_t n, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpyToSymbol(symbol, s, n, offset, kind);
}
WITH_PTSZ(cudaMemcpyToSymbolAsync,
          (const void* y, const void* s, size_t n, size_t o, cudaMemcpyKind k, cudaStream_t t),
          (y, s, n, o, k, t))
cudaError_t cudaMemcpyFromSymbol(void* d, const void* symbol, size_t n, size_t offset,
                                 cudaMemcpyKind kind) {
  uint64_t address = 0;
  if (const cudaError_t error = locate(symbol, offset, n, &address)) return error;
  return copy(number(d), address, n, kind);
}
cudaError_t cudaMemcpyFromSymbolAsync(void* d, const void* symbol, size_t n, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpyFromSymbol(d, symbol, n, offset, kind);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* p) {
  *out = {};
  const bool device = ptxbench_backend()->is_device(number(p));
  out->type = device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  out->device = device ? 0 : -1;
  out->devicePointer = device ? const_cast<void*>(p) : nullptr;
  out->hostPointer = nullptr;
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* out) { return make_stream(out); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) { return make_stream(out); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned, int) {
  return make_stream(out);
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
WITH_PTSZ(cudaStreamSynchronize, (cudaStream_t s), (s))
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned* flags) { return *flags = 0, cudaSuccess; }
cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) {
  return *priority = 0, cudaSuccess;
}
cudaError_t cudaStreamGetDevice(cudaStream_t, int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* out) { return make_event(out); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) { return make_event(out); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
WITH_PTSZ(cudaEventRecord, (cudaEvent_t e, cudaStream_t s), (e, s))
cudaError_t cudaEventRecordWithFlags(cudaEvent_t, cudaStream_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
// Nothing runs while recording, so nothing takes time: every measurement is the same.
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  return *ms = 0.001f, cudaSuccess;
}

}  // extern "C"
