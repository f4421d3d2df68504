#pragma once
// Bit patterns of the small floating-point formats. From float and double: round to nearest, ties
// to even, in one step (double never goes through float). NaN becomes the canonical quiet NaN that
// the GPU's cvt gives (bf16/f16: 0x7fff, tf32: 0x7fffffff, e4m3: 0x7f, e5m2: 0x7f).
//
// Overflow: bf16, f16 and tf32 go to infinity. e4m3 (no infinities; S.1111.111 is NaN) and e5m2
// come in the two flavours of the field: `satfinite` clamps to +-448 / +-57344, infinities too;
// without it the result is NaN for e4m3 and infinity for e5m2.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ptxbench::numeric {

// ---- inline: bulk loops depend on these being visible to the vectoriser ----

inline float bf16_to_float(uint16_t v) { return std::bit_cast<float>(uint32_t{v} << 16); }

inline uint16_t bf16_from_float(float v) {
  uint32_t u = std::bit_cast<uint32_t>(v);
  uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
}

inline float f16_to_float(uint16_t v) {
  uint32_t sign = uint32_t{v & 0x8000u} << 16;
  uint32_t magnitude = v & 0x7fffu;
  // Exponent re-biased by a multiplication, which also normalises subnormals; exact.
  float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  uint32_t special = std::bit_cast<uint32_t>(scaled) | 0x7f800000u;
  uint32_t bits = magnitude >= 0x7c00u ? special : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(bits | sign);
}

uint16_t f16_from_float(float v);
uint16_t bf16_from_double(double v);
uint16_t f16_from_double(double v);

// tf32 is a float whose low 13 bits are zero. `nearest_even` is cvt.rn.tf32; cvt.rna rounds ties
// away.
uint32_t tf32_from_float(float v);
uint32_t tf32_from_float_rna(float v);
inline float tf32_to_float(uint32_t v) { return std::bit_cast<float>(v); }

float e4m3_to_float(uint8_t v);
float e5m2_to_float(uint8_t v);
uint8_t e4m3_from_float(float v, bool satfinite = true);
uint8_t e5m2_from_float(float v, bool satfinite = true);
uint8_t e4m3_from_double(double v, bool satfinite = true);
uint8_t e5m2_from_double(double v, bool satfinite = true);

float float_from_double(double v);  // the hardware's conversion, here for symmetry

// ---- bulk; both spans have the same length (asserted) ----

void bf16_to_float(std::span<const uint16_t> from, std::span<float> to);
void bf16_from_float(std::span<const float> from, std::span<uint16_t> to);
void f16_to_float(std::span<const uint16_t> from, std::span<float> to);
void f16_from_float(std::span<const float> from, std::span<uint16_t> to);
void e4m3_to_float(std::span<const uint8_t> from, std::span<float> to);
void e4m3_from_float(std::span<const float> from, std::span<uint8_t> to, bool satfinite = true);
void e5m2_to_float(std::span<const uint8_t> from, std::span<float> to);
void e5m2_from_float(std::span<const float> from, std::span<uint8_t> to, bool satfinite = true);

}  // namespace ptxbench::numeric
