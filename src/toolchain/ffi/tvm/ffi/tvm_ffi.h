#ifndef PTXBENCH_FFI_TVM_FFI_H_
#define PTXBENCH_FFI_TVM_FFI_H_
#include <tvm/ffi/function.h>
#endif  // PTXBENCH_FFI_TVM_FFI_H_
