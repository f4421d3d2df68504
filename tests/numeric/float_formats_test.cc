#include "numeric/float_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "numeric/dtype.h"
#include "numeric/random.h"

namespace ptxbench::numeric {
namespace {

// An independent oracle: all finite values of a format in a sorted list; rounding by search.
struct Oracle {
  std::vector<double> values;  // non-negative, ascending; index = bit pattern
  double limit;                // at and above this a value overflows
  uint32_t overflow, nan, sign;

  uint32_t round(double v) const {
    if (std::isnan(v)) return nan;
    uint32_t s = std::signbit(v) ? sign : 0;
    double a = std::fabs(v);
    if (a >= limit) return s | overflow;
    if (a >= values.back()) return s | static_cast<uint32_t>(values.size() - 1);
    size_t above = std::upper_bound(values.begin(), values.end(), a) - values.begin();
    double low = a - values[above - 1], high = values[above] - a;
    size_t nearest = low < high || (low == high && above % 2 == 1) ? above - 1 : above;
    return s | static_cast<uint32_t>(nearest);
  }
};

// Values computed from the definition of the format, not through the code under test.
Oracle make_oracle(int exponent_bits, int fraction_bits, uint32_t finite, uint32_t overflow,
                   uint32_t nan) {
  Oracle o;
  int bias = (1 << (exponent_bits - 1)) - 1;
  auto value = [&](uint32_t pattern) {
    int e = static_cast<int>(pattern >> fraction_bits);
    double f =
        std::ldexp(static_cast<double>(pattern & ((1u << fraction_bits) - 1)), -fraction_bits);
    return e == 0 ? std::ldexp(f, 1 - bias) : std::ldexp(1 + f, e - bias);
  };
  for (uint32_t p = 0; p <= finite; ++p) o.values.push_back(value(p));
  // Half-way to what would be the next value; a tie goes up because the largest pattern is odd or
  // the next would be even. e4m3's largest pattern (0x7e) is even: its tie stays.
  double half = (value(finite + 1) - value(finite)) / 2 + value(finite);
  o.limit = finite % 2 == 1 ? half : std::nextafter(half, 1e300);
  o.overflow = overflow;
  o.nan = nan;
  o.sign = 1u << (exponent_bits + fraction_bits);
  return o;
}

const Oracle kBf16 = make_oracle(8, 7, 0x7f7f, 0x7f80, 0x7fff);
const Oracle kF16 = make_oracle(5, 10, 0x7bff, 0x7c00, 0x7fff);
const Oracle kE4m3 = make_oracle(4, 3, 0x7e, 0x7f, 0x7f);
const Oracle kE4m3Sat = make_oracle(4, 3, 0x7e, 0x7e, 0x7f);
const Oracle kE5m2 = make_oracle(5, 2, 0x7b, 0x7c, 0x7f);
const Oracle kE5m2Sat = make_oracle(5, 2, 0x7b, 0x7b, 0x7f);

// Every value of the format, every midpoint, and the neighbours of both.
std::vector<double> probes(const Oracle& o) {
  std::vector<double> list{0.0, 1e300, 1e-300, o.limit, INFINITY, NAN};
  auto around = [&](double v) {
    list.insert(list.end(), {v, std::nextafter(v, 1e300), std::nextafter(v, -1e300)});
    float f = static_cast<float>(v);
    list.insert(list.end(), {std::nextafter(f, 1e30f), std::nextafter(f, -1e30f)});
  };
  around(o.limit);
  for (size_t i = 0; i < o.values.size(); ++i) {
    around(o.values[i]);
    if (i + 1 < o.values.size()) around((o.values[i] + o.values[i + 1]) / 2);
  }
  size_t n = list.size();
  for (size_t i = 0; i < n; ++i) list.push_back(-list[i]);
  return list;
}

template <class FromFloat, class FromDouble>
void check(const Oracle& o, FromFloat from_float, FromDouble from_double) {
  size_t checked = 0;
  for (double v : probes(o)) {
    ASSERT_EQ(from_double(v), o.round(v)) << v;
    if (static_cast<double>(static_cast<float>(v)) == v || std::isnan(v)) {
      ASSERT_EQ(from_float(static_cast<float>(v)), o.round(v)) << v;
      ++checked;
    }
  }
  ASSERT_GT(checked, o.values.size());
  Random random({1, 2});
  for (uint64_t i = 0; i < 300'000; ++i) {  // any pattern of a float
    float v = std::bit_cast<float>(random.word(i));
    ASSERT_EQ(from_float(v), o.round(v)) << v;
    ASSERT_EQ(from_double(v), o.round(v)) << v;
  }
}

TEST(FloatFormats, RoundingBf16) {
  check(
      kBf16, [](float v) { return bf16_from_float(v); }, bf16_from_double);
}
TEST(FloatFormats, RoundingF16) {
  check(
      kF16, [](float v) { return f16_from_float(v); }, f16_from_double);
}
TEST(FloatFormats, RoundingE4m3) {
  check(
      kE4m3Sat, [](float v) { return e4m3_from_float(v); },
      [](double v) { return e4m3_from_double(v); });
  check(
      kE4m3, [](float v) { return e4m3_from_float(v, false); },
      [](double v) { return e4m3_from_double(v, false); });
}
TEST(FloatFormats, RoundingE5m2) {
  check(
      kE5m2Sat, [](float v) { return e5m2_from_float(v); },
      [](double v) { return e5m2_from_double(v); });
  check(
      kE5m2, [](float v) { return e5m2_from_float(v, false); },
      [](double v) { return e5m2_from_double(v, false); });
}

template <class Bits, class ToFloat>
void check_decode(const Oracle& o, uint32_t infinity, ToFloat to_float) {
  for (uint32_t p = 0; p < 2 * o.sign; ++p) {
    uint32_t magnitude = p & (o.sign - 1);
    float v = to_float(static_cast<Bits>(p));
    if (magnitude < o.values.size()) {
      ASSERT_EQ(std::fabs(v), o.values[magnitude]) << p;
      ASSERT_EQ(std::signbit(v), p >= o.sign) << p;
    } else if (magnitude == infinity) {
      ASSERT_EQ(v, p >= o.sign ? -INFINITY : INFINITY) << p;
    } else {
      ASSERT_TRUE(std::isnan(v)) << p;
    }
  }
}

TEST(FloatFormats, DecodingIsExactForEveryPattern) {
  check_decode<uint16_t>(kBf16, 0x7f80, [](uint16_t v) { return bf16_to_float(v); });
  check_decode<uint16_t>(kF16, 0x7c00, [](uint16_t v) { return f16_to_float(v); });
  check_decode<uint8_t>(kE4m3, ~0u, [](uint8_t v) { return e4m3_to_float(v); });
  check_decode<uint8_t>(kE5m2, 0x7c, [](uint8_t v) { return e5m2_to_float(v); });
}

TEST(FloatFormats, DoubleIsNotRoundedTwice) {
  double v = 1 + 0x1p-8 + 0x1p-40;  // as a float: a tie that would go to 1
  EXPECT_EQ(bf16_from_double(v), 0x3f81);
  EXPECT_EQ(bf16_from_float(static_cast<float>(v)), 0x3f80);
}

TEST(FloatFormats, Tf32) {
  EXPECT_EQ(tf32_from_float(1.0f), 0x3f800000u);
  float tie = std::bit_cast<float>(0x3f801000u);
  EXPECT_EQ(tf32_from_float(tie), 0x3f800000u);
  EXPECT_EQ(tf32_from_float_rna(tie), 0x3f802000u);
  EXPECT_EQ(tf32_from_float(std::bit_cast<float>(0x3f803000u)), 0x3f804000u);
  EXPECT_EQ(tf32_from_float(INFINITY), 0x7f800000u);
  EXPECT_EQ(tf32_from_float(std::bit_cast<float>(0x7f7fffffu)), 0x7f800000u);
  EXPECT_EQ(tf32_from_float(-0.0f), 0x80000000u);
  EXPECT_EQ(tf32_from_float(NAN), 0x7fffffffu);
}

TEST(FloatFormats, BulkEqualsScalar) {
  constexpr size_t kCount = 1003;
  std::vector<uint32_t> words(kCount);
  Random({3, 4}).fill_words(0, words);
  std::vector<float> floats(kCount), back(kCount);
  for (size_t i = 0; i < kCount; ++i)
    floats[i] = std::bit_cast<float>((words[i] & 0x87ffffffu) | 0x38000000u);
  floats[7] = NAN;
  floats[8] = INFINITY;
  std::vector<uint16_t> half(kCount);
  std::vector<uint8_t> eight(kCount);
  auto same = [](float a, float b) {
    return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
  };
  bf16_from_float(floats, half);
  bf16_to_float(half, back);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(half[i], bf16_from_float(floats[i]));
    ASSERT_TRUE(same(back[i], bf16_to_float(half[i])));
  }
  f16_from_float(floats, half);
  f16_to_float(half, back);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(half[i], f16_from_float(floats[i]));
    ASSERT_TRUE(same(back[i], f16_to_float(half[i])));
  }
  e4m3_from_float(floats, eight);
  e4m3_to_float(eight, back);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(eight[i], e4m3_from_float(floats[i]));
    ASSERT_TRUE(same(back[i], e4m3_to_float(eight[i])));
  }
  e5m2_from_float(floats, eight, false);
  e5m2_to_float(eight, back);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(eight[i], e5m2_from_float(floats[i], false));
    ASSERT_TRUE(same(back[i], e5m2_to_float(eight[i])));
  }
}

TEST(DType, NamesSizesAndRoundTrip) {
  for (const char* name :
       {"float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64",
        "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"}) {
    auto type = dtype_from_name(name);
    ASSERT_TRUE(type.has_value()) << name;
    EXPECT_EQ(dtype_name(*type), name);
    uint8_t bytes[8] = {};
    store_element(*type, 1.0, bytes);
    EXPECT_EQ(load_element(*type, bytes), 1.0) << name;
  }
  EXPECT_FALSE(dtype_from_name("float7").has_value());
  EXPECT_EQ(dtype_size(DType::bfloat16), 2u);
  EXPECT_EQ(significant_bits(DType::float16), 11);
  EXPECT_FALSE(is_floating(DType::int8));
}

TEST(DType, IntegersClamp) {
  EXPECT_EQ(round_to(DType::int8, 1000), 127);
  EXPECT_EQ(round_to(DType::int8, -1000), -128);
  EXPECT_EQ(round_to(DType::uint8, -3), 0);
  EXPECT_EQ(round_to(DType::int32, -2.9), -2);
  EXPECT_EQ(round_to(DType::int32, NAN), 0);
  EXPECT_EQ(round_to(DType::int64, 1e300), 0x1p63);
  EXPECT_EQ(round_to(DType::boolean, 0.5), 1);
}

}  // namespace
}  // namespace ptxbench::numeric
