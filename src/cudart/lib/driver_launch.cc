// Driver API: functions and launches. CUfunction and CUkernel are both our Kernel.
#include <cuda.h>

#include <algorithm>
#include <string>

#include "cudart/lib/backend.h"
#include "cudart/lib/driver_errors.h"
#include "cudart/lib/launch_attributes.h"
#include "cudart/lib/occupancy.h"

using namespace ptxbench::cudart;

namespace {

CUresult launch(LaunchCall& call, void** arguments, void** extra) {
  call.arguments = arguments;
  if (!arguments) read_packed(extra, &call);
  return driver_result(ptxbench_backend()->launch(call));
}

LaunchCall shape(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                 unsigned bz, unsigned shared, CUstream stream) {
  LaunchCall call;
  call.kernel = ptxbench_backend()->kernel(f);
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  std::copy(grid, grid + 3, call.grid);
  std::copy(block, block + 3, call.block);
  call.dynamic_shared = shared;
  call.stream = stream;
  return call;
}

}  // namespace

extern "C" {

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream,
                        void** arguments, void** extra) {
  LaunchCall call = shape(f, gx, gy, gz, bx, by, bz, shared, stream);
  return launch(call, arguments, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                   void** arguments) {
  LaunchCall call = shape(f, gx, gy, gz, bx, by, bz, shared, stream);
  call.cooperative = true;
  return launch(call, arguments, nullptr);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** arguments, void** extra) {
  if (!c) return CUDA_ERROR_INVALID_VALUE;
  LaunchCall call = shape(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
                          c->blockDimZ, c->sharedMemBytes, c->hStream);
  // The runtime's cudaLaunchAttribute is the driver's structure under another name.
  if (const int status = apply_attributes(c->attrs, c->numAttrs, &call))
    return driver_result(status);
  return launch(call, arguments, extra);
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value) {
  return driver_result(set_function_attribute(ptxbench_backend()->kernel(f), attribute, value));
}
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel f, CUdevice) {
  return driver_result(set_function_attribute(ptxbench_backend()->kernel(f), attribute, value));
}
CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction f) {
  const Kernel* kernel = ptxbench_backend()->kernel(f);
  if (!value || !kernel || !kernel->info) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return *value = int(kernel->info->max_threads), CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return *value = int(kernel->static_shared()), CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return *value = int(kernel->info->registers), CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return *value = int(kernel->info->local_bytes), CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return *value = int(kernel->dynamic_limit()), CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return *value = kernel->non_portable_cluster, CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return *value = kernel->carveout, CUDA_SUCCESS;
    default: {
      const std::string what = "cuFuncGetAttribute(" + std::to_string(attribute) + ")";
      return driver_result(ptxbench_backend()->unsupported(what.c_str()));
    }
  }
}
CUresult cuKernelGetFunction(CUfunction* out, CUkernel kernel) {
  return *out = reinterpret_cast<CUfunction>(kernel), CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction f, int threads,
                                                     size_t shared) {
  const Kernel* kernel = ptxbench_backend()->kernel(f);
  if (!kernel || !blocks || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  return *blocks = blocks_per_sm(*kernel, static_cast<uint64_t>(threads), shared), CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction f,
                                                              int threads, size_t shared,
                                                              unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared);
}

}  // extern "C"
