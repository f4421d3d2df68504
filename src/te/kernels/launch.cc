#include "te/kernels/launch.h"

#include <fmt/format.h>

#include <atomic>

namespace ptxbench::te {

Result<int> multiprocessors() {
  constexpr int kDevices = 64;
  static std::atomic<int> known[kDevices];
  int device = 0, count = 0;
  PB_RETURN_IF_ERROR(launched("cudaGetDevice", cudaGetDevice(&device)));
  if (device < kDevices && (count = known[device].load(std::memory_order_relaxed)) > 0)
    return count;
  PB_RETURN_IF_ERROR(
      launched("multiprocessor count",
               cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device)));
  if (device < kDevices) known[device].store(count, std::memory_order_relaxed);
  return count;
}

Result<void> launched(const char* operation, cudaError_t status) {
  if (status == cudaSuccess) return {};
  return Error{"cuda", fmt::format("{}: {}", operation, cudaGetErrorString(status))};
}

Result<void> check_shape(const char* operation, int64_t rows, int64_t cols) {
  constexpr int64_t kMost = int64_t{1} << 40;
  if (rows < 1 || cols < 1)
    return Error{"usage", fmt::format("{}: the tensor is empty ({} x {})", operation, rows, cols)};
  if (rows > kMost / cols)
    return Error{"usage",
                 fmt::format("{}: {} x {} elements are more than 2^40", operation, rows, cols)};
  return {};
}

Result<void> check_operand(const char* operation, const char* name, const void* pointer,
                           size_t element) {
  if (pointer == nullptr)
    return Error{"usage", fmt::format("{}: {} is a null pointer", operation, name)};
  if (!aligned(pointer, element))
    return Error{"usage", fmt::format("{}: {} is not aligned to its {}-byte elements", operation,
                                      name, element)};
  return {};
}

}  // namespace ptxbench::te
