// Golden encodings (round to nearest even, saturating), and every pattern there and back.
#include "te/fp8/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ptxbench::te {
namespace {

TEST(Fp8Format, E4m3GoldenEncodings) {
  const struct {
    float value;
    uint8_t bits;
  } cases[] = {{0x1p-10f, 0x00},  // a tie, to even
               {0x1.8p-10f, 0x01},
               {0x1p-9f, 0x01},
               {0.0146484375f, 0x08},  // rounds up into the normal numbers
               {1.0625f, 0x38},
               {1.1875f, 0x3a},
               {17, 0x58},
               {19, 0x5a},
               {448, 0x7e},
               {464, 0x7e},
               {1e9f, 0x7e},
               {-1e9f, 0xfe},
               {-0.0f, 0x80}};
  for (const auto& c : cases) EXPECT_EQ(fp8_encode(Fp8Format::e4m3, c.value), c.bits) << c.value;
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(fp8_encode(Fp8Format::e4m3, inf), 0x7e);
  EXPECT_EQ(fp8_encode(Fp8Format::e4m3, -inf), 0xfe);
  EXPECT_EQ(fp8_encode(Fp8Format::e4m3, NAN) & 0x7f, 0x7f);
}

TEST(Fp8Format, E5m2Limits) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(fp8_encode(Fp8Format::e5m2, 57344), 0x7b);
  EXPECT_EQ(fp8_encode(Fp8Format::e5m2, 1e9f), 0x7b);
  EXPECT_EQ(fp8_encode(Fp8Format::e5m2, -inf), 0xfb);
  EXPECT_EQ(fp8_encode(Fp8Format::e5m2, 0x1p-17f), 0x00);  // a tie, to even
  EXPECT_EQ(fp8_encode(Fp8Format::e5m2, 0x1.8p-17f), 0x01);
  EXPECT_EQ(fp8_encode(Fp8Format::e5m2, -0.0f), 0x80);
  EXPECT_TRUE(std::isnan(fp8_decode(Fp8Format::e5m2, fp8_encode(Fp8Format::e5m2, NAN))));
}

TEST(Fp8Format, EveryFinitePatternComesBack) {
  int finite = 0;
  for (Fp8Format f : {Fp8Format::e4m3, Fp8Format::e5m2})
    for (int bits = 0; bits < 256; ++bits) {
      const float value = fp8_decode(f, static_cast<uint8_t>(bits));
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(fp8_encode(f, value), bits) << fp8_name(f);
      EXPECT_LE(std::fabs(value), fp8_max(f));
      ++finite;
    }
  EXPECT_EQ(finite, 254 + 248);
}

}  // namespace
}  // namespace ptxbench::te
