#include "cudart/lib/launch_checks.h"

#include <cstring>

#include "cudart/lib/occupancy.h"
#include "cudart/lib/text.h"

namespace ptxbench::cudart {
namespace {

uint64_t product(const uint32_t* v) { return uint64_t{v[0]} * v[1] * v[2]; }

int check_cluster(Backend& backend, const LaunchCall& call, const uint32_t* cluster) {
  const char* name = call.kernel->name;
  const uint64_t size = product(cluster);
  for (int i = 0; i < 3; ++i) {
    const uint32_t required = call.kernel->info->required_cluster[i];
    if (required != 0 && required != cluster[i])
      return backend.refuse(
          kInvalidClusterSize,
          text("%s: launched with clusters of %ux%ux%u, compiled for %ux%ux%u", name, cluster[0],
               cluster[1], cluster[2], call.kernel->info->required_cluster[0],
               call.kernel->info->required_cluster[1], call.kernel->info->required_cluster[2])
              .c_str());
    if (call.grid[i] % cluster[i] != 0)
      return backend.refuse(
          kInvalidClusterSize,
          text("%s: grid %ux%ux%u is not a multiple of cluster %ux%ux%u", name, call.grid[0],
               call.grid[1], call.grid[2], cluster[0], cluster[1], cluster[2])
              .c_str());
  }
  if (size > 16 || (size > 8 && !call.kernel->non_portable_cluster))
    return backend.refuse(kInvalidClusterSize,
                          text("%s: cluster of %llu blocks; more than 8 needs the attribute "
                               "NonPortableClusterSizeAllowed, and 16 is the most",
                               name, static_cast<unsigned long long>(size))
                              .c_str());
  if (clusters_on_device(backend.profile(), *call.kernel, product(call.block), call.dynamic_shared,
                         size) == 0)
    return backend.refuse(
        kInvalidClusterSize,
        text("%s: no cluster of %llu blocks fits on the device with these resources", name,
             static_cast<unsigned long long>(size))
            .c_str());
  return kSuccess;
}

}  // namespace

void settle_cluster(const LaunchCall& call, uint32_t* cluster) {
  const uint32_t* required = call.kernel->info->required_cluster;
  for (int i = 0; i < 3; ++i) {
    cluster[i] = call.cluster[0] != 0 ? call.cluster[i] : required[i];
    if (cluster[i] == 0 && (call.cluster[0] != 0 || required[0] != 0)) cluster[i] = 1;
  }
}

int check_launch(Backend& backend, const LaunchCall& call, const uint32_t* cluster) {
  const Kernel& kernel = *call.kernel;
  const uint64_t threads = product(call.block);
  const uint32_t* required = kernel.info->required_block;
  if (product(call.grid) == 0 || threads == 0)
    return backend.refuse(
        kInvalidConfiguration,
        text("%s: grid %ux%ux%u, block %ux%ux%u has a zero extent", kernel.name, call.grid[0],
             call.grid[1], call.grid[2], call.block[0], call.block[1], call.block[2])
            .c_str());
  if (call.grid[0] > 0x7fffffffu || call.grid[1] > 65535 || call.grid[2] > 65535)
    return backend.refuse(kInvalidConfiguration,
                          text("%s: grid %ux%ux%u is larger than 2147483647x65535x65535",
                               kernel.name, call.grid[0], call.grid[1], call.grid[2])
                              .c_str());
  if (call.block[0] > 1024 || call.block[1] > 1024 || call.block[2] > 64 || threads > 1024)
    return backend.refuse(
        kInvalidConfiguration,
        text("%s: block %ux%ux%u has more than 1024 threads (or more than 64 in z)", kernel.name,
             call.block[0], call.block[1], call.block[2])
            .c_str());
  if (threads > kernel.info->max_threads)
    return backend.refuse(
        kInvalidValue,
        text("%s: %llu threads a block, but the kernel was compiled for "
             "at most %u (__launch_bounds__)",
             kernel.name, static_cast<unsigned long long>(threads), kernel.info->max_threads)
            .c_str());
  for (int i = 0; i < 3; ++i)
    if (required[i] != 0 && required[i] != call.block[i])
      return backend.refuse(
          kInvalidValue,
          text("%s: block %ux%ux%u, but the kernel was compiled for exactly %ux%ux%u", kernel.name,
               call.block[0], call.block[1], call.block[2], required[0], required[1], required[2])
              .c_str());
  if (call.dynamic_shared > kernel.dynamic_limit())
    return backend.refuse(
        kInvalidValue,
        text("%s: %llu bytes of dynamic shared memory, allowed are %u (static: %u); more needs "
             "cudaFuncSetAttribute(cudaFuncAttributeMaxDynamicSharedMemorySize)",
             kernel.name, static_cast<unsigned long long>(call.dynamic_shared),
             kernel.dynamic_limit(), kernel.static_shared())
            .c_str());
  const int blocks = blocks_per_sm(kernel, threads, call.dynamic_shared);
  if (blocks == 0)
    return backend.refuse(
        kLaunchOutOfResources,
        text("%s: %llu threads with %u registers each do not fit on an SM", kernel.name,
             static_cast<unsigned long long>(threads), kernel.info->registers)
            .c_str());
  if (cluster[0] != 0)
    if (const int status = check_cluster(backend, call, cluster)) return status;
  if (call.cooperative && product(call.grid) > uint64_t(blocks) * backend.profile().sms)
    return backend.refuse(
        kCooperativeTooLarge,
        text("%s: a cooperative grid of %llu blocks, %d fit on the device at once", kernel.name,
             static_cast<unsigned long long>(product(call.grid)), blocks * backend.profile().sms)
            .c_str());
  return kSuccess;
}

bool pack_arguments(const LaunchCall& call, std::vector<uint8_t>* params) {
  const wire::KernelInfo& info = *call.kernel->info;
  params->assign(info.param_bytes, 0);
  if (call.packed) {
    std::memcpy(params->data(), call.packed, std::min<size_t>(call.packed_bytes, params->size()));
    return call.packed_bytes >= params->size();
  }
  for (size_t i = 0; i < info.params.size(); ++i) {
    if (!call.arguments || !call.arguments[i]) return false;
    std::memcpy(params->data() + info.params[i].offset, call.arguments[i], info.params[i].bytes);
  }
  return true;
}

}  // namespace ptxbench::cudart
