#pragma once
// Blocks and clusters that fit at once, by the CUDA occupancy rules for sm_90 and sm_100. Without a
// known register count that limit is left out.

#include <algorithm>

#include "cudart/lib/backend.h"

namespace ptxbench::cudart {

inline int blocks_per_sm(const Kernel& kernel, uint64_t threads, uint64_t dynamic_shared) {
  using P = DeviceProfile;
  if (threads == 0 || threads > P::kMaxThreadsPerBlock) return 0;
  if (kernel.info && threads > kernel.info->max_threads) return 0;
  const uint64_t warps = (threads + P::kWarp - 1) / P::kWarp;
  uint64_t blocks = std::min<uint64_t>(P::kMaxBlocksPerSm, P::kMaxThreadsPerSm / P::kWarp / warps);
  const uint64_t wanted = kernel.static_shared() + dynamic_shared;
  if (wanted > P::kSharedPerBlockOptin) return 0;
  const uint64_t shared = (wanted + P::kReservedShared + 127) / 128 * 128;
  blocks = std::min<uint64_t>(blocks, P::kSharedPerSm / shared);
  if (kernel.info && kernel.info->registers > 0) {
    // Registers are handed out per warp in units of 256, from four files of a quarter each.
    const uint64_t per_warp = (uint64_t{kernel.info->registers} * P::kWarp + 255) / 256 * 256;
    const uint64_t warps_fit = P::kRegistersPerSm / 4 / per_warp * 4;
    blocks = std::min<uint64_t>(blocks, warps_fit / warps);
  }
  return static_cast<int>(blocks);
}

inline int clusters_on_device(const DeviceProfile& profile, const Kernel& kernel, uint64_t threads,
                              uint64_t dynamic_shared, uint64_t cluster) {
  const uint64_t blocks = blocks_per_sm(kernel, threads, dynamic_shared);
  if (cluster == 0) return 0;
  uint64_t clusters = 0;  // a cluster stays within a GPC
  for (const auto& gpc : profile.gpcs) clusters += gpc[0] * (gpc[1] * blocks / cluster);
  return static_cast<int>(clusters);
}

}  // namespace ptxbench::cudart
