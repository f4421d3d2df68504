// Nothing waits for a TMA store: the next tile overwrites what it reads, and the CTA ends before it
// has read.
//
// C[M,N] = A[M,K] * B[N,K]^T, bf16 in and out, fp32 sums. Persistent CTAs: one thread streams K steps of
// A and B through a ring of TMA stages, two warpgroups multiply them with wgmma, each for 64 of the
// tile's 128 rows, and store through stmatrix and TMA.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <cstdint>
#include <ptxbench/ptx.cuh>

namespace {

namespace ptx = ptxbench::ptx;

constexpr int kTile = 128, kStep = 64, kStages = 4;
constexpr uint32_t kBytes = kTile * kStep * 2;  // of A and of B in one stage
constexpr uint32_t kBox = 16 * 64 * 2;          // a warp's 16 rows x 64 columns of C
constexpr uint32_t kOffsetC = kStages * 2 * kBytes, kOffsetBarriers = kOffsetC + 8 * 2 * kBox;
constexpr uint32_t kSharedBytes = 1024 + kOffsetBarriers + 2 * kStages * 8;

struct Ring {
  uint32_t base;
  int stage = 0;
  uint32_t phase = 0;
  __device__ uint32_t a() const { return base + stage * 2 * kBytes; }
  __device__ uint32_t b() const { return a() + kBytes; }
  __device__ uint32_t full() const { return base + kOffsetBarriers + stage * 8; }
  __device__ uint32_t empty() const { return full() + kStages * 8; }
  __device__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

__device__ void produce(Ring ring, const CUtensorMap* map_a, const CUtensorMap* map_b, int tiles_m,
                        int tiles, int steps) {
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    for (int step = 0; step < steps; ++step) {
      ptx::mbarrier_wait(ring.empty(), ring.phase ^ 1);
      ptx::mbarrier_arrive_expect_tx(ring.full(), 2 * kBytes);
      ptx::tma_load_2d(ring.a(), map_a, ring.full(), step * kStep, tile % tiles_m * kTile);
      ptx::tma_load_2d(ring.b(), map_b, ring.full(), step * kStep, tile / tiles_m * kTile);
      ring.advance();
    }
  }
}

// A warp's 16 rows x 128 columns of sums, as bf16, through two swizzled boxes in shared memory.
__device__ void store(const float (&sums)[64], uint32_t staging, const CUtensorMap* map_c, int row,
                      int column, int lane) {
#pragma unroll
  for (int box = 0; box < 2; ++box) {
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const float* s = sums + box * 32 + pair * 8;
      const uint32_t chunk = (pair * 2 + (lane >> 4)) ^ (lane & 7);
      ptx::stmatrix_x4(staging + box * kBox + (lane & 15) * 128 + chunk * 16,
                       ptx::pack_bf16(s[0], s[1]), ptx::pack_bf16(s[2], s[3]),
                       ptx::pack_bf16(s[4], s[5]), ptx::pack_bf16(s[6], s[7]));
    }
  }
  ptx::fence_proxy_async();
  __syncwarp();
  if (lane == 0) {
    ptx::tma_store_2d(map_c, staging, column, row);
    ptx::tma_store_2d(map_c, staging + kBox, column + 64, row);
    ptx::bulk_commit();
  }
}

__device__ void consume(Ring ring, const CUtensorMap* map_c, int tiles_m, int tiles, int steps) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 4;
  const uint32_t staging = ring.base + kOffsetC + warp * 2 * kBox;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float sums[64];
    for (int step = 0; step < steps; ++step) {
      ptx::mbarrier_wait(ring.full(), ring.phase);
      const uint64_t a = ptx::descriptor_k_major_128b(ring.a() + warp / 4 * (kBytes / 2));
      const uint64_t b = ptx::descriptor_k_major_128b(ring.b());
      ptx::wgmma_fence();
#pragma unroll
      for (int slice = 0; slice < 4; ++slice)
        ptx::wgmma_f32<kTile, __nv_bfloat16>(sums, a + 2 * slice, b + 2 * slice, step | slice);
      ptx::wgmma_commit();
      ptx::wgmma_wait<0>();
      ptx::wgmma_pin(sums);
      if (lane == 0) ptx::mbarrier_arrive(ring.empty());
      ring.advance();
    }
    store(sums, staging, map_c, tile % tiles_m * kTile + warp * 16, tile / tiles_m * kTile, lane);
  }
}

__global__ void __launch_bounds__(384, 1)
    gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
         const __grid_constant__ CUtensorMap map_c, int tiles_m, int tiles, int steps) {
  extern __shared__ uint8_t shared[];
  Ring ring;
  ring.base = (ptx::smem_address(shared) + 1023) & ~1023u;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(ring.base + kOffsetBarriers + stage * 8, 1);
      ptx::mbarrier_init(ring.base + kOffsetBarriers + (kStages + stage) * 8, 8);
    }
    ptx::fence_mbarrier_init();
    ptx::fence_proxy_async();
  }
  __syncthreads();
  if (threadIdx.x >= 128) {
    consume(ring, &map_c, tiles_m, tiles, steps);
  } else if (threadIdx.x == 0) {
    produce(ring, &map_a, &map_b, tiles_m, tiles, steps);
  }
}

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                 const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                 const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// Row-major bf16 matrix [rows, columns] in boxes of box_rows x 64.
CUtensorMap encode(const void* data, int64_t rows, int64_t columns, uint32_t box_rows) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                   &found);
  if (entry == nullptr) TVM_FFI_THROW(RuntimeError) << "no cuTensorMapEncodeTiled";
  const cuuint64_t sizes[2] = {cuuint64_t(columns), cuuint64_t(rows)};
  const cuuint64_t strides[1] = {cuuint64_t(columns) * 2};
  const cuuint32_t box[2] = {64, box_rows}, steps[2] = {1, 1};
  CUtensorMap map;
  if (reinterpret_cast<EncodeTiled>(entry)(
          &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(data), sizes, strides, box,
          steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
          CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    TVM_FFI_THROW(RuntimeError) << "cuTensorMapEncodeTiled refused a map";
  return map;
}

void run(tvm::ffi::TensorView a, tvm::ffi::TensorView b, tvm::ffi::TensorView c) {
  const int m = a.size(0), n = b.size(0), k = a.size(1);
  const int tiles_m = (m + kTile - 1) / kTile, tiles = tiles_m * ((n + kTile - 1) / kTile);
  const int steps = (k + kStep - 1) / kStep;
  const DLDevice device = a.device();
  auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  int sms = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device.device_id);
  const CUtensorMap map_a = encode(a.data_ptr(), m, k, kTile);
  const CUtensorMap map_b = encode(b.data_ptr(), n, k, kTile);
  const CUtensorMap map_c = encode(c.data_ptr(), m, n, 16);
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  gemm<<<tiles < sms ? tiles : sms, 384, kSharedBytes, stream>>>(map_a, map_b, map_c, tiles_m, tiles,
                                                                steps);
  if (cudaGetLastError() != cudaSuccess) TVM_FFI_THROW(RuntimeError) << "gemm: launch failed";
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
