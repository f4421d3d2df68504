#define TC_VECTOR 64
#define TC_DOT
#include "emu/tensor_core_simd.inc"

const Kernels kKernelsBf16 = {"x86-64-v4 with bf16", f32_kernel, hw_kernel, dot_kernel};

}  // namespace ptxbench::emu::tensor
