// Driver API, recording: streams and events are handles, nothing ever waits.
#include <cuda.h>

#include <cstdlib>

#include "cudart/lib/backend.h"
#include "cudart/lib/driver_errors.h"

using namespace ptxbench::cudart;

namespace {
CUresult make_event(CUevent* event) {
  return *event = static_cast<CUevent>(std::calloc(1, 64)), CUDA_SUCCESS;
}
CUresult make_stream(CUstream* stream) {
  *stream = reinterpret_cast<CUstream>(const_cast<void*>(ptxbench_backend()->create_stream()));
  return CUDA_SUCCESS;
}
}  // namespace

extern "C" {

CUresult cuCtxSynchronize() { return CUDA_SUCCESS; }
CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream) {
  return cuMemAlloc_v2(out, bytes);
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) { return cuMemFree_v2(address); }

CUresult cuStreamCreate(CUstream* stream, unsigned) { return make_stream(stream); }
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned, int) { return make_stream(stream); }
CUresult cuStreamDestroy_v2(CUstream) { return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream) { return CUDA_SUCCESS; }
CUresult cuStreamQuery(CUstream) { return CUDA_SUCCESS; }
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
  return *status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) { return make_event(event); }
CUresult cuEventDestroy_v2(CUevent) { return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent, CUstream) { return CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent) { return CUDA_SUCCESS; }
CUresult cuEventQuery(CUevent) { return CUDA_SUCCESS; }

}  // extern "C"
