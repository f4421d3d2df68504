// The kernel without a warpgroup that only copies.
#include "mha_with_lse.cuh"

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, (ptxbench::candidate::run_forward<256, false, false>));
