#pragma once
// The fp64 reference of a GEMM on a device: a plan of this project's own kernel, replayed in a
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

// While it lives, gemm_fp64 computes on the device instead of the CPU. For the whole process; one
// at a time.
class ReferenceOnDevice {
 public:
  explicit ReferenceOnDevice(device::Device& device);
  ~ReferenceOnDevice();
  ReferenceOnDevice(const ReferenceOnDevice&) = delete;
  ReferenceOnDevice& operator=(const ReferenceOnDevice&) = delete;
  static device::Device* current();  // null: the CPU
};

}  // namespace ptxbench::bench
