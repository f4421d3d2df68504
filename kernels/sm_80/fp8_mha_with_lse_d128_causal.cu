#include "fp8_mha_with_lse.cuh"

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, (ptxbench::candidate::run_fp8_forward<128, true>));
