// What recordings can't show: partial masks, destinations that are sources, and forms outside the
// recorded groups against plain C++.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "emu/hw_vectors.h"
#include "emu/scalar_machine.h"

namespace ptxbench::emu {
namespace {

using testing::ScalarMachine;

class ScalarLanes : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() >= scalar::available_levels().count)
      GTEST_SKIP() << "this CPU has no such level";
  }
  const scalar::Level& level() { return scalar::available_levels().level[GetParam()]; }

  // Fills the 64-bit words of a register's lanes with noise; many repeat, so that comparisons are
  // often equal.
  void randomize(ScalarMachine& m, const std::string& name, size_t bytes) {
    for (size_t i = 0; i < 32 * bytes; ++i)
      m.lanes<uint8_t>(name)[i] = static_cast<uint8_t>(random_() % 5 ? random_() : 0x7f);
  }
  std::mt19937 random_{20261130};
};

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// A recorded form as a body with registers %out, %in1...
std::string body(const hw::Group& g, const hw::Json& form, size_t& out_bytes,
                 std::vector<size_t>& in_bytes) {
  out_bytes = g.array(form.at("out")).element_bytes();
  std::string text = replace_all(form.at("ptx"), "%0", "%out");
  std::string declarations = ".reg .b" + std::to_string(8 * out_bytes) + " %out;\n";
  for (size_t k = 0; k < form.at("inputs").size(); ++k) {
    const std::string name = "%in" + std::to_string(k + 1);
    in_bytes.push_back(g.input(form.at("inputs")[k]).element_bytes());
    declarations += ".reg .b" + std::to_string(8 * in_bytes.back()) + " " + name + ";\n";
    text = replace_all(text, "%" + std::to_string(k + 1), name);
  }
  return declarations + "{ " + text + " }";
}

// Every form under a random mask: active lanes as in a full warp, the others untouched.
TEST_P(ScalarLanes, InactiveLanesKeepTheirValue) {
  size_t forms = 0;
  for (const char* group : {"exact", "cvt", "approx"}) {
    const hw::Group& g = hw::group(group);
    for (const hw::Json& form : g.cases()) {
      size_t bytes = 0;
      std::vector<size_t> in_bytes;
      const std::string text = body(g, form, bytes, in_bytes);
      ScalarMachine m(text, level());
      ASSERT_EQ(m.error(), "");
      for (size_t k = 0; k < in_bytes.size(); ++k)
        randomize(m, "%in" + std::to_string(k + 1), in_bytes[k]);
      uint8_t* out = m.lanes<uint8_t>("%out");
      m.run();
      std::vector<uint8_t> full(out, out + 32 * bytes);
      std::memset(out, 0xa5, 32 * bytes);
      const uint32_t mask = (random_() & random_()) | 1u << (random_() % 32);
      m.run(mask);
      for (size_t i = 0; i < 32 * bytes; ++i) {
        const uint8_t want = mask >> (i / bytes) & 1 ? full[i] : 0xa5;
        ASSERT_EQ(out[i], want) << text << " byte " << i << " mask " << mask;
      }
      ++forms;
    }
  }
  EXPECT_EQ(forms, 1561u);
}

// Every one-instruction form with its destination in the slot of a source.
TEST_P(ScalarLanes, DestinationMayBeASource) {
  size_t checked = 0;
  for (const char* group : {"exact", "cvt", "approx"}) {
    const hw::Group& g = hw::group(group);
    for (const hw::Json& form : g.cases()) {
      size_t bytes = 0;
      std::vector<size_t> in_bytes;
      const std::string text = body(g, form, bytes, in_bytes);
      ScalarMachine m(text, level());
      ASSERT_EQ(m.error(), "");
      if (m.code().size() != 1) continue;
      for (size_t k = 0; k < in_bytes.size(); ++k) {
        if (in_bytes[k] != bytes) continue;
        const std::string name = "%in" + std::to_string(k + 1);
        for (size_t j = 0; j < in_bytes.size(); ++j)
          randomize(m, "%in" + std::to_string(j + 1), in_bytes[j]);
        m.run();
        const uint8_t* out = m.lanes<uint8_t>("%out");
        std::vector<uint8_t> want(out, out + 32 * bytes);
        const Slot own = m.code()[0].operand[0];
        m.code()[0].operand[0] = static_cast<Slot>(m.code()[0].operand[1 + k]);
        m.run();
        m.code()[0].operand[0] = own;
        ASSERT_EQ(std::memcmp(m.lanes<uint8_t>(name), want.data(), want.size()), 0)
            << text << " " << name;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 1000u);
}

// ------------------------------------------------------------------------ forms beyond the
// recording
TEST_P(ScalarLanes, MovesPackAndUnpack) {
  ScalarMachine m(
      ".reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .b128 %q;\n"
      "mov.b32 {%h1, %h2}, %r1;\nmov.b32 %r2, {%h2, %h1};\nmov.b64 {%r3, _}, %d1;\nmov.b64 {_, "
      "%r4}, %d1;\n"
      "mov.b64 %d2, {%r4, %r3};\nmov.b64 %d3, {%h1, %h2, %h1, %h2};\nmov.b128 %q, {%d1, %d2};\n"
      "mov.b128 {%d4, %d5}, %q;\nmov.b64 %d6, {%r1, 7};\nmov.u32 %r5, -3;\nmov.b32 %r6, %r5;",
      level());
  ASSERT_EQ(m.error(), "");
  randomize(m, "%r1", 4);
  randomize(m, "%d1", 8);
  m.run();
  for (int i = 0; i < 32; ++i) {
    const uint32_t r1 = m.lanes<uint32_t>("%r1")[i];
    const uint64_t d1 = m.lanes<uint64_t>("%d1")[i], swapped = d1 >> 32 | d1 << 32;
    EXPECT_EQ(m.lanes<uint16_t>("%h1")[i], r1 & 0xffff);
    EXPECT_EQ(m.lanes<uint32_t>("%r2")[i], r1 << 16 | r1 >> 16);
    EXPECT_EQ(m.lanes<uint64_t>("%d2")[i], swapped);
    EXPECT_EQ(m.lanes<uint64_t>("%d3")[i], uint64_t{r1} << 32 | r1);
    EXPECT_EQ(m.lanes<uint64_t>("%d4")[i], d1);
    EXPECT_EQ(m.lanes<uint64_t>("%d5")[i], swapped);
    EXPECT_EQ(m.lanes<uint64_t>("%d6")[i], uint64_t{7} << 32 | r1);
    EXPECT_EQ(m.lanes<uint32_t>("%r6")[i], 0xfffffffdu);
  }
}

TEST_P(ScalarLanes, PredicatesCombine) {
  ScalarMachine m(
      ".reg .pred %p<9>; .reg .b32 %r<5>; .reg .f32 %f<3>;\n"
      "setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p0;\nsetp.ge.or.f32 %p3, %f1, %f2, %p0;\n"
      "setp.ne.xor.u32 %p4, %r1, 5, %p0;\nand.pred %p5, %p1, !%p3;\nnot.pred %p6, %p5;\n"
      "lop3.or.b32 %r3|%p7, %r1, %r2, %r1, 0x88, %p0;\nset.le.u32.s32 %r4, %r1, %r2;\nmov.pred "
      "%p8, %p7;",
      level());
  ASSERT_EQ(m.error(), "");
  randomize(m, "%r1", 4);
  randomize(m, "%r2", 4);
  m.lanes<uint32_t>("%r1")[3] = 5;
  for (int i = 0; i < 32; ++i) {
    m.lanes<float>("%f1")[i] = static_cast<float>(i % 5);
    m.lanes<float>("%f2")[i] = i % 7 ? 2.0f : NAN;
  }
  const uint32_t p0 = m.predicate("%p0") = random_();
  m.run();
  auto bit = [&](const char* name, int i) { return (m.predicate(name) >> i & 1) != 0; };
  for (int i = 0; i < 32; ++i) {
    const bool c = p0 >> i & 1;
    const int32_t a = m.lanes<int32_t>("%r1")[i], b = m.lanes<int32_t>("%r2")[i];
    const bool ge = m.lanes<float>("%f1")[i] >= m.lanes<float>("%f2")[i];
    EXPECT_EQ(bit("%p1", i), a < b && !c);
    EXPECT_EQ(bit("%p2", i), !(a < b) && !c);
    EXPECT_EQ(bit("%p3", i), ge || c);
    EXPECT_EQ(bit("%p4", i), (a != 5) != c);
    EXPECT_EQ(bit("%p6", i), !(bit("%p1", i) && !bit("%p3", i)));
    EXPECT_EQ(m.lanes<int32_t>("%r3")[i], a & b);
    EXPECT_EQ(bit("%p8", i), (a & b) != 0 || c);
    EXPECT_EQ(m.lanes<uint32_t>("%r4")[i], a <= b ? ~0u : 0u);
  }
}

TEST_P(ScalarLanes, CarriesMakeWideArithmetic) {
  ScalarMachine m(
      ".reg .b32 %a<5>, %b<5>, %c<5>, %s<5>, %p<5>;\n"
      "add.cc.u32 %s0, %a0, %b0;\naddc.cc.u32 %s1, %a1, %b1;\naddc.cc.u32 %s2, %a2, %b2;\naddc.u32 "
      "%s3, %a3, %b3;\n"
      "sub.cc.u32 %c0, %a0, %b0;\nsubc.cc.u32 %c1, %a1, %b1;\nsubc.cc.u32 %c2, %a2, %b2;\nsubc.u32 "
      "%c3, %a3, %b3;\n"
      "mul.lo.u32 %p0, %a0, %b0;\nmul.hi.u32 %p1, %a0, %b0;\nmad.lo.cc.u32 %p1, %a1, %b0, %p1;\n"
      "madc.hi.u32 %p2, %a1, %b0, 0;",
      level());
  ASSERT_EQ(m.error(), "");
  using Wide = unsigned __int128;
  for (int k = 0; k < 4; ++k) {
    randomize(m, "%a" + std::to_string(k), 4);
    randomize(m, "%b" + std::to_string(k), 4);
  }
  m.lanes<uint32_t>("%a1")[0] = m.lanes<uint32_t>("%a2")[0] = ~0u;
  m.lanes<uint32_t>("%b1")[0] = m.lanes<uint32_t>("%b2")[0] = 0;
  m.run();
  auto wide = [&](const std::string& name, int i, int words) {
    Wide w = 0;
    for (int k = words; k--;) w = w << 32 | m.lanes<uint32_t>(name + std::to_string(k))[i];
    return w;
  };
  for (int i = 0; i < 32; ++i) {
    EXPECT_TRUE(wide("%s", i, 4) == wide("%a", i, 4) + wide("%b", i, 4));
    EXPECT_TRUE(wide("%c", i, 4) == wide("%a", i, 4) - wide("%b", i, 4));
    EXPECT_TRUE(wide("%p", i, 3) == wide("%a", i, 2) * wide("%b", i, 1));
  }
}

TEST_P(ScalarLanes, ConversionsBetweenRegisterWidths) {
  ScalarMachine m(
      ".reg .b16 %h<5>; .reg .b32 %r<9>; .reg .b64 %d<5>;\n"
      "cvt.s32.s8 %r2, %r1;\ncvt.u32.u8 %r3, %h1;\ncvt.u16.u32 %h2, %r1;\ncvt.s64.s32 %d1, %r1;\n"
      "cvt.u64.u32 %d2, %r1;\ncvt.s8.s32 %h3, %r1;\ncvt.u8.u32 %r4, %r1;\ncvt.s64.s16 %d3, %h1;\n"
      "cvt.sat.s16.s32 %r5, %r1;\ncvt.rn.f32.s8 %r6, %h1;\ncvt.rzi.s32.f32 %r7, 0fC0700000;",
      level());
  ASSERT_EQ(m.error(), "");
  randomize(m, "%r1", 4);
  randomize(m, "%h1", 2);
  m.run();
  for (int i = 0; i < 32; ++i) {
    const uint32_t r = m.lanes<uint32_t>("%r1")[i];
    const uint16_t h = m.lanes<uint16_t>("%h1")[i];
    const int32_t s = static_cast<int32_t>(r);
    EXPECT_EQ(m.lanes<int32_t>("%r2")[i], static_cast<int8_t>(r));
    EXPECT_EQ(m.lanes<uint32_t>("%r3")[i], h & 0xffu);
    EXPECT_EQ(m.lanes<uint16_t>("%h2")[i], static_cast<uint16_t>(r));
    EXPECT_EQ(m.lanes<int64_t>("%d1")[i], s);
    EXPECT_EQ(m.lanes<uint64_t>("%d2")[i], r);
    EXPECT_EQ(m.lanes<int16_t>("%h3")[i], static_cast<int8_t>(r));
    EXPECT_EQ(m.lanes<uint32_t>("%r4")[i], r & 0xffu);
    EXPECT_EQ(m.lanes<int64_t>("%d3")[i], static_cast<int16_t>(h));
    EXPECT_EQ(m.lanes<int32_t>("%r5")[i], std::clamp(s, -32768, 32767));
    EXPECT_EQ(m.lanes<float>("%r6")[i], static_cast<float>(static_cast<int8_t>(h)));
    EXPECT_EQ(m.lanes<int32_t>("%r7")[i], -3);
  }
}

TEST_P(ScalarLanes, PairsOfF32AndThreeWayMinimum) {
  ScalarMachine m(
      ".reg .f32 %f<9>; .reg .b64 %a, %b, %c, %d, %e;\n"
      "fma.rn.f32x2 %d, %a, %b, %c;\nadd.rn.f32x2 %e, %a, %b;\nmax.f32 %f4, %f1, %f2, %f3;\n"
      "min.NaN.f32 %f5, %f1, %f2, %f3;",
      level());
  ASSERT_EQ(m.error(), "");
  std::uniform_real_distribution<float> uniform(-4, 4);
  for (int i = 0; i < 64; ++i)
    for (const char* name : {"%a", "%b", "%c"}) m.lanes<float>(name)[i] = uniform(random_);
  for (int i = 0; i < 32; ++i)
    for (const char* name : {"%f1", "%f2", "%f3"}) m.lanes<float>(name)[i] = uniform(random_);
  m.lanes<float>("%f2")[0] = NAN;
  m.run();
  for (int i = 0; i < 64; ++i) {
    const float a = m.lanes<float>("%a")[i], b = m.lanes<float>("%b")[i],
                c = m.lanes<float>("%c")[i];
    EXPECT_EQ(m.lanes<float>("%d")[i], std::fma(a, b, c));
    EXPECT_EQ(m.lanes<float>("%e")[i], a + b);
  }
  for (int i = 0; i < 32; ++i) {
    const float a = m.lanes<float>("%f1")[i], b = m.lanes<float>("%f2")[i],
                c = m.lanes<float>("%f3")[i];
    EXPECT_EQ(m.lanes<float>("%f4")[i], std::fmax(std::fmax(a, b), c));
    if (i == 0) continue;
    EXPECT_EQ(m.lanes<float>("%f5")[i], std::fmin(std::fmin(a, b), c));
  }
  EXPECT_EQ(m.lanes<uint32_t>("%f5")[0], 0x7fffffffu);
}

// A form nobody has is refused by the finder, as are registers of a wrong width.
TEST_P(ScalarLanes, UnknownFormsAreRefused) {
  for (const char* text : {
           "add.u32 %d1, %d2, %d2;",       // 64-bit registers
           "mul.wide.u32 %r1, %r1, %r1;",  // the product needs 64
           "cvt.rn.f32.s32 %d1, %r1;",     // a float in a wider register
       }) {
    ScalarMachine m(std::string(".reg .b32 %r<3>; .reg .b64 %d<3>;\n") + text, level());
    EXPECT_NE(m.error(), "") << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Level, ScalarLanes, ::testing::Range(0, 3));

}  // namespace
}  // namespace ptxbench::emu
