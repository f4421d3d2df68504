// Every other entry point of the runtime: says so and returns cudaErrorNotSupported. No CUDA header
// here, the names have other prototypes; integer-returning functions ignore their arguments in the
// C ABI.
#include "cudart/lib/backend.h"

#define X(name)                                                      \
  extern "C" __attribute__((weak)) int name() {                      \
    return ptxbench::cudart::ptxbench_backend()->unsupported(#name); \
  }
#include "cudart/lib/runtime_names.inc"
#undef X
