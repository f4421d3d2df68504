// Device entities with internal linkage, whose names differ between a device-only and a host-only
// pass.
#include <cuda_runtime.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

namespace {

struct Weights {
  float scale;
  const float* bias;
};
__constant__ Weights weights;
__device__ float counter[8];

template <int N>
__global__ void scale(const float* in, float* out, float* slots) {
  const int i = blockIdx.x * N + threadIdx.x;
  out[i] = in[i] * weights.scale + weights.bias[i % N] + slots[i % 8] + counter[i % 8];
}

void run(tvm::ffi::TensorView in, tvm::ffi::TensorView bias, tvm::ffi::TensorView out) {
  const Weights host{2.0f, static_cast<const float*>(bias.data_ptr())};
  cudaMemcpyToSymbol(weights, &host, sizeof host);
  void* slots = nullptr;
  cudaGetSymbolAddress(&slots, counter);
  scale<128><<<in.size(0) / 128, 128>>>(static_cast<const float*>(in.data_ptr()),
                                        static_cast<float*>(out.data_ptr()),
                                        static_cast<float*>(slots));
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
