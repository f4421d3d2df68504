// Every other entry point of the driver: says so and returns CUDA_ERROR_NOT_SUPPORTED. No CUDA
// header here, the names have other prototypes; integer-returning functions ignore their arguments
// in the C ABI.
#include "cudart/lib/backend.h"

#define X(name)                                                      \
  extern "C" __attribute__((weak)) int name() {                      \
    return ptxbench::cudart::ptxbench_backend()->unsupported(#name); \
  }
#include "cudart/lib/driver_names.inc"
#undef X
