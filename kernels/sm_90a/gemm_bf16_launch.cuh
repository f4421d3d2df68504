#pragma once
// Host side of gemm_bf16.cuh: tensor maps and launch. Needs no link to the
// driver library: its one entry point is asked from the runtime.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "gemm_bf16.cuh"
#include "gemm_bf16_plan.h"

namespace ptxbench::sm90 {

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                 const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                 const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

inline EncodeTiled find_encode_tiled() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                       &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess) {
    return nullptr;
  }
  return reinterpret_cast<EncodeTiled>(entry);
}

// Row-major bf16 matrix [rows, columns], moved in boxes of box_rows x 64 with the 128-byte swizzle.
inline bool encode_matrix(EncodeTiled encode, CUtensorMap* map, const void* data, int rows,
                          int columns, int box_rows) {
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(columns) * 2};
  const cuuint32_t box[2] = {64, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(data), sizes, strides,
                box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <typename Config>
cudaError_t launch_gemm_config(const void* a, const void* b, void* c, const GemmShape& shape,
                               int sm_count, int group_rows, cudaStream_t stream) {
  const EncodeTiled encode = find_encode_tiled();
  if (encode == nullptr) return cudaErrorNotSupported;
  CUtensorMap map_a, map_b, map_c;
  if (!encode_matrix(encode, &map_a, a, shape.m, shape.k, Config::kBlockM) ||
      !encode_matrix(encode, &map_b, b, shape.n, shape.k, Config::kLoadRowsB) ||
      !encode_matrix(encode, &map_c, c, shape.m, shape.n, Config::kStoreRows)) {
    return cudaErrorInvalidValue;
  }
  GemmSchedule schedule;
  schedule.m = shape.m;
  schedule.units_m =
      (shape.m + Config::kBlockM * Config::kCluster - 1) / (Config::kBlockM * Config::kCluster);
  schedule.tiles_n = (shape.n + Config::kBlockN - 1) / Config::kBlockN;
  schedule.k_steps = (shape.k + Config::kBlockK - 1) / Config::kBlockK;
  schedule.group_m = std::max(1, group_rows / Config::kCluster);
  const int units = schedule.units_m * schedule.tiles_n;

  auto kernel = gemm_bf16_kernel<Config>;
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
  return cudaLaunchKernelEx(&config, kernel, map_a, map_b, map_c, schedule);
}

// K and N must be multiples of 8 (16-byte rows); any M >= 1.
inline cudaError_t launch_gemm_bf16(const void* a, const void* b, void* c, const GemmShape& shape,
                                    int device, cudaStream_t stream) {
  int sm_count = 0;
  cudaError_t status = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  if (status != cudaSuccess) return status;
  constexpr int kGroupRows = 16;
  const GemmChoice choice = choose_gemm(shape, sm_count);
  if (choice.block_n == 64) {
    return launch_gemm_config<GemmConfig<64, 8, 1>>(a, b, c, shape, sm_count, kGroupRows, stream);
  }
  if (choice.block_n == 128) {
    return launch_gemm_config<GemmConfig<128, 6, 1>>(a, b, c, shape, sm_count, kGroupRows, stream);
  }
  if (choice.cluster == 1) {
    return launch_gemm_config<GemmConfig<256, 4, 1>>(a, b, c, shape, sm_count, kGroupRows, stream);
  }
  return launch_gemm_config<GemmConfig<256, 4, 2>>(a, b, c, shape, sm_count, kGroupRows, stream);
}

}  // namespace ptxbench::sm90
