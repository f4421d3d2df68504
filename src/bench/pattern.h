#pragma once
// A guess at why a GEMM's values are wrong, from a few hundred elements.

#include <cstdint>
#include <span>
#include <string>

namespace ptxbench::bench {

// "" if nothing fits. a[m,k], b[n,k], c[m,n] are bf16 bits.
std::string guess_gemm_pattern(std::span<const uint16_t> a, std::span<const uint16_t> b,
                               std::span<const uint16_t> c, int64_t m, int64_t n, int64_t k);

}  // namespace ptxbench::bench
