#ifndef PTXBENCH_FFI_EXTRA_C_ENV_API_H_
#define PTXBENCH_FFI_EXTRA_C_ENV_API_H_
#include <tvm/ffi/c_api.h>

typedef void* TVMFFIStreamHandle;

#endif  // PTXBENCH_FFI_EXTRA_C_ENV_API_H_
