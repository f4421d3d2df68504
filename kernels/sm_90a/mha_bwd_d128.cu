#include "mha_bwd.cuh"

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, (ptxbench::candidate::run_backward<128, false>));
