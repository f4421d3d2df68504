#pragma once
// What the candidate wrappers of the kernels share. All tensors are contiguous:
//   attention forward    run(Q, K, V, O, LSE)                  bf16 [B,H,S,D], LSE fp32 [B,H,S]
//   attention backward   run(Q, K, V, O, dO, LSE, dQ, dK, dV)  likewise
//   FP8 attention        run(Q, K, V, descale_q, descale_k, descale_v, O, LSE)
//                                                          e4m3 [B,H,S,D], fp32 [1], LSE as above
//   FP8 GEMM             run(A, SF_A, B, SF_B, D)              e4m3 [M,K], fp32, e4m3 [N,K], fp32,
//   bf16

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <cuda_runtime.h>

#include <cmath>

namespace ptxbench::candidate {

using tvm::ffi::TensorView;

inline cudaStream_t stream_of(const TensorView& t) {
  const DLDevice device = t.device();
  return static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
}

inline void throw_unless_ok(const char* what, cudaError_t status) {
  if (status != cudaSuccess) {
    TVM_FFI_THROW(RuntimeError) << what << ": " << cudaGetErrorString(status);
  }
}

// Memory of one call, in the stream's order.
class Workspace {
 public:
  Workspace(size_t bytes, cudaStream_t stream) : stream_(stream) {
    throw_unless_ok("cudaMallocAsync", cudaMallocAsync(&data_, bytes, stream));
  }
  ~Workspace() { cudaFreeAsync(data_, stream_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  float* floats() const { return static_cast<float*>(data_); }

 private:
  cudaStream_t stream_;
  void* data_ = nullptr;
};

template <typename Type>
Type* data_of(const TensorView& t) {
  return static_cast<Type*>(t.data_ptr());
}

inline int heads_of(const TensorView& t) { return static_cast<int>(t.size(0) * t.size(1)); }
inline int seq_of(const TensorView& t) { return static_cast<int>(t.size(2)); }
inline float scale_of(int head_dim) { return 1 / std::sqrt(static_cast<float>(head_dim)); }

}  // namespace ptxbench::candidate
