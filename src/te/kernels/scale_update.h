#pragma once
// The state of delayed scaling in device memory, and its step for all tensors in one launch.
// Semantics: fp8/state.h (`update` there is the same step on the CPU).

#include <cuda_runtime_api.h>

#include "base/result.h"
#include "te/fp8/state.h"
#include "te/kernels/device_buffer.h"

namespace ptxbench::te {

class DeviceScalingState {
 public:
  // Error "cuda".
  static Result<DeviceScalingState> create(const ScalingState& state);

  uint32_t tensors() const { return tensors_; }
  // Of tensor i, for Fp8Target: read by its casts, raised by them.
  const float* scale(uint32_t i) const { return scale_.as<float>() + i; }
  float* amax(uint32_t i) const { return history_.as<float>() + i; }
  // All tensors' amaxes of the step under way, contiguous: the buffer of an all-reduce (maximum).
  float* amaxes() const { return history_.as<float>(); }

  // One launch. `reduced`: [tensors] maxima over all ranks in device memory, or null where amaxes()
  // itself was reduced or there is one rank. Error "cuda".
  Result<void> update(const float* reduced, cudaStream_t stream);

  // Waits for the device. Errors "cuda"; upload: "usage" if the sizes differ.
  Result<ScalingState> download() const;
  Result<void> upload(const ScalingState& state);

 private:
  uint32_t tensors_ = 0, history_len_ = 0;
  AmaxAlgorithm algorithm_ = AmaxAlgorithm::max;
  DeviceBuffer scale_, history_, scaled_max_;
};

}  // namespace ptxbench::te
