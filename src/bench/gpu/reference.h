#pragma once
// The fp64 references of GEMMs on a device: plans of this project's own kernels, replayed in a
// process that has never seen the candidate.

#include <memory>
#include <span>

#include "bench/oracle.h"
#include "device/device.h"

namespace ptxbench::bench {

// The result in `c`, m x n, row-major. Errors: the device's.
Result<void> gemm_fp64_on(device::Device& device, std::span<const uint16_t> a,
                          std::span<const uint16_t> b, int64_t m, int64_t n, int64_t k,
                          std::span<double> c);

// The same for the block-scaled FP8 GEMM of bench/op/fp8_gemm_math.h: e4m3 [m,k], [n,k], scales
// [m,k/128], [n/scale_b_rows rounded up,k/128]. `d` and `noise`: m x n; `rounding`: relative
// variance of rounding to the output's type.
struct Fp8GemmOnDevice {
  int64_t m = 0, n = 0, k = 0, scale_b_rows = 128;
  std::span<const uint8_t> a, b;
  std::span<const float> scale_a, scale_b;
  double rounding = 0;
};
Result<void> fp8_gemm_fp64_on(device::Device& device, const Fp8GemmOnDevice& gemm,
                              std::span<double> d, std::span<double> noise);

// While it lives, references are computed on the device instead of the CPU. For the
// whole process; one at a time.
class ReferenceOnDevice {
 public:
  explicit ReferenceOnDevice(device::Device& device);
  ~ReferenceOnDevice();
  ReferenceOnDevice(const ReferenceOnDevice&) = delete;
  ReferenceOnDevice& operator=(const ReferenceOnDevice&) = delete;
  static device::Device* current();  // null: the CPU
};

}  // namespace ptxbench::bench
