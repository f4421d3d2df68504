#define TC_VECTOR 64
#include "emu/tensor_core_simd.inc"

const Kernels kKernelsV4 = {"x86-64-v4", f32_kernel, hw_kernel, nullptr};

}  // namespace ptxbench::emu::tensor
