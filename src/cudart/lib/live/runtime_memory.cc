// Runtime, live: managed memory, pools, boxes of memory, attributes of pointers.
#include <cuda_runtime_api.h>

#include <cstring>

#include "cudart/lib/live/backend.h"
#include "cudart/lib/runtime_state.h"

using namespace ptxbench::cudart;
using namespace ptxbench::cudart::live;

static uint64_t number(const void* p) { return reinterpret_cast<uint64_t>(p); }

int ptxbench::cudart::live::copy_of(const cudaMemcpy3DParms* p, CopyCall* out) {
  if (!p) return cudaErrorInvalidValue;
  if (p->srcArray || p->dstArray)
    return emulation().unsupported("cudaMemcpy3D with arrays (textures and surfaces)");
  const auto& s = p->srcPtr;
  const auto& d = p->dstPtr;
  const cudaExtent& n = p->extent;
  if (n.width > s.pitch || n.width > d.pitch) return cudaErrorInvalidPitchValue;
  CopyCall c;
  c.width = n.width, c.height = n.height, c.depth = n.depth;
  c.src_pitch = s.pitch, c.src_slice = s.pitch * s.ysize;
  c.dst_pitch = d.pitch, c.dst_slice = d.pitch * d.ysize;
  c.src = number(s.ptr) + p->srcPos.x + p->srcPos.y * s.pitch + p->srcPos.z * c.src_slice;
  c.dst = number(d.ptr) + p->dstPos.x + p->dstPos.y * d.pitch + p->dstPos.z * c.dst_slice;
  *out = c;
  return cudaSuccess;
}

namespace {

// While a stream captures, memory exists at once and the graph gets a node that stands for it.
cudaError_t allocate_async(void** out, size_t bytes, cudaStream_t stream) {
  if (!out) return set_last(cudaErrorInvalidValue);
  Lock lock;
  uint64_t address = 0;
  int status = emulation().allocate(bytes, &address);
  *out = reinterpret_cast<void*>(address);
  if (status == cudaSuccess) status = emulation().submit(stream, MemoryOp{address, bytes, false});
  return set_last(status);
}

cudaError_t release_async(void* p, cudaStream_t stream) {
  Lock lock;
  const Stream* s = emulation().stream(stream);
  if (!s) return set_last(cudaErrorInvalidResourceHandle);
  if (s->capture) return set_last(emulation().submit(stream, MemoryOp{number(p), 0, true}));
  return set_last(emulation().release(number(p)));
}

// A pool has no limits of its own; its attributes tune reuse, which does not happen here.
struct Pool {
  uint64_t threshold = 0;
  int reuse[3] = {1, 1, 1};
};
Pool* default_pool() {
  static Pool* pool = new Pool;
  return pool;
}
cudaMemPool_t handle(Pool* pool) { return reinterpret_cast<cudaMemPool_t>(pool); }

cudaError_t copy_3d(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  CopyCall c;
  if (const int status = copy_of(p, &c)) return set_last(status);
  c.stream = stream;
  return set_last(emulation().copy(c));
}

cudaError_t fill_3d(cudaPitchedPtr p, int value, cudaExtent n, cudaStream_t stream) {
  if (n.width > p.pitch || n.height > p.ysize) return set_last(cudaErrorInvalidValue);
  for (size_t z = 0; z < n.depth; ++z) {
    MemsetCall c;
    c.dst = number(p.ptr) + z * p.pitch * p.ysize;
    c.value = static_cast<uint8_t>(value);
    c.width = n.width, c.height = n.height, c.pitch = p.pitch;
    c.stream = stream;
    if (const int status = emulation().memset(c)) return set_last(status);
  }
  return cudaSuccess;
}

}  // namespace

#define WITH_PTSZ(name, parameters, arguments) \
  cudaError_t name##_ptsz parameters { return name arguments; }
#define WITH_PTDS(name, parameters, arguments) \
  cudaError_t name##_ptds parameters { return name arguments; }

extern "C" {

cudaError_t cudaMallocManaged(void** out, size_t bytes, unsigned) {
  if (!out) return set_last(cudaErrorInvalidValue);
  uint64_t address = 0;
  const int status = emulation().allocate_managed(bytes, &address);
  return *out = reinterpret_cast<void*>(address), set_last(status);
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* out, cudaExtent n) {
  if (!out) return set_last(cudaErrorInvalidValue);
  out->pitch = (n.width + 511) / 512 * 512;
  out->xsize = n.width;
  out->ysize = n.height;
  uint64_t address = 0;
  const int status = emulation().allocate(out->pitch * n.height * n.depth, &address);
  return out->ptr = reinterpret_cast<void*>(address), set_last(status);
}
cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t s) {
  return allocate_async(out, bytes, s);
}
WITH_PTSZ(cudaMallocAsync, (void** out, size_t bytes, cudaStream_t s), (out, bytes, s))
cudaError_t cudaFreeAsync(void* p, cudaStream_t s) { return release_async(p, s); }
WITH_PTSZ(cudaFreeAsync, (void* p, cudaStream_t s), (p, s))
cudaError_t cudaMallocFromPoolAsync(void** out, size_t bytes, cudaMemPool_t, cudaStream_t s) {
  return allocate_async(out, bytes, s);
}
WITH_PTSZ(cudaMallocFromPoolAsync, (void** out, size_t n, cudaMemPool_t p, cudaStream_t s),
          (out, n, p, s))

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* out, int) {
  return *out = handle(default_pool()), cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* out, int device) {
  return cudaDeviceGetDefaultMemPool(out, device);
}
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) { return cudaSuccess; }
cudaError_t cudaMemPoolCreate(cudaMemPool_t* out, const cudaMemPoolProps*) {
  return *out = handle(new Pool), cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  if (pool != handle(default_pool())) delete reinterpret_cast<Pool*>(pool);
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr which, void* value) {
  auto* pool = reinterpret_cast<Pool*>(handle);
  if (!pool || !value) return set_last(cudaErrorInvalidValue);
  if (which == cudaMemPoolAttrReleaseThreshold) std::memcpy(&pool->threshold, value, 8);
  if (which >= cudaMemPoolReuseFollowEventDependencies &&
      which <= cudaMemPoolReuseAllowInternalDependencies)
    std::memcpy(&pool->reuse[which - cudaMemPoolReuseFollowEventDependencies], value, 4);
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr which, void* value) {
  const auto* pool = reinterpret_cast<Pool*>(handle);
  if (!pool || !value) return set_last(cudaErrorInvalidValue);
  if (which >= cudaMemPoolReuseFollowEventDependencies &&
      which <= cudaMemPoolReuseAllowInternalDependencies) {
    std::memcpy(value, &pool->reuse[which - cudaMemPoolReuseFollowEventDependencies], 4);
    return cudaSuccess;
  }
  uint64_t n = emulation().emulated_bytes();
  if (which == cudaMemPoolAttrReleaseThreshold) n = pool->threshold;
  return std::memcpy(value, &n, 8), cudaSuccess;
}

cudaError_t cudaMemset3D(cudaPitchedPtr p, int value, cudaExtent n) {
  return fill_3d(p, value, n, nullptr);
}
WITH_PTDS(cudaMemset3D, (cudaPitchedPtr p, int v, cudaExtent n), (p, v, n))
cudaError_t cudaMemset3DAsync(cudaPitchedPtr p, int value, cudaExtent n, cudaStream_t s) {
  return fill_3d(p, value, n, s);
}
WITH_PTSZ(cudaMemset3DAsync, (cudaPitchedPtr p, int v, cudaExtent n, cudaStream_t s), (p, v, n, s))
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) { return copy_3d(p, nullptr); }
WITH_PTDS(cudaMemcpy3D, (const cudaMemcpy3DParms* p), (p))
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t s) { return copy_3d(p, s); }
WITH_PTSZ(cudaMemcpy3DAsync, (const cudaMemcpy3DParms* p, cudaStream_t s), (p, s))
cudaError_t cudaMemcpyPeerAsync(void* d, int to, const void* s, int from, size_t n,
                                cudaStream_t stream) {
  if (to != 0 || from != 0) return set_last(cudaErrorInvalidDevice);
  return set_last(emulation().copy(CopyCall::flat(number(d), number(s), n, stream)));
}
cudaError_t cudaMemcpyPeer(void* d, int to, const void* s, int from, size_t n) {
  return cudaMemcpyPeerAsync(d, to, s, from, n, nullptr);
}

// Where managed memory lies does not show.
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void* p, size_t, cudaMemLocation, unsigned, cudaStream_t) {
  return emulation().is_device(number(p)) ? cudaSuccess : set_last(cudaErrorInvalidValue);
}
WITH_PTSZ(cudaMemPrefetchAsync,
          (const void* p, size_t n, cudaMemLocation l, unsigned f, cudaStream_t s), (p, n, l, f, s))

cudaError_t cudaHostGetDevicePointer(void** out, void* p, unsigned) {
  if (!out || !emulation().is_device(number(p))) return set_last(cudaErrorInvalidValue);
  return *out = p, cudaSuccess;
}
cudaError_t cudaHostGetFlags(unsigned* flags, void* p) {
  if (!flags || !emulation().is_device(number(p))) return set_last(cudaErrorInvalidValue);
  return *flags = cudaHostAllocMapped, cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* p) {
  if (!out) return set_last(cudaErrorInvalidValue);
  *out = {};
  out->type = static_cast<cudaMemoryType>(emulation().memory_type(number(p)));
  const bool known = out->type != cudaMemoryTypeUnregistered;
  out->device = known ? 0 : -1;
  out->devicePointer = known ? const_cast<void*>(p) : nullptr;
  out->hostPointer = emulation().is_host(number(p)) && known ? const_cast<void*>(p) : nullptr;
  return cudaSuccess;
}

}  // extern "C"
