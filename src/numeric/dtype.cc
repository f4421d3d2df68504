#include "numeric/dtype.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "numeric/float_formats.h"

namespace ptxbench::numeric {

namespace {

struct Info {
  DType type;
  std::string_view name;
  uint8_t size;
  uint8_t significant_bits;
};

constexpr std::array<Info, 15> kInfo{{
    {DType::float64, "float64", 8, 53},
    {DType::float32, "float32", 4, 24},
    {DType::float16, "float16", 2, 11},
    {DType::bfloat16, "bfloat16", 2, 8},
    {DType::float8_e4m3fn, "float8_e4m3fn", 1, 4},
    {DType::float8_e5m2, "float8_e5m2", 1, 3},
    {DType::int64, "int64", 8, 0},
    {DType::int32, "int32", 4, 0},
    {DType::int16, "int16", 2, 0},
    {DType::int8, "int8", 1, 0},
    {DType::uint64, "uint64", 8, 0},
    {DType::uint32, "uint32", 4, 0},
    {DType::uint16, "uint16", 2, 0},
    {DType::uint8, "uint8", 1, 0},
    {DType::boolean, "bool", 1, 0},
}};

const Info& info(DType type) { return kInfo[static_cast<size_t>(type)]; }

template <class T>
T get(const void* bytes) {
  T v;
  std::memcpy(&v, bytes, sizeof v);
  return v;
}

template <class T>
void put(void* bytes, T v) {
  std::memcpy(bytes, &v, sizeof v);
}

template <class T>
T clamp_to(double v) {
  if (std::isnan(v)) return 0;
  // The bounds as doubles may round up to 2^63 or 2^64, which is why >= decides.
  if (v >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (v <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(v);
}

// Calls f with a loader of type double(const uint8_t*), once, so that the loop over elements is
// tight.
template <class F>
void with_loader(DType type, F f) {
  switch (type) {
    case DType::float64:
      return f([](const uint8_t* p) { return get<double>(p); });
    case DType::float32:
      return f([](const uint8_t* p) { return get<float>(p); });
    case DType::float16:
      return f([](const uint8_t* p) { return f16_to_float(get<uint16_t>(p)); });
    case DType::bfloat16:
      return f([](const uint8_t* p) { return bf16_to_float(get<uint16_t>(p)); });
    case DType::float8_e4m3fn:
      return f([](const uint8_t* p) { return e4m3_to_float(*p); });
    case DType::float8_e5m2:
      return f([](const uint8_t* p) { return e5m2_to_float(*p); });
    case DType::int64:
      return f([](const uint8_t* p) { return get<int64_t>(p); });
    case DType::int32:
      return f([](const uint8_t* p) { return get<int32_t>(p); });
    case DType::int16:
      return f([](const uint8_t* p) { return get<int16_t>(p); });
    case DType::int8:
      return f([](const uint8_t* p) { return get<int8_t>(p); });
    case DType::uint64:
      return f([](const uint8_t* p) { return get<uint64_t>(p); });
    case DType::uint32:
      return f([](const uint8_t* p) { return get<uint32_t>(p); });
    case DType::uint16:
      return f([](const uint8_t* p) { return get<uint16_t>(p); });
    case DType::uint8:
      return f([](const uint8_t* p) { return *p; });
    case DType::boolean:
      return f([](const uint8_t* p) { return *p != 0; });
  }
}

template <class To>
void load_all(DType type, const void* bytes, std::span<To> values) {
  const uint8_t* p = static_cast<const uint8_t*>(bytes);
  size_t step = dtype_size(type);
  with_loader(type, [&](auto load) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<To>(load(p + i * step));
  });
}

}  // namespace

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Info& i : kInfo)
    if (i.name == name) return i.type;
  return std::nullopt;
}

std::string_view dtype_name(DType type) { return info(type).name; }
size_t dtype_size(DType type) { return info(type).size; }
bool is_floating(DType type) { return info(type).significant_bits > 0; }
int significant_bits(DType type) { return info(type).significant_bits; }

double load_element(DType type, const void* bytes) {
  double value = 0;
  load_all(type, bytes, std::span<double>(&value, 1));
  return value;
}

void store_element(DType type, double value, void* bytes) {
  switch (type) {
    case DType::float64:
      return put(bytes, value);
    case DType::float32:
      return put(bytes, static_cast<float>(value));
    case DType::float16:
      return put(bytes, f16_from_double(value));
    case DType::bfloat16:
      return put(bytes, bf16_from_double(value));
    case DType::float8_e4m3fn:
      return put(bytes, e4m3_from_double(value));
    case DType::float8_e5m2:
      return put(bytes, e5m2_from_double(value));
    case DType::int64:
      return put(bytes, clamp_to<int64_t>(value));
    case DType::int32:
      return put(bytes, clamp_to<int32_t>(value));
    case DType::int16:
      return put(bytes, clamp_to<int16_t>(value));
    case DType::int8:
      return put(bytes, clamp_to<int8_t>(value));
    case DType::uint64:
      return put(bytes, clamp_to<uint64_t>(value));
    case DType::uint32:
      return put(bytes, clamp_to<uint32_t>(value));
    case DType::uint16:
      return put(bytes, clamp_to<uint16_t>(value));
    case DType::uint8:
      return put(bytes, clamp_to<uint8_t>(value));
    case DType::boolean:
      return put(bytes, uint8_t{value != 0});
  }
}

double round_to(DType type, double value) {
  uint8_t bytes[8];
  store_element(type, value, bytes);
  return load_element(type, bytes);
}

void load_elements(DType type, const void* bytes, std::span<double> values) {
  load_all(type, bytes, values);
}

void load_elements(DType type, const void* bytes, std::span<float> values) {
  load_all(type, bytes, values);
}

void store_elements(DType type, std::span<const float> values, void* bytes) {
  if (type == DType::bfloat16 || type == DType::float16) {
    std::span<uint16_t> to(static_cast<uint16_t*>(bytes), values.size());
    return type == DType::bfloat16 ? bf16_from_float(values, to) : f16_from_float(values, to);
  }
  uint8_t* p = static_cast<uint8_t*>(bytes);
  for (float v : values) {
    store_element(type, v, p);
    p += dtype_size(type);
  }
}

}  // namespace ptxbench::numeric
