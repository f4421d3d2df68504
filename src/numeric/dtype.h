#pragma once
// Element types under the names of FlashInfer Trace ("bfloat16", "float8_e4m3fn", ...).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ptxbench::numeric {

enum class DType : uint8_t {
  float64,
  float32,
  float16,
  bfloat16,
  float8_e4m3fn,
  float8_e5m2,
  int64,
  int32,
  int16,
  int8,
  uint64,
  uint32,
  uint16,
  uint8,
  boolean,
};

std::optional<DType> dtype_from_name(std::string_view name);  // nullopt: unknown
std::string_view dtype_name(DType type);
size_t dtype_size(DType type);  // bytes
bool is_floating(DType type);
// Significant bits including the hidden one (bfloat16: 8); 0 for integers.
int significant_bits(DType type);

// One element at `bytes` (no alignment needed). 64-bit integers lose bits above 2^53.
double load_element(DType type, const void* bytes);
// Rounds to nearest even; float8 saturates; integers truncate towards zero and clamp, NaN gives 0.
void store_element(DType type, double value, void* bytes);
// Rounds like store_element and gives the value back.
double round_to(DType type, double value);

// Whole arrays; `values.size()` elements.
void load_elements(DType type, const void* bytes, std::span<double> values);
void load_elements(DType type, const void* bytes, std::span<float> values);
void store_elements(DType type, std::span<const float> values, void* bytes);

}  // namespace ptxbench::numeric
