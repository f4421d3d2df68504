#pragma once
// One candidate on a real GPU. The emulator finds what silicon hides (at a size it can afford), the
// GPU says whether the values are right there, which instructions ran, and how long it takes
// compared with the frontier library.

#include "bench/evaluate.h"
#include "bench/gpu/timing.h"
#include "device/cuda_device.h"

namespace ptxbench::bench {

struct GpuRequest {
  device::CudaOptions device;
  bool emulate = true;  // before the GPU: at the workload's size up to 2e10 FLOP, else at smoke
  TimingOptions timing;
};

// Errors as evaluate(), and the GPU's own: "no-driver", "no-device", "gpu-lost", "out-of-memory".
Result<Verdict> evaluate_on_gpu(const EvalRequest& request, const GpuRequest& gpu);

}  // namespace ptxbench::bench
