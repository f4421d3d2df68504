#pragma once
// Inputs and digest shared by gemm_bits.cu (a GPU) and bench/emu/gemm_bits.cc (the emulator): equal
// digests mean that every bit of C is equal.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptxbench::bits {

struct Shape {
  int m, n, k;
};
inline constexpr Shape kShapes[] = {{200, 1024, 832}, {70, 512, 2048}, {93, 128, 2048}};

// bf16 with random sign and fraction and an exponent between 2^-12 and 2^12, so that products of
// very different size meet in one sum; one in 61 is subnormal, one in 97 zero.
inline uint16_t element(uint64_t index, uint64_t stream) {
  uint64_t z = index + stream * 0x9E3779B97F4A7C15ull + 0x632BE59BD9B4E019ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  const uint16_t sign = static_cast<uint16_t>(z >> 48 & 0x8000), fraction = z & 0x7f;
  if (z % 97 == 0) return sign;
  if (z % 61 == 0) return static_cast<uint16_t>(sign | fraction);
  const uint16_t exponent = static_cast<uint16_t>(115 + (z >> 8) % 25);
  return static_cast<uint16_t>(sign | exponent << 7 | fraction);
}

inline std::vector<uint16_t> matrix(size_t elements, uint64_t stream) {
  std::vector<uint16_t> v(elements);
  for (size_t i = 0; i < elements; i++) v[i] = element(i, stream);
  return v;
}

// FNV-1a over the bytes of C.
inline uint64_t digest(const std::vector<uint16_t>& c) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (uint16_t v : c)
    for (int shift : {0, 8}) h = (h ^ (v >> shift & 0xff)) * 0x100000001b3ull;
  return h;
}

}  // namespace ptxbench::bits
