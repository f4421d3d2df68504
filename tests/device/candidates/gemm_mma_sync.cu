// C[M,N] = A[M,K] * B[N,K]^T in bf16 the way it was done before Hopper: cp.async into a ring of
// three stages, ldmatrix, mma.sync. Any M and N; K in multiples of 8. It adds K in the order of the
// wgmma kernel (kernels/sm_80 does not), so the two must agree bit for bit.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <ptxbench/ptx_sm80.cuh>

#include <cstdint>

namespace {

constexpr int kTileM = 128, kTileN = 128, kTileK = 32, kStages = 3, kThreads = 256;
// Rows of 64 bytes are padded by one chunk, so that the eight rows of an ldmatrix lie in different
// banks.
constexpr int kPitch = kTileK * 2 + 16;
constexpr int kBytesA = kTileM * kPitch, kStageBytes = (kTileM + kTileN) * kPitch;

// 128 rows of 32 elements of a row-major matrix; what lies outside becomes zero.
__device__ __forceinline__ void load_tile(uint32_t to, const __nv_bfloat16* from, int first_row,
                                          int rows, int first_k, int k) {
  for (int i = threadIdx.x; i < 128 * 4; i += kThreads) {
    const int row = i / 4, chunk = i % 4;
    const bool inside = first_row + row < rows && first_k + chunk * 8 < k;
    const size_t at = static_cast<size_t>(first_row + row) * k + first_k + chunk * 8;
    ptxbench::ptx::cp_async_16(to + row * kPitch + chunk * 16, from + (inside ? at : 0),
                               inside ? 16 : 0);
  }
}

__global__ void __launch_bounds__(kThreads)
    gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k) {
  extern __shared__ __align__(128) uint8_t memory[];
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const int tile_m = blockIdx.y * kTileM, tile_n = blockIdx.x * kTileN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_m = warp / 4 * 64, warp_n = warp % 4 * 32;
  const int steps = (k + kTileK - 1) / kTileK;
  auto load = [&](int step) {
    const uint32_t stage = shared + step % kStages * kStageBytes;
    if (step < steps) {
      load_tile(stage, a, tile_m, m, step * kTileK, k);
      load_tile(stage + kBytesA, b, tile_n, n, step * kTileK, k);
    }
    ptxbench::ptx::cp_async_commit();
  };
  float acc[4][4][4] = {};
  for (int s = 0; s < kStages - 1; ++s) load(s);
  for (int step = 0; step < steps; ++step) {
    ptxbench::ptx::cp_async_wait<kStages - 2>();
    __syncthreads();
    load(step + kStages - 1);
    const uint32_t stage = shared + step % kStages * kStageBytes;
    for (int kk = 0; kk < kTileK; kk += 16) {
      uint32_t fa[4][4], fb[2][4];
      // Matrices 0 and 1: rows 0-7 and 8-15 of the first eight k; 2 and 3 of the second.
      for (int i = 0; i < 4; ++i)
        ptxbench::ptx::ldmatrix_x4(
            fa[i], stage + (warp_m + 16 * i + lane % 16) * kPitch + kk * 2 + lane / 16 * 16);
      for (int j = 0; j < 2; ++j)
        ptxbench::ptx::ldmatrix_x4(fb[j], stage + kBytesA + (warp_n + 16 * j + lane % 16) * kPitch +
                                              kk * 2 + lane / 16 * 16);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
          ptxbench::ptx::mma_m16n8k16_bf16(acc[i][j], fa[i], fb[j / 2][j % 2],
                                           fb[j / 2][j % 2 + 2]);
    }
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      for (int half = 0; half < 2; ++half) {
        const int row = tile_m + warp_m + 16 * i + lane / 4 + 8 * half;
        const int column = tile_n + warp_n + 8 * j + lane % 4 * 2;
        for (int e = 0; e < 2; ++e)
          if (row < m && column + e < n)
            c[static_cast<size_t>(row) * n + column + e] =
                __float2bfloat16(acc[i][j][2 * half + e]);
      }
}

void run(tvm::ffi::TensorView a, tvm::ffi::TensorView b, tvm::ffi::TensorView c) {
  const int m = static_cast<int>(a.size(0)), n = static_cast<int>(b.size(0)),
            k = static_cast<int>(a.size(1));
  const DLDevice device = a.device();
  auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  constexpr int kShared = kStages * kStageBytes;
  cudaError_t status =
      cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  const dim3 grid((n + kTileN - 1) / kTileN, (m + kTileM - 1) / kTileM);
  gemm<<<grid, kThreads, kShared, stream>>>(static_cast<const __nv_bfloat16*>(a.data_ptr()),
                                            static_cast<const __nv_bfloat16*>(b.data_ptr()),
                                            static_cast<__nv_bfloat16*>(c.data_ptr()), m, n, k);
  if (status == cudaSuccess) status = cudaGetLastError();
  if (status != cudaSuccess) TVM_FFI_THROW(RuntimeError) << "gemm: " << cudaGetErrorString(status);
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
