// The kernel without a warpgroup that only copies.
#include "fp8_gemm_nt.cuh"

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, (ptxbench::candidate::run_gemm<false, false>));
