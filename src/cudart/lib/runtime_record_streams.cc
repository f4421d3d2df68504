// Runtime, recording: streams, events and pools are handles, nothing ever waits.
#include <cuda_runtime_api.h>

#include <cstdlib>

#include "cudart/lib/backend.h"
#include "cudart/lib/runtime_state.h"

using namespace ptxbench::cudart;

namespace {

cudaError_t make_stream(cudaStream_t* out) {
  if (!out) return set_last(cudaErrorInvalidValue);
  *out = static_cast<cudaStream_t>(const_cast<void*>(ptxbench_backend()->create_stream()));
  return cudaSuccess;
}
cudaError_t make_event(cudaEvent_t* out) {
  return *out = static_cast<cudaEvent_t>(std::calloc(1, 64)), cudaSuccess;
}

cudaError_t allocate(void** out, size_t bytes) {
  if (!out) return set_last(cudaErrorInvalidValue);
  uint64_t address = 0;
  const int status = ptxbench_backend()->allocate(bytes, &address);
  return *out = reinterpret_cast<void*>(address), set_last(status);
}

}  // namespace

// A function and its per-thread-default-stream twin.
#define WITH_PTSZ(name, parameters, arguments) \
  cudaError_t name##_ptsz parameters { return name arguments; }

extern "C" {

cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaDeviceReset() { return cudaSuccess; }
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }

cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t) { return allocate(out, bytes); }
WITH_PTSZ(cudaMallocAsync, (void** out, size_t bytes, cudaStream_t s), (out, bytes, s))
cudaError_t cudaFreeAsync(void* p, cudaStream_t) {
  return set_last(ptxbench_backend()->release(reinterpret_cast<uint64_t>(p)));
}
WITH_PTSZ(cudaFreeAsync, (void* p, cudaStream_t s), (p, s))

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

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* p) {
  *out = {};
  const bool device = ptxbench_backend()->is_device(reinterpret_cast<uint64_t>(p));
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
