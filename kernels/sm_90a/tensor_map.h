#pragma once
// Host side of every kernel here: tensor maps. Needs no link to the driver library: its one entry
// point is asked from the runtime.

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

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

// Row-major matrix [rows, columns], moved in boxes of box_rows x box_bytes (128 or 64) with the
// swizzle of that width.
inline bool encode_matrix(EncodeTiled encode, CUtensorMap* map, const void* data, int rows,
                          int columns, int box_rows,
                          CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                          int box_bytes = 128) {
  const int bytes = type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1 : 2;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(columns) * bytes};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(box_bytes / bytes),
                             static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  return encode(map, type, 2, const_cast<void*>(data), sizes, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE,
                box_bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// bf16 [heads, rows, head_dim], contiguous, moved in boxes of box_rows rows x box_columns (64, 32
// or 16: one row of the 128-, 64- or 32-byte swizzle) of one head. Rows past a head's end read as
// zeros and are not stored.
inline bool encode_heads(EncodeTiled encode, CUtensorMap* map, const void* data, int heads,
                         int rows, int head_dim, int box_rows, int box_columns) {
  const cuuint64_t sizes[3] = {static_cast<cuuint64_t>(head_dim), static_cast<cuuint64_t>(rows),
                               static_cast<cuuint64_t>(heads)};
  const cuuint64_t strides[2] = {static_cast<cuuint64_t>(head_dim) * 2,
                                 static_cast<cuuint64_t>(head_dim) * rows * 2};
  const cuuint32_t box[3] = {static_cast<cuuint32_t>(box_columns),
                             static_cast<cuuint32_t>(box_rows), 1};
  const cuuint32_t steps[3] = {1, 1, 1};
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<void*>(data), sizes, strides,
                box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                box_columns == 64   ? CU_TENSOR_MAP_SWIZZLE_128B
                : box_columns == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
                                    : CU_TENSOR_MAP_SWIZZLE_32B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace ptxbench::sm90
