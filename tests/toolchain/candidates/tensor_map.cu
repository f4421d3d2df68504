// Both ways to the driver's tensor map encoder: looked up at run time, and linked.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

__global__ void touch(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                      float* out) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&a) : "memory");
  asm volatile("prefetch.tensormap [%0];" ::"l"(&b) : "memory");
  if (threadIdx.x == 0) out[0] = 1.0f;
}

static CUresult encode(PFN_cuTensorMapEncodeTiled_v12000 function, CUtensorMap* map, void* data,
                       uint64_t rows, uint64_t columns) {
  cuuint64_t sizes[2] = {columns, rows};
  cuuint64_t strides[1] = {columns * sizeof(float)};
  cuuint32_t box[2] = {32, 8};
  cuuint32_t steps[2] = {1, 1};
  return function(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, data, sizes, strides, box, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static void run(tvm::ffi::TensorView a, tvm::ffi::TensorView b, tvm::ffi::TensorView out) {
  void* looked_up = nullptr;
  cudaDriverEntryPointQueryResult status;
  TVM_FFI_ICHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &looked_up, 12000,
                                                  cudaEnableDefault, &status) == cudaSuccess);
  CUtensorMap map_a, map_b;
  TVM_FFI_ICHECK_EQ(encode(reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(looked_up), &map_a,
                           a.data_ptr(), a.size(0), a.size(1)),
                    CUDA_SUCCESS);
  TVM_FFI_ICHECK_EQ(encode(&cuTensorMapEncodeTiled, &map_b, b.data_ptr(), b.size(-2), b.size(-1)),
                    CUDA_SUCCESS);
  touch<<<1, 32, 0, static_cast<cudaStream_t>(TVMFFIEnvGetStream(kDLCUDA, 0))>>>(
      map_a, map_b, static_cast<float*>(out.data_ptr()));
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
