#define TC_VECTOR 32
#include "emu/tensor_core_simd.inc"

const Kernels kKernelsV3 = {"x86-64-v3", f32_kernel, hw_kernel, nullptr};

}  // namespace ptxbench::emu::tensor
