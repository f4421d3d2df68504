#pragma once
// Host side of fp8_gemm.cuh and fp8_gemm_unspecialised.cuh.

#include "fp8_gemm.cuh"
#include "fp8_gemm_unspecialised.cuh"
#include "gemm_launch.cuh"
#include "tensor_map.h"

namespace ptxbench::sm90 {

template <typename Config>
cudaError_t launch_fp8_gemm_config(const void* a, const void* b, void* d, const Fp8Scales& scales,
                                   const GemmShape& shape, int sm_count, int group_rows,
                                   cudaStream_t stream) {
  const EncodeTiled encode = find_encode_tiled();
  if (encode == nullptr) return cudaErrorNotSupported;
  CUtensorMap map_a, map_b, map_d;
  constexpr auto kBytes = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  if (!encode_matrix(encode, &map_a, a, shape.m, shape.k, Config::kBlockM, kBytes) ||
      !encode_matrix(encode, &map_b, b, shape.n, shape.k, Config::kLoadRowsB, kBytes) ||
      !encode_matrix(encode, &map_d, d, shape.m, shape.n, Config::kStoreRows)) {
    return cudaErrorInvalidValue;
  }
  return launch_gemm_tiles<Config>(fp8_gemm_kernel<Config>, shape, sm_count, group_rows, stream,
                                   map_a, map_b, map_d, scales);
}

template <typename Config>
cudaError_t launch_fp8_gemm_unspecialised_config(const void* a, const void* b, void* d,
                                                 const Fp8Scales& scales, const GemmShape& shape,
                                                 cudaStream_t stream) {
  const EncodeTiled encode = find_encode_tiled();
  if (encode == nullptr) return cudaErrorNotSupported;
  CUtensorMap map_a, map_b;
  constexpr auto kBytes = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  if (!encode_matrix(encode, &map_a, a, shape.m, shape.k, Config::kBlockM, kBytes) ||
      !encode_matrix(encode, &map_b, b, shape.n, shape.k, Config::kBlockN, kBytes)) {
    return cudaErrorInvalidValue;
  }
  auto kernel = fp8_gemm_unspecialised_kernel<Config>;
  const cudaError_t status = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Config::kSharedBytes);
  if (status != cudaSuccess) return status;
  const dim3 grid((shape.m + Config::kBlockM - 1) / Config::kBlockM,
                  (shape.n + Config::kBlockN - 1) / Config::kBlockN);
  kernel<<<grid, Config::kThreads, Config::kSharedBytes, stream>>>(
      map_a, map_b,
      {scales, static_cast<__nv_bfloat16*>(d), shape.m, shape.n, shape.k / Config::kBlockK});
  return cudaGetLastError();
}

// K a multiple of 128, N of 8, any M >= 1. scales.a [M, K/128]; scales.b [ceil(N/128), K/128] or,
// with ScaleRowsB, [N, K/128].
template <bool ScaleRowsB>
cudaError_t launch_fp8_gemm(const void* a, const void* b, void* d, const Fp8Scales& scales,
                            const GemmShape& shape, int device, cudaStream_t stream) {
  if (shape.k % 128 != 0) return cudaErrorInvalidValue;
  int sm_count = 0;
  const cudaError_t status =
      cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  if (status != cudaSuccess) return status;
  constexpr int kGroupRows = 16;
  constexpr bool kOverlap = !ScaleRowsB;  // the scales of columns leave no registers for it
  if (shape.m <= 128) {
    return launch_fp8_gemm_config<Fp8GemmConfig<128, 5, 1, kOverlap, ScaleRowsB>>(
        a, b, d, scales, shape, sm_count, kGroupRows, stream);
  }
  return launch_fp8_gemm_config<Fp8GemmConfig<128, 5, 2, kOverlap, ScaleRowsB>>(
      a, b, d, scales, shape, sm_count, kGroupRows, stream);
}

// The same sizes.
template <bool ScaleRowsB>
cudaError_t launch_fp8_gemm_unspecialised(const void* a, const void* b, void* d,
                                          const Fp8Scales& scales, const GemmShape& shape,
                                          cudaStream_t stream) {
  if (shape.m < 1 || shape.k % 128 != 0) return cudaErrorInvalidValue;
  return launch_fp8_gemm_unspecialised_config<UnspecialisedFp8Config<4, ScaleRowsB>>(
      a, b, d, scales, shape, stream);
}

}  // namespace ptxbench::sm90
