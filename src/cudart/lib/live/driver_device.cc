// Driver API, live: contexts, attributes of pointers, graphs of captured work.
#include <cuda.h>

#include <cstring>

#include "cudart/lib/driver_errors.h"
#include "cudart/lib/live/backend.h"

using namespace ptxbench::cudart;
using namespace ptxbench::cudart::live;

extern "C" {

// One context, current in every thread.
CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams*, unsigned, CUdevice) {
  return cuCtxGetCurrent(out);
}
CUresult cuCtxDestroy_v2(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxGetFlags(unsigned* flags) { return *flags = 0, CUDA_SUCCESS; }
CUresult cuCtxGetApiVersion(CUcontext, unsigned* version) {
  return *version = CUDA_VERSION, CUDA_SUCCESS;
}
CUresult cuCtxSetCacheConfig(CUfunc_cache) { return CUDA_SUCCESS; }
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return limit == CU_LIMIT_MALLOC_HEAP_SIZE ? driver_result(emulation().set_heap_size(value))
                                            : CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  return *flags = 0, *active = 1, CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned) { return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxReset_v2(CUdevice) { return CUDA_SUCCESS; }
CUresult cuDeviceGetUuid_v2(CUuuid* out, CUdevice) {
  std::memcpy(out->bytes, "ptxbench-emu-gpu", 16);
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr p) {
  Lock lock;
  const int type = emulation().memory_type(p);
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (type == 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t base = 0, bytes = 0;
  emulation().find(p, &base, &bytes);
  const auto put = [&](auto value) { return std::memcpy(out, &value, sizeof value), CUDA_SUCCESS; };
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(type == 1 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put(static_cast<unsigned>(type == 3));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return put(p);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(static_cast<size_t>(bytes));
    default:
      return driver_result(emulation().unsupported("cuPointerGetAttribute of this attribute"));
  }
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long) {
  Lock lock;
  Graph* g = emulation().graph(graph);
  if (!g) return CUDA_ERROR_INVALID_VALUE;
  GraphExec* made = nullptr;
  const int status = emulation().instantiate(g, &made);
  return *out = reinterpret_cast<CUgraphExec>(made), driver_result(status);
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  Lock lock;
  GraphExec* e = emulation().exec(exec);
  return e ? driver_result(emulation().launch_graph(e, stream)) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGraphDestroy(CUgraph g) { return driver_result(emulation().destroy_graph(g)); }
CUresult cuGraphExecDestroy(CUgraphExec e) { return driver_result(emulation().destroy_exec(e)); }
CUresult cuGraphCreate(CUgraph* out, unsigned) {
  return *out = reinterpret_cast<CUgraph>(emulation().create_graph()), CUDA_SUCCESS;
}

}  // extern "C"
