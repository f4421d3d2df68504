#pragma once
// Launch of the persistent GEMM kernels, whatever their types.

#include <cuda_runtime.h>

#include <algorithm>

#include "gemm_bf16.cuh"
#include "gemm_bf16_plan.h"

namespace ptxbench::sm90 {

// Launches a persistent kernel over the tiles of `shape`: kernel(map_a, map_b, map_c, schedule,
// more...).
template <typename Config, typename Kernel, typename... More>
cudaError_t launch_gemm_tiles(Kernel kernel, const GemmShape& shape, int sm_count, int group_rows,
                              cudaStream_t stream, const CUtensorMap& map_a,
                              const CUtensorMap& map_b, const CUtensorMap& map_c,
                              const More&... more) {
  GemmSchedule schedule;
  schedule.m = shape.m;
  schedule.units_m =
      (shape.m + Config::kBlockM * Config::kCluster - 1) / (Config::kBlockM * Config::kCluster);
  schedule.tiles_n = (shape.n + Config::kBlockN - 1) / Config::kBlockN;
  schedule.k_steps = (shape.k + Config::kBlockK - 1) / Config::kBlockK;
  schedule.group_m = std::max(1, group_rows / Config::kCluster);
  const int units = schedule.units_m * schedule.tiles_n;

  cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            Config::kSharedBytes);
  if (status != cudaSuccess) return status;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(std::min(units, sm_count / Config::kCluster) * Config::kCluster);
  config.blockDim = dim3(Config::kThreads);
  config.dynamicSmemBytes = Config::kSharedBytes;
  config.stream = stream;
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeClusterDimension;
  attribute[0].val.clusterDim.x = Config::kCluster;
  attribute[0].val.clusterDim.y = 1;
  attribute[0].val.clusterDim.z = 1;
  config.attrs = attribute;
  config.numAttrs = Config::kCluster > 1 ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, map_a, map_b, map_c, schedule, more...);
}

}  // namespace ptxbench::sm90
