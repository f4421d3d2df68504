// Two kernels, deterministic: two runs give the same bits.
#include "mha_bwd.cuh"

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, (ptxbench::candidate::run_backward<64, true, true>));
