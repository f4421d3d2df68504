#pragma once
// Host side of gemm_bf16.cuh: tensor maps and launch.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "gemm_bf16.cuh"
#include "gemm_bf16_plan.h"
#include "gemm_launch.cuh"
#include "tensor_map.h"

namespace ptxbench::sm90 {

template <typename Config>
cudaError_t launch_gemm_config(const void* a, const void* b, void* c, const GemmShape& shape,
                               int sm_count, int group_rows, cudaStream_t stream) {
  const EncodeTiled encode = find_encode_tiled();
  if (encode == nullptr) return cudaErrorNotSupported;
  CUtensorMap map_a, map_b, map_c;
  if (!encode_matrix(encode, &map_a, a, shape.m, shape.k, Config::kBlockM) ||
      !encode_matrix(encode, &map_b, b, shape.n, shape.k, Config::kLoadRowsB) ||
      !encode_matrix(encode, &map_c, c, shape.m, shape.n, Config::kStoreRows,
                     CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, Config::kStoreColumns * 2)) {
    return cudaErrorInvalidValue;
  }
  return launch_gemm_tiles<Config>(gemm_bf16_kernel<Config>, shape, sm_count, group_rows, stream,
                                   map_a, map_b, map_c);
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
  if (choice.block_n == 160) {
    return launch_gemm_config<GemmConfig<160, 5, 1>>(a, b, c, shape, sm_count, kGroupRows, stream);
  }
  if (choice.cluster == 1) {
    return launch_gemm_config<GemmConfig<256, 4, 1>>(a, b, c, shape, sm_count, kGroupRows, stream);
  }
  return launch_gemm_config<GemmConfig<256, 4, 2>>(a, b, c, shape, sm_count, kGroupRows, stream);
}

}  // namespace ptxbench::sm90
