// Driver API, live: streams, events, memory in stream order. The driver's handles are the
// runtime's.
#include <cuda.h>

#include "cudart/lib/driver_errors.h"
#include "cudart/lib/live/backend.h"

using namespace ptxbench::cudart;
using namespace ptxbench::cudart::live;

namespace {

CUresult make_stream(CUstream* out, unsigned flags, int priority) {
  if (!out || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  Lock lock;
  *out = reinterpret_cast<CUstream>(const_cast<void*>(emulation().create_stream()));
  Stream* s = emulation().stream(*out);
  s->flags = flags;
  s->priority = priority;
  return driver_result(emulation().status());
}

}  // namespace

extern "C" {

CUresult cuCtxSynchronize() { return driver_result(emulation().synchronize()); }

CUresult cuStreamCreate(CUstream* out, unsigned flags) { return make_stream(out, flags, 0); }
CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  return make_stream(out, flags, priority);
}
CUresult cuStreamDestroy_v2(CUstream s) { return driver_result(emulation().destroy_stream(s)); }
CUresult cuStreamSynchronize(CUstream s) {
  return driver_result(emulation().synchronize_stream(s));
}
CUresult cuStreamQuery(CUstream s) { return cuStreamSynchronize(s); }
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned) {
  Lock lock;
  return driver_result(emulation().wait_event(s, emulation().event(e)));
}
CUresult cuStreamGetCtx(CUstream, CUcontext* out) { return cuCtxGetCurrent(out); }
CUresult cuStreamGetFlags(CUstream handle, unsigned* flags) {
  Lock lock;
  const Stream* s = emulation().stream(handle);
  return s ? (*flags = s->flags, CUDA_SUCCESS) : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  Lock lock;
  const Stream* s = emulation().stream(handle);
  return s ? (*priority = s->priority, CUDA_SUCCESS) : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuLaunchHostFunc(CUstream s, CUhostFn function, void* data) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  return driver_result(emulation().submit(s, HostOp{function, data}));
}
CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
  return driver_result(emulation().begin_capture(s, mode, nullptr, {}));
}
CUresult cuStreamEndCapture(CUstream s, CUgraph* out) {
  Graph* graph = nullptr;
  const int status = emulation().end_capture(s, &graph);
  return *out = reinterpret_cast<CUgraph>(graph), driver_result(status);
}
CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  Lock lock;
  const Stream* s = emulation().stream(handle);
  if (!s) return CUDA_ERROR_INVALID_HANDLE;
  *status = !s->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
            : s->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                  : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* out, unsigned flags) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUevent>(emulation().create_event(flags));
  return driver_result(emulation().status());
}
CUresult cuEventDestroy_v2(CUevent e) { return driver_result(emulation().destroy_event(e)); }
CUresult cuEventRecord(CUevent e, CUstream s) {
  Lock lock;
  return driver_result(emulation().record_event(emulation().event(e), s));
}
CUresult cuEventRecordWithFlags(CUevent e, CUstream s, unsigned) { return cuEventRecord(e, s); }
CUresult cuEventSynchronize(CUevent e) {
  Lock lock;
  return emulation().event(e) ? driver_result(emulation().status()) : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuEventQuery(CUevent e) { return cuEventSynchronize(e); }
// Time of the host's clock; see cudaEventElapsedTime.
CUresult cuEventElapsedTime_v2(float* ms, CUevent start, CUevent end) {
  Lock lock;
  const Event *a = emulation().event(start), *b = emulation().event(end);
  if (!ms) return CUDA_ERROR_INVALID_VALUE;
  if (!a || !b || !a->recorded || !b->recorded) return CUDA_ERROR_INVALID_HANDLE;
  *ms = std::chrono::duration<float, std::milli>(b->at - a->at).count();
  return driver_result(emulation().status());
}

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream s) {
  Lock lock;
  uint64_t address = 0;
  int status = emulation().allocate(bytes, &address);
  if (!status) status = emulation().submit(s, MemoryOp{address, bytes, false});
  return *out = address, driver_result(status);
}
CUresult cuMemFreeAsync(CUdeviceptr p, CUstream handle) {
  Lock lock;
  const Stream* s = emulation().stream(handle);
  if (!s) return CUDA_ERROR_INVALID_HANDLE;
  return driver_result(s->capture ? emulation().submit(handle, MemoryOp{p, 0, true})
                                  : emulation().release(p));
}
CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned) {
  uint64_t address = 0;
  const int status = emulation().allocate_managed(bytes, &address);
  return *out = address, driver_result(status);
}
CUresult cuMemHostRegister_v2(void* p, size_t bytes, unsigned) {
  return driver_result(emulation().register_host(p, bytes));
}
CUresult cuMemHostUnregister(void* p) { return driver_result(emulation().unregister_host(p)); }
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* p, unsigned) {
  *out = reinterpret_cast<CUdeviceptr>(p);
  return emulation().is_device(*out) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"
