#pragma once
// The optimizer's work on all parameters, one launch each: the norm of the gradients with its clip
// factor, and AdamW (Loshchilov & Hutter 2019):
//
//   m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2        (g: clipped gradient)
//   p -= lr (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay p)
//
// Moments are fp32. The parameter is kept in one of two ways:
//   fp32 master   `master`, and optionally its rounding to bf16 in `param`
//   remainder     bf16 `param` and an int16 `remainder`: together the 32 bits of an fp32 master, at
//                 2 bytes less per parameter; `param` is then the master rounded half up.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "te/kernels/device_buffer.h"

namespace ptxbench::te {

enum class GradType : uint8_t { bf16, f32 };

struct OptimizerTensor {
  int64_t count = 0;           // elements
  const void* grad = nullptr;  // GradType
  float* master = nullptr;     // fp32 master, or null with `remainder`
  uint16_t* param = nullptr;   // bf16
  int16_t* remainder = nullptr;
  float* m = nullptr;
  float* v = nullptr;
};

struct AdamW {
  float lr = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f, weight_decay = 0.01f;
  int64_t step = 1;  // t, from 1
};

// The table of all parameters in device memory: made once, used every step.
class OptimizerTensors {
 public:
  // Errors "usage" (names tensor and field; all tensors must be kept in the same way) and "cuda".
  static Result<OptimizerTensors> create(std::span<const OptimizerTensor> tensors, GradType grads);

  // norm[0] = sqrt(sum g^2) over all tensors, factor[0] = min(1, max_norm / (norm + 1e-6)), both in
  // device memory; a norm that is not finite gives a factor of NaN. The same bits every time. One
  // launch.
  Result<void> grad_norm(float max_norm, float* norm, float* factor, cudaStream_t stream);

  // One launch. `factor`: device memory, multiplies every gradient; null: 1. If it is not finite,
  // nothing is changed: a step with NaN gradients is skipped. `lr_step`: device memory, two floats
  // (lr, t) that replace those of `how`, for steps inside a CUDA graph; or null.
  Result<void> adamw(const AdamW& how, const float* factor, const float* lr_step,
                     cudaStream_t stream);

  std::string describe() const;  // "2 tensors, 33554432 parameters, 4096 chunks of 8192"
  int64_t parameters() const { return parameters_; }

 private:
  DeviceBuffer table_, partial_;
  GradType grads_ = GradType::bf16;
  bool remainder_ = false, bf16_copy_ = false;
  int tensors_ = 0, blocks_ = 0;
  int64_t parameters_ = 0, chunks_ = 0;
};

}  // namespace ptxbench::te
