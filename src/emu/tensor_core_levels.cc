#include "emu/tensor_core_kernels.h"

namespace ptxbench::emu::tensor {

const Levels& levels() {
  static const Levels found = [] {
    Levels l{{&kKernelsV2}, 1};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("f16c"))
      l.level[l.count++] = &kKernelsV3;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd")) {
      l.level[l.count++] = &kKernelsV4;
      if (__builtin_cpu_supports("avx512bf16")) l.level[l.count++] = &kKernelsBf16;
    }
    return l;
  }();
  return found;
}

}  // namespace ptxbench::emu::tensor
