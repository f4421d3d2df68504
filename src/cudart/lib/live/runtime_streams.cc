// Runtime, live: streams, events, host functions, capture.
#include <cuda_runtime_api.h>

#include "cudart/lib/live/backend.h"
#include "cudart/lib/runtime_state.h"

using namespace ptxbench::cudart;
using namespace ptxbench::cudart::live;

namespace {

constexpr unsigned kStreamFlags = cudaStreamNonBlocking;
constexpr unsigned kEventFlags =
    cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;

cudaError_t make_stream(cudaStream_t* out, unsigned flags, int priority) {
  if (!out || (flags & ~kStreamFlags)) return set_last(cudaErrorInvalidValue);
  Lock lock;
  *out = static_cast<cudaStream_t>(const_cast<void*>(emulation().create_stream()));
  Stream* s = emulation().stream(*out);
  s->flags = flags;
  s->priority = std::clamp(priority, -5, 0);
  return set_last(emulation().status());
}

cudaError_t make_event(cudaEvent_t* out, unsigned flags) {
  if (!out || (flags & ~kEventFlags)) return set_last(cudaErrorInvalidValue);
  *out = reinterpret_cast<cudaEvent_t>(emulation().create_event(flags));
  return set_last(emulation().status());
}

// With the stream, or the error that it is none.
template <class F>
cudaError_t with_stream(cudaStream_t handle, F&& f) {
  Lock lock;
  Stream* s = emulation().stream(handle);
  return s ? set_last(f(*s)) : set_last(cudaErrorInvalidResourceHandle);
}

struct Callback {
  cudaStreamCallback_t function;
  cudaStream_t stream;
  void* data;
};
void run_callback(void* p) {
  const auto* c = static_cast<Callback*>(p);
  c->function(c->stream, static_cast<cudaError_t>(emulation().status()), c->data);
  delete c;
}

cudaStreamCaptureStatus capture_status(const Stream& s) {
  if (!s.capture) return cudaStreamCaptureStatusNone;
  return s.capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status,
                         unsigned long long* id, cudaGraph_t* graph,
                         const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                         size_t* count) {
  if (!status) return set_last(cudaErrorInvalidValue);
  return with_stream(stream, [&](Stream& s) {
    *status = capture_status(s);
    if (edges) *edges = nullptr;
    if (count) *count = 0;
    if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
    if (id) *id = s.capture->id;
    if (graph) *graph = reinterpret_cast<cudaGraph_t>(s.capture->graph);
    if (dependencies) *dependencies = reinterpret_cast<cudaGraphNode_t*>(s.frontier.data());
    if (count) *count = s.frontier.size();
    return cudaSuccess;
  });
}

}  // namespace

// A function and its per-thread-default-stream twin.
#define WITH_PTSZ(name, parameters, arguments) \
  cudaError_t name##_ptsz parameters { return name arguments; }

extern "C" {

cudaError_t cudaDeviceSynchronize() { return set_last(emulation().synchronize()); }
cudaError_t cudaDeviceReset() { return set_last(emulation().status()); }

cudaError_t cudaStreamCreate(cudaStream_t* out) { return make_stream(out, 0, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return make_stream(out, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority) {
  return make_stream(out, flags, priority);
}
cudaError_t cudaStreamDestroy(cudaStream_t s) { return set_last(emulation().destroy_stream(s)); }
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  return set_last(emulation().synchronize_stream(s));
}
WITH_PTSZ(cudaStreamSynchronize, (cudaStream_t s), (s))
cudaError_t cudaStreamQuery(cudaStream_t s) { return cudaStreamSynchronize(s); }
WITH_PTSZ(cudaStreamQuery, (cudaStream_t s), (s))
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  Lock lock;
  return set_last(emulation().wait_event(s, emulation().event(e)));
}
WITH_PTSZ(cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t e, unsigned f), (s, e, f))
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return with_stream(stream, [&](Stream& s) { return *flags = s.flags, cudaSuccess; });
}
WITH_PTSZ(cudaStreamGetFlags, (cudaStream_t s, unsigned* f), (s, f))
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return with_stream(stream, [&](Stream& s) { return *priority = s.priority, cudaSuccess; });
}
WITH_PTSZ(cudaStreamGetPriority, (cudaStream_t s, int* p), (s, p))
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return with_stream(stream, [&](Stream&) { return *device = 0, cudaSuccess; });
}
WITH_PTSZ(cudaStreamGetDevice, (cudaStream_t s, int* d), (s, d))
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return with_stream(stream, [&](Stream& s) { return *id = s.id, cudaSuccess; });
}
WITH_PTSZ(cudaStreamGetId, (cudaStream_t s, unsigned long long* i), (s, i))
// Hints about caches and priorities: nothing to keep.
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID,
                                   const cudaLaunchAttributeValue*) {
  return with_stream(stream, [](Stream&) { return cudaSuccess; });
}
WITH_PTSZ(cudaStreamSetAttribute,
          (cudaStream_t s, cudaLaunchAttributeID i, const cudaLaunchAttributeValue* v), (s, i, v))
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t) {
  return cudaStreamSetAttribute(to, cudaLaunchAttributeIgnore, nullptr);
}
WITH_PTSZ(cudaStreamCopyAttributes, (cudaStream_t a, cudaStream_t b), (a, b))
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void*, size_t, unsigned) {
  return cudaStreamSetAttribute(stream, cudaLaunchAttributeIgnore, nullptr);
}
WITH_PTSZ(cudaStreamAttachMemAsync, (cudaStream_t s, void* p, size_t n, unsigned f), (s, p, n, f))

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (!function) return set_last(cudaErrorInvalidValue);
  return set_last(emulation().submit(stream, HostOp{function, data}));
}
WITH_PTSZ(cudaLaunchHostFunc, (cudaStream_t s, cudaHostFn_t f, void* d), (s, f, d))
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data,
                                  unsigned flags) {
  if (!function || flags) return set_last(cudaErrorInvalidValue);
  Lock lock;
  const Stream* s = emulation().stream(stream);
  if (s && s->capture) return set_last(cudaErrorStreamCaptureUnsupported);
  return set_last(
      emulation().submit(stream, HostOp{run_callback, new Callback{function, stream, data}}));
}
WITH_PTSZ(cudaStreamAddCallback, (cudaStream_t s, cudaStreamCallback_t f, void* d, unsigned g),
          (s, f, d, g))

cudaError_t cudaEventCreate(cudaEvent_t* out) { return make_event(out, 0); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  return make_event(out, flags);
}
cudaError_t cudaEventDestroy(cudaEvent_t e) { return set_last(emulation().destroy_event(e)); }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  Lock lock;
  return set_last(emulation().record_event(emulation().event(e), s));
}
WITH_PTSZ(cudaEventRecord, (cudaEvent_t e, cudaStream_t s), (e, s))
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned) {
  return cudaEventRecord(e, s);
}
WITH_PTSZ(cudaEventRecordWithFlags, (cudaEvent_t e, cudaStream_t s, unsigned f), (e, s, f))
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  Lock lock;
  const Event* event = emulation().event(e);
  if (!event) return set_last(cudaErrorInvalidResourceHandle);
  if (event->capture && event->capture->origin) return set_last(cudaErrorCapturedEvent);
  return set_last(emulation().status());
}
cudaError_t cudaEventQuery(cudaEvent_t e) { return cudaEventSynchronize(e); }
// Time of the host's clock between two events: what the emulation took, no estimate of a GPU's
// time.
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  Lock lock;
  const Event *a = emulation().event(start), *b = emulation().event(end);
  if (!ms) return set_last(cudaErrorInvalidValue);
  if (!a || !b || !a->recorded || !b->recorded || (a->flags & cudaEventDisableTiming) ||
      (b->flags & cudaEventDisableTiming))
    return set_last(cudaErrorInvalidResourceHandle);
  *ms = std::chrono::duration<float, std::milli>(b->at - a->at).count();
  return set_last(emulation().status());
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return set_last(emulation().begin_capture(stream, mode, nullptr, {}));
}
WITH_PTSZ(cudaStreamBeginCapture, (cudaStream_t s, cudaStreamCaptureMode m), (s, m))
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* needs, const cudaGraphEdgeData*,
                                          size_t count, cudaStreamCaptureMode mode) {
  Lock lock;
  Graph* into = emulation().graph(graph);
  if (!into || (count && !needs)) return set_last(cudaErrorInvalidValue);
  std::vector<Node*> nodes;
  for (size_t i = 0; i < count; ++i) nodes.push_back(emulation().node(needs[i]));
  for (const Node* n : nodes)
    if (!n || n->graph != into) return set_last(cudaErrorInvalidValue);
  return set_last(emulation().begin_capture(stream, mode, into, std::move(nodes)));
}
WITH_PTSZ(cudaStreamBeginCaptureToGraph,
          (cudaStream_t s, cudaGraph_t g, const cudaGraphNode_t* n, const cudaGraphEdgeData* e,
           size_t c, cudaStreamCaptureMode m),
          (s, g, n, e, c, m))
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* out) {
  if (!out) return set_last(cudaErrorInvalidValue);
  Graph* graph = nullptr;
  const int status = emulation().end_capture(stream, &graph);
  return *out = reinterpret_cast<cudaGraph_t>(graph), set_last(status);
}
WITH_PTSZ(cudaStreamEndCapture, (cudaStream_t s, cudaGraph_t* g), (s, g))
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (!status) return set_last(cudaErrorInvalidValue);
  return with_stream(stream, [&](Stream& s) { return *status = capture_status(s), cudaSuccess; });
}
WITH_PTSZ(cudaStreamIsCapturing, (cudaStream_t s, cudaStreamCaptureStatus* t), (s, t))
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  return capture_info(stream, status, id, graph, dependencies, edges, count);
}
WITH_PTSZ(cudaStreamGetCaptureInfo,
          (cudaStream_t s, cudaStreamCaptureStatus* t, unsigned long long* i, cudaGraph_t* g,
           const cudaGraphNode_t** d, const cudaGraphEdgeData** e, size_t* c),
          (s, t, i, g, d, e, c))
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* needs,
                                                const cudaGraphEdgeData*, size_t count,
                                                unsigned flags) {
  return with_stream(stream, [&](Stream& s) {
    if (!s.capture) return cudaErrorIllegalState;
    std::vector<Node*> nodes;
    if (flags == cudaStreamAddCaptureDependencies) nodes = s.frontier;
    for (size_t i = 0; i < count; ++i) {
      Node* n = emulation().node(needs[i]);
      if (!n || n->graph != s.capture->graph) return cudaErrorInvalidValue;
      nodes.push_back(n);
    }
    return s.frontier = std::move(nodes), cudaSuccess;
  });
}
WITH_PTSZ(cudaStreamUpdateCaptureDependencies,
          (cudaStream_t s, cudaGraphNode_t* n, const cudaGraphEdgeData* e, size_t c, unsigned f),
          (s, n, e, c, f))
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  static thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  if (!mode) return set_last(cudaErrorInvalidValue);
  return std::swap(*mode, current), cudaSuccess;
}

}  // extern "C"
