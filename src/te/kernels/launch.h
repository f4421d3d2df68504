#pragma once
// What the operations share on the host: the device they run on, and checks of arguments.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace ptxbench::te {

// Multiprocessors of the current device; asked once per device. Error "cuda".
Result<int> multiprocessors();

// Error "cuda": "OPERATION: the runtime's text".
Result<void> launched(const char* operation, cudaError_t status);

// Error "usage" unless both are positive and their product stays below 2^40.
Result<void> check_shape(const char* operation, int64_t rows, int64_t cols);
// Error "usage" naming the operand: a null pointer, or one that does not suit its element size.
Result<void> check_operand(const char* operation, const char* name, const void* pointer,
                           size_t element);

inline bool aligned(const void* pointer, size_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

}  // namespace ptxbench::te
