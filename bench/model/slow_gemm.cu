// A bf16 GEMM with one disease of speed at a time: DISEASE says which. bench/model/variants.sh
// makes a candidate of each, so that the time model's estimates can be compared with times of
// kernels that differ in one thing. All are right; healthy is the structure of
// examples/candidates/gemm_bf16.md.
//
// C[M,N] = A[M,K] * B[N,K]^T, bf16 in and out, fp32 sums. Persistent CTAs: one thread streams K
// steps of A and B through a ring of TMA stages, warpgroups multiply them with wgmma, each for 64
// of the tile's rows, and store through stmatrix and TMA.
#define HEALTHY 0
#define ONE_STAGE 1  // no copy while products run
#define TWO_STAGES 2
#define WAIT_EACH 3      // every wgmma is waited for
#define TOUCHED_SUMS 4   // sums are touched in flight: ptxas waits (C7514 and its like)
#define ONE_WARPGROUP 5  // 64 rows a tile, one warpgroup multiplies
#define NARROW 7         // tiles of 128 x 32
#define HALF_THE_SMS 8   // a grid of 66 CTAs
#define CONFLICTS 9      // every step stores a column of shared memory from one bank
#define ATOMICS 10       // every step adds to one word of global memory from all lanes
#ifndef DISEASE
#define DISEASE HEALTHY
#endif
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

constexpr int kGroups = DISEASE == ONE_WARPGROUP ? 1 : 2;  // that multiply
constexpr int kRows = 64 * kGroups, kColumns = DISEASE == NARROW ? 32 : 128, kStep = 64;
constexpr int kStages = DISEASE == ONE_STAGE ? 1 : DISEASE == TWO_STAGES ? 2 : 4;
constexpr int kSums = kColumns / 2, kBoxes = kColumns > 64 ? 2 : 1;
constexpr int kBoxColumns = kColumns / kBoxes;
constexpr uint32_t kBytesA = kRows * kStep * 2, kBytesB = kColumns * kStep * 2;  // of a stage
constexpr uint32_t kBox = 16 * 64 * 2;  // a warp's 16 rows x 64 columns of C
constexpr uint32_t kOffsetC = kStages * (kBytesA + kBytesB);
constexpr uint32_t kOffsetBarriers = kOffsetC + 4 * kGroups * kBoxes * kBox;
constexpr uint32_t kOffsetColumn = kOffsetBarriers + 128;  // of CONFLICTS
constexpr uint32_t kSharedBytes = 1024 + kOffsetColumn + (DISEASE == CONFLICTS ? 32 * 128 : 0);
constexpr int kThreads = 128 + 128 * kGroups;

__device__ unsigned long long steps_done;  // of ATOMICS

struct Ring {
  uint32_t base;
  int stage = 0;
  uint32_t phase = 0;
  __device__ uint32_t a() const { return base + stage * (kBytesA + kBytesB); }
  __device__ uint32_t b() const { return a() + kBytesA; }
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
      ptx::mbarrier_arrive_expect_tx(ring.full(), kBytesA + kBytesB);
      ptx::tma_load_2d(ring.a(), map_a, ring.full(), step * kStep, tile % tiles_m * kRows);
      ptx::tma_load_2d(ring.b(), map_b, ring.full(), step * kStep, tile / tiles_m * kColumns);
      ring.advance();
    }
  }
}

// A warp's 16 rows of sums, as bf16, through swizzled boxes in shared memory.
__device__ void store(const float (&sums)[kSums], uint32_t staging, const CUtensorMap* map_c,
                      int row, int column, int lane) {
  if (lane == 0) ptx::bulk_wait_read<0>();
  __syncwarp();
  constexpr int kMask = kBoxColumns == 64 ? 7 : 3;  // swizzle of 128 or 64 bytes
#pragma unroll
  for (int box = 0; box < kBoxes; ++box) {
#pragma unroll
    for (int pair = 0; pair < kBoxColumns / 16; ++pair) {
      const float* s = sums + box * 32 + pair * 8;
      const int line = lane & 15;
      const uint32_t chunk = (pair * 2 + (lane >> 4)) ^ (kMask == 7 ? line & 7 : line >> 1 & 3);
      ptx::stmatrix_x4(staging + box * kBox + line * kBoxColumns * 2 + chunk * 16,
                       ptx::pack_bf16(s[0], s[1]), ptx::pack_bf16(s[2], s[3]),
                       ptx::pack_bf16(s[4], s[5]), ptx::pack_bf16(s[6], s[7]));
    }
  }
  ptx::fence_proxy_async();
  __syncwarp();
  if (lane == 0) {
    for (int box = 0; box < kBoxes; ++box)
      ptx::tma_store_2d(map_c, staging + box * kBox, column + 64 * box, row);
    ptx::bulk_commit();
  }
}

// What a diseased kernel does beside its products in every step.
__device__ void burden(uint32_t shared, int lane) {
  if (DISEASE == CONFLICTS)
    for (int i = 0; i < 4; ++i)
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared + kOffsetColumn + lane * 128 + i * 4),
                   "r"(lane)
                   : "memory");
  if (DISEASE == ATOMICS) asm volatile("red.global.add.u64 [%0], 0;" ::"l"(&steps_done) : "memory");
}

__device__ void multiply(float (&sums)[kSums], uint32_t a_at, uint32_t b_at, bool add) {
  const uint64_t a = ptx::descriptor_k_major_128b(a_at);
  const uint64_t b = ptx::descriptor_k_major_128b(b_at);
  ptx::wgmma_fence();
#pragma unroll
  for (int slice = 0; slice < 4; ++slice) {
    ptx::wgmma_f32<kColumns, __nv_bfloat16>(sums, a + 2 * slice, b + 2 * slice, add || slice > 0);
    if (DISEASE == WAIT_EACH) {
      ptx::wgmma_commit();
      ptx::wgmma_wait<0>();
    }
  }
  ptx::wgmma_commit();
}

__device__ void consume(Ring ring, const CUtensorMap* map_c, int tiles_m, int tiles, int steps) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 4;
  const uint32_t staging = ring.base + kOffsetC + warp * kBoxes * kBox;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float sums[kSums] = {};
    uint32_t last = 0;  // barrier of the stage whose products may be in flight
    for (int step = 0; step < steps; ++step) {
      ptx::mbarrier_wait(ring.full(), ring.phase);
      const uint32_t a = ring.a() + warp / 4 * (64 * kStep * 2), b = ring.b();
      if (DISEASE == TOUCHED_SUMS) {
        float part[kSums];
        multiply(part, a, b, false);
#pragma unroll
        for (int i = 0; i < kSums; ++i)
          asm volatile("add.f32 %0, %0, %1;" : "+f"(sums[i]) : "f"(part[i]) : "memory");
      } else {
        multiply(sums, a, b, true);
      }
      burden(ring.base, lane);
      if (DISEASE == ONE_STAGE || DISEASE == WAIT_EACH || DISEASE == TOUCHED_SUMS) {
        ptx::wgmma_wait<0>();
        if (lane == 0) ptx::mbarrier_arrive(ring.empty());
      } else {
        ptx::wgmma_wait<1>();
        if (lane == 0 && last != 0) ptx::mbarrier_arrive(last);
        last = ring.empty();
      }
      ring.advance();
    }
    ptx::wgmma_wait<0>();
    if (lane == 0 && last != 0) ptx::mbarrier_arrive(last);
    store(sums, staging, map_c, tile % tiles_m * kRows + warp * 16, tile / tiles_m * kColumns,
          lane);
  }
  if (lane == 0) ptx::bulk_wait<0>();
}

__global__ void __launch_bounds__(kThreads, 1)
    gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
         const __grid_constant__ CUtensorMap map_c, int tiles_m, int tiles, int steps) {
  extern __shared__ uint8_t shared[];
  Ring ring;
  ring.base = (ptx::smem_address(shared) + 1023) & ~1023u;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(ring.base + kOffsetBarriers + stage * 8, 1);
      ptx::mbarrier_init(ring.base + kOffsetBarriers + (kStages + stage) * 8, 4 * kGroups);
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

// Row-major bf16 matrix [rows, columns] in boxes of box_rows x box_columns.
CUtensorMap encode(const void* data, int64_t rows, int64_t columns, uint32_t box_rows,
                   uint32_t box_columns) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                   &found);
  if (entry == nullptr) TVM_FFI_THROW(RuntimeError) << "no cuTensorMapEncodeTiled";
  const cuuint64_t sizes[2] = {cuuint64_t(columns), cuuint64_t(rows)};
  const cuuint64_t strides[1] = {cuuint64_t(columns) * 2};
  const cuuint32_t box[2] = {box_columns, box_rows}, steps[2] = {1, 1};
  CUtensorMap map;
  if (reinterpret_cast<EncodeTiled>(entry)(
          &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(data), sizes, strides, box,
          steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
          box_columns == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
          CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    TVM_FFI_THROW(RuntimeError) << "cuTensorMapEncodeTiled refused a map";
  return map;
}

void run(tvm::ffi::TensorView a, tvm::ffi::TensorView b, tvm::ffi::TensorView c) {
  const int m = a.size(0), n = b.size(0), k = a.size(1);
  const int tiles_m = (m + kRows - 1) / kRows, tiles = tiles_m * ((n + kColumns - 1) / kColumns);
  const int steps = (k + kStep - 1) / kStep;
  const DLDevice device = a.device();
  auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  int sms = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device.device_id);
  const CUtensorMap map_a = encode(a.data_ptr(), m, k, kRows, 64);
  const CUtensorMap map_b = encode(b.data_ptr(), n, k, kColumns, 64);
  const CUtensorMap map_c = encode(c.data_ptr(), m, n, 16, kBoxColumns);
  if (DISEASE == HALF_THE_SMS) sms /= 2;
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  const dim3 grid(tiles < sms ? tiles : sms);
  gemm<<<grid, kThreads, kSharedBytes, stream>>>(map_a, map_b, map_c, tiles_m, tiles, steps);
  if (cudaGetLastError() != cudaSuccess) TVM_FFI_THROW(RuntimeError) << "gemm: launch failed";
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
