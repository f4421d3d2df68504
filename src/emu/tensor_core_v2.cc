#define TC_VECTOR 16
#include "emu/tensor_core_simd.inc"

const Kernels kKernelsV2 = {"x86-64-v2", f32_kernel, hw_kernel, nullptr};

}  // namespace ptxbench::emu::tensor
