// Runtime: launches and function attributes.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "cudart/lib/backend.h"
#include "cudart/lib/launch_attributes.h"
#include "cudart/lib/occupancy.h"
#include "cudart/lib/runtime_state.h"

using namespace ptxbench::cudart;

static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));

namespace {

LaunchCall shape(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                 cudaStream_t stream) {
  LaunchCall call;
  call.kernel = ptxbench_backend()->kernel(function);
  const uint32_t g[3] = {grid.x, grid.y, grid.z}, b[3] = {block.x, block.y, block.z};
  std::copy(g, g + 3, call.grid);
  std::copy(b, b + 3, call.block);
  call.dynamic_shared = shared;
  call.arguments = arguments;
  call.stream = stream;
  return call;
}

cudaError_t launch(const LaunchCall& call) { return set_last(ptxbench_backend()->launch(call)); }

// Threads, shared memory and cluster of a launch configuration; the kernel from a host function or
// handle.
cudaError_t read_config(const cudaLaunchConfig_t* c, const void* function, LaunchCall* call) {
  if (!c) return set_last(cudaErrorInvalidValue);
  *call = shape(function, c->gridDim, c->blockDim, nullptr, c->dynamicSmemBytes, c->stream);
  return set_last(
      apply_attributes(reinterpret_cast<const CUlaunchAttribute*>(c->attrs), c->numAttrs, call));
}

}  // namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void* f, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t s) {
  return launch(shape(f, grid, block, arguments, shared, s));
}
cudaError_t cudaLaunchKernel_ptsz(const void* f, dim3 g, dim3 b, void** arguments, size_t shared,
                                  cudaStream_t s) {
  return launch(shape(f, g, b, arguments, shared, s));
}
cudaError_t __cudaLaunchKernel(cudaKernel_t k, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t s) {
  return launch(shape(k, grid, block, arguments, shared, s));
}
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t k, dim3 g, dim3 b, void** arguments, size_t shared,
                                    cudaStream_t s) {
  return launch(shape(k, g, b, arguments, shared, s));
}
cudaError_t cudaLaunchCooperativeKernel(const void* f, dim3 grid, dim3 block, void** arguments,
                                        size_t shared, cudaStream_t s) {
  LaunchCall call = shape(f, grid, block, arguments, shared, s);
  call.cooperative = true;
  return launch(call);
}
cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* f, dim3 g, dim3 b, void** a, size_t n,
                                             cudaStream_t s) {
  return cudaLaunchCooperativeKernel(f, g, b, a, n, s);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* f, void** arguments) {
  LaunchCall call;
  if (const cudaError_t error = read_config(config, f, &call)) return error;
  call.arguments = arguments;
  return launch(call);
}
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* f,
                                     void** arguments) {
  return cudaLaunchKernelExC(config, f, arguments);
}

cudaError_t cudaFuncSetAttribute(const void* f, cudaFuncAttribute attribute, int value) {
  return set_last(set_function_attribute(ptxbench_backend()->kernel(f), attribute, value));
}
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaFuncGetName(const char** name, const void* f) {
  const Kernel* kernel = ptxbench_backend()->kernel(f);
  if (!kernel || !name) return set_last(cudaErrorInvalidDeviceFunction);
  return *name = kernel->name, cudaSuccess;
}
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* out, const void* f) {
  *out = reinterpret_cast<cudaFunction_t>(ptxbench_backend()->kernel(f));
  return *out ? cudaSuccess : set_last(cudaErrorInvalidDeviceFunction);
}
cudaError_t cudaGetKernel(cudaKernel_t* out, const void* f) {
  *out = reinterpret_cast<cudaKernel_t>(ptxbench_backend()->kernel(f));
  return *out ? cudaSuccess : set_last(cudaErrorInvalidDeviceFunction);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void* f) {
  const Kernel* kernel = ptxbench_backend()->kernel(f);
  if (!out || !kernel || !kernel->info) return set_last(cudaErrorInvalidDeviceFunction);
  const DeviceProfile& p = ptxbench_backend()->profile();
  std::memset(out, 0, sizeof *out);
  out->sharedSizeBytes = kernel->static_shared();
  out->localSizeBytes = kernel->info->local_bytes;
  out->maxThreadsPerBlock = static_cast<int>(kernel->info->max_threads);
  out->numRegs = static_cast<int>(kernel->info->registers);
  out->ptxVersion = out->binaryVersion = p.major * 10 + p.minor;
  out->maxDynamicSharedSizeBytes = static_cast<int>(kernel->dynamic_limit());
  out->preferredShmemCarveout = kernel->carveout;
  out->clusterDimMustBeSet = kernel->info->required_cluster[0] != 0;
  out->requiredClusterWidth = static_cast<int>(kernel->info->required_cluster[0]);
  out->requiredClusterHeight = static_cast<int>(kernel->info->required_cluster[1]);
  out->requiredClusterDepth = static_cast<int>(kernel->info->required_cluster[2]);
  out->nonPortableClusterSizeAllowed = kernel->non_portable_cluster;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* f, int threads,
                                                          size_t shared) {
  const Kernel* kernel = ptxbench_backend()->kernel(f);
  if (!kernel) return set_last(cudaErrorInvalidDeviceFunction);
  if (!blocks || threads <= 0) return set_last(cudaErrorInvalidValue);
  return *blocks = blocks_per_sm(*kernel, static_cast<uint64_t>(threads), shared), cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* f,
                                                                   int threads, size_t shared,
                                                                   unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared);
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* f, int blocks,
                                                      int threads) {
  const Kernel* kernel = ptxbench_backend()->kernel(f);
  if (!kernel) return set_last(cudaErrorInvalidDeviceFunction);
  if (!bytes || blocks <= 0 || threads <= 0) return set_last(cudaErrorInvalidValue);
  const size_t share = DeviceProfile::kSharedPerSm / static_cast<size_t>(blocks) / 128 * 128;
  const size_t fixed = kernel->static_shared() + DeviceProfile::kReservedShared;
  *bytes = std::min<size_t>(share > fixed ? share - fixed : 0,
                            DeviceProfile::kSharedPerBlockOptin - kernel->static_shared());
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* f,
                                           const cudaLaunchConfig_t* config) {
  LaunchCall call;
  if (const cudaError_t error = read_config(config, f, &call)) return error;
  if (!call.kernel) return set_last(cudaErrorInvalidDeviceFunction);
  const uint64_t size =
      call.cluster[0] ? uint64_t{call.cluster[0]} * call.cluster[1] * call.cluster[2] : 1;
  const uint64_t threads = uint64_t{call.block[0]} * call.block[1] * call.block[2];
  *clusters = clusters_on_device(ptxbench_backend()->profile(), *call.kernel, threads,
                                 call.dynamic_shared, size);
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* f,
                                                 const cudaLaunchConfig_t* config) {
  LaunchCall call;
  if (const cudaError_t error = read_config(config, f, &call)) return error;
  if (!call.kernel) return set_last(cudaErrorInvalidDeviceFunction);
  return *size = call.kernel->non_portable_cluster ? 16 : 8, cudaSuccess;
}

}  // extern "C"
