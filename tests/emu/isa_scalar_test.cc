// Scalar forms that no recording holds: carry chains, logic on predicates, moves and selections of
// every type, comparisons into registers. Oracles in host arithmetic over edge values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "emu/ptx_runner.h"
#include "emu/scalar_machine.h"

namespace ptxbench::emu {
namespace {

using testing::ScalarMachine;

const scalar::Level& best() { return scalar::available_levels().level[0]; }

constexpr uint64_t kEdges[] = {0,
                               1,
                               2,
                               0x7fff,
                               0x8000,
                               0xffff,
                               0x10000,
                               0x7fffffff,
                               0x80000000,
                               0xffffffff,
                               0x100000000,
                               0x7fffffffffffffff,
                               0x8000000000000000,
                               0xffffffffffffffff,
                               0x3c00bc00,
                               0x123456789abcdef0};
constexpr size_t kCount = std::size(kEdges);

// Lane l of round r holds pair number 32 r + l of the edge values.
void set_pair(ScalarMachine& m, const char* a, const char* b, int bytes, size_t round) {
  for (size_t l = 0; l < 32; ++l) {
    const size_t n = (32 * round + l) % (kCount * kCount);
    std::memcpy(m.lanes<uint8_t>(a) + l * static_cast<size_t>(bytes), &kEdges[n % kCount],
                static_cast<size_t>(bytes));
    std::memcpy(m.lanes<uint8_t>(b) + l * static_cast<size_t>(bytes), &kEdges[n / kCount],
                static_cast<size_t>(bytes));
  }
}
uint64_t get(ScalarMachine& m, const char* name, int bytes, size_t lane) {
  uint64_t v = 0;
  std::memcpy(&v, m.lanes<uint8_t>(name) + lane * static_cast<size_t>(bytes),
              static_cast<size_t>(bytes));
  return v;
}

int width(const std::string& type) {
  return std::stoi(type.substr(type.find_first_of("0123456789"))) / 8 *
         (type.ends_with("x2") ? 2 : 1);
}

// A sum and a difference of twice the width in two steps, then what the last carry was.
TEST(IsaScalar, CarryChains) {
  for (const std::string type : {"u32", "s32", "u64", "s64"}) {
    const int bytes = width(type);
    const std::string r = ".reg .b" + std::to_string(8 * bytes);
    ScalarMachine m(
        r + " %a, %b, %lo, %hi, %top, %dlo, %dhi, %dtop, %mlo, %mhi, %mtop;\n" +
            fmt::format("add.cc.{0} %lo, %a, %b; addc.cc.{0} %hi, %b, %a; addc.{0} %top, 0, 0;\n"
                        "sub.cc.{0} %dlo, %a, %b; subc.cc.{0} %dhi, %b, %a; subc.{0} %dtop, 0, 0;\n"
                        "mad.lo.cc.{0} %mlo, %a, %b, %a; madc.lo.cc.{0} %mhi, %a, %b, %b; "
                        "madc.hi.{0} %mtop, %a, %b, 0;\n",
                        type),
        best());
    ASSERT_EQ(m.error(), "");
    using Wide = unsigned __int128;
    const Wide unit = Wide{1} << (8 * bytes);
    const uint64_t mask = static_cast<uint64_t>(unit - 1);
    for (size_t round = 0; round < kCount * kCount / 32; ++round) {
      set_pair(m, "%a", "%b", bytes, round);
      m.run();
      for (size_t l = 0; l < 32; ++l) {
        const Wide a = get(m, "%a", bytes, l), b = get(m, "%b", bytes, l);
        const Wide low = a + b, high = b + a + low / unit;
        EXPECT_EQ(get(m, "%lo", bytes, l), static_cast<uint64_t>(low) & mask);
        EXPECT_EQ(get(m, "%hi", bytes, l), static_cast<uint64_t>(high) & mask);
        EXPECT_EQ(get(m, "%top", bytes, l), static_cast<uint64_t>(high / unit));
        const uint64_t borrow = a < b, second = b < a + borrow;
        EXPECT_EQ(get(m, "%dlo", bytes, l), static_cast<uint64_t>(a - b) & mask);
        EXPECT_EQ(get(m, "%dhi", bytes, l), static_cast<uint64_t>(b - a - borrow) & mask);
        EXPECT_EQ(get(m, "%dtop", bytes, l), (0 - second) & mask);
        const bool is_signed = type[0] == 's';
        const Wide product = a * b;
        Wide upper = product / unit;
        if (is_signed && bytes == 4)
          upper = static_cast<uint32_t>(
              (int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b)) >> 32);
        if (is_signed && bytes == 8)
          upper = static_cast<uint64_t>(
              (static_cast<__int128>(static_cast<int64_t>(a)) * static_cast<int64_t>(b)) >> 64);
        const Wide first = (product & mask) + a, then = (product & mask) + b + first / unit;
        EXPECT_EQ(get(m, "%mlo", bytes, l), static_cast<uint64_t>(first) & mask);
        EXPECT_EQ(get(m, "%mhi", bytes, l), static_cast<uint64_t>(then) & mask);
        EXPECT_EQ(get(m, "%mtop", bytes, l), static_cast<uint64_t>(upper + then / unit) & mask);
      }
    }
  }
}

// Bytes into a half and out again, 128 bits as a register, registers that are vectors.
TEST(IsaScalar, MovesOfUnusualWidths) {
  test::PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0, .param .u64 p1) {
    .reg .b8 %c<9>; .reg .b16 %h<9>; .reg .b64 %d<9>; .reg .b128 %q<3>;
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1];
    ld.global.b8 %c1, [%d1]; ld.global.b8 %c2, [%d1+1];
    mov.b16 %h1, {%c1, %c2}; mov.b16 {%c3, %c4}, %h1;
    st.global.b16 [%d2], %h1; st.global.b8 [%d2+2], %c4; st.global.b8 [%d2+3], %c3;
    ld.global.b128 %q1, [%d1]; mov.b128 %q2, %q1; st.global.b128 [%d2+16], %q2; ret; })";
  std::vector<uint8_t> in(16);
  for (size_t i = 0; i < 16; ++i) in[i] = static_cast<uint8_t>(0x81 + 7 * i);
  r.buffers = {test::buffer_of("in", in, true), test::output_of("out", 32)};
  r.go();
  ASSERT_EQ(r.error, "");
  const std::vector<uint8_t>& out = r.buffers[1].bytes;
  EXPECT_EQ((std::vector<uint8_t>(out.begin(), out.begin() + 4)),
            (std::vector<uint8_t>{in[0], in[1], in[1], in[0]}));
  EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin() + 16));
}

// No compiler declares these; an element must not be taken for the whole.
TEST(IsaScalar, VectorRegistersAreRefused) {
  for (const char* use : {"mov.v2.b32 %v, %w;", "mov.b32 %v.x, 1;", "ld.global.b32 %v.y, [%d];",
                          "ld.global.v2.b32 {%v.x, %v.y}, [%d];", "add.u32 %r, %w.x, 1;"}) {
    test::PtxRun r;
    r.ptx = std::string(
                ".visible .entry k(.param .u64 p0) {\n.reg .v2 .b32 %v, %w; .reg .b32 %r; .reg "
                ".b64 %d;\nld.param.u64 %d, [p0];\n") +
            use + "\nret; }";
    r.buffers = {test::output_of("out", 8)};
    r.go();
    EXPECT_NE(r.error.find(".v2"), std::string::npos) << use << r.error;
  }
}

TEST(IsaScalar, LogicOnPredicates) {
  ScalarMachine m(
      ".reg .pred %p, %q, %a, %o, %x, %n, %c; and.pred %a, %p, %q; or.pred %o, %p, %q; xor.pred "
      "%x, %p, %q; not.pred %n, %p; mov.pred %c, %q;",
      best());
  ASSERT_EQ(m.error(), "");
  m.predicate("%p") = 0x0f0f3355, m.predicate("%q") = 0x00ff5533;
  m.run();
  EXPECT_EQ(m.predicate("%a"), 0x0f0f3355u & 0x00ff5533u);
  EXPECT_EQ(m.predicate("%o"), 0x0f0f3355u | 0x00ff5533u);
  EXPECT_EQ(m.predicate("%x"), 0x0f0f3355u ^ 0x00ff5533u);
  EXPECT_EQ(m.predicate("%n"), ~0x0f0f3355u);
  EXPECT_EQ(m.predicate("%c"), 0x00ff5533u);
}

TEST(IsaScalar, MovesAndSelectionsOfEveryType) {
  for (const std::string type :
       {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"}) {
    const int bytes = width(type);
    ScalarMachine m(
        fmt::format(".reg .b{} %a, %b, %d, %e; .reg .pred %p; mov.{} %d, %a;", 8 * bytes, type) +
            fmt::format("selp.{} %e, %a, %b, %p;", type),
        best());
    ASSERT_EQ(m.error(), "") << type;
    for (size_t round = 0; round < kCount * kCount / 32; ++round) {
      set_pair(m, "%a", "%b", bytes, round);
      m.predicate("%p") = 0x3c5a9669u;
      m.run();
      for (size_t l = 0; l < 32; ++l) {
        EXPECT_EQ(get(m, "%d", bytes, l), get(m, "%a", bytes, l)) << type;
        EXPECT_EQ(get(m, "%e", bytes, l), get(m, 0x3c5a9669u >> l & 1 ? "%a" : "%b", bytes, l))
            << type;
      }
    }
  }
}

TEST(IsaScalar, SelectionBySign) {
  for (const std::string type :
       {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"})
    for (const std::string by : {"s32", "f32", "ftz.f32"}) {
      const int bytes = width(type);
      const bool flush = by[0] == 'f' && by[1] == 't';
      ScalarMachine m(
          fmt::format(".reg .b{0} %a, %b, %d; .reg .b32 %c; slct{3}.{1}.{2} %d, %a, %b, %c;",
                      8 * bytes, type, flush ? "f32" : by, flush ? ".ftz" : ""),
          best());
      ASSERT_EQ(m.error(), "") << type << by;
      const uint32_t control[] = {0,          1,          0x80000000, 0x80000001,
                                  0xffffffff, 0x3f800000, 0xbf800000, 0x7fc00000};
      set_pair(m, "%a", "%b", bytes, 3);
      for (size_t l = 0; l < 32; ++l) m.lanes<uint32_t>("%c")[l] = control[l % 8];
      m.run();
      for (size_t l = 0; l < 32; ++l) {
        const uint32_t c = control[l % 8];
        // -0 and what is flushed to it are not below 0; a NaN selects b.
        bool first = static_cast<int32_t>(c) >= 0;
        if (by != "s32") first = std::bit_cast<float>(c) >= 0.0f || (flush && c == 0x80000001);
        EXPECT_EQ(get(m, "%d", bytes, l), get(m, first ? "%a" : "%b", bytes, l)) << type << by << l;
      }
    }
}

template <class T>
bool holds(const std::string& op, T a, T b) {
  if (op == "eq") return a == b;
  if (op == "ne") return a != b;
  if (op == "lt" || op == "lo") return a < b;
  if (op == "le" || op == "ls") return a <= b;
  if (op == "gt" || op == "hi") return a > b;
  return a >= b;
}
bool compare(const std::string& op, const std::string& type, uint64_t a, uint64_t b) {
  if (type == "f64") {
    const double x = std::bit_cast<double>(a), y = std::bit_cast<double>(b);
    const bool nan = x != x || y != y;
    if (op == "num") return !nan;
    if (op == "nan") return nan;
    if (op.size() == 3) return nan || holds(op.substr(0, 2), x, y);
    return op == "ne" ? !nan && x != y : holds(op, x, y);
  }
  if (type == "s16") return holds(op, static_cast<int16_t>(a), static_cast<int16_t>(b));
  if (type == "s32") return holds(op, static_cast<int32_t>(a), static_cast<int32_t>(b));
  if (type == "s64") return holds(op, static_cast<int64_t>(a), static_cast<int64_t>(b));
  return holds(op, a, b);
}

// set and setp with every comparison of every type, alone and combined with a predicate.
TEST(IsaScalar, ComparisonsIntoRegistersAndPredicates) {
  const std::vector<std::string> all = {"eq", "ne", "lt", "le", "gt", "ge"},
                                 unsigned_only = {"lo", "ls", "hi", "hs"},
                                 floating = {"equ", "neu", "ltu", "leu",
                                             "gtu", "geu", "num", "nan"};
  size_t forms = 0;
  for (const std::string type :
       {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f64"}) {
    std::vector<std::string> ops = all;
    if (type[0] == 'b') ops = {"eq", "ne"};
    if (type[0] == 'u') ops.insert(ops.end(), unsigned_only.begin(), unsigned_only.end());
    if (type[0] == 'f') ops.insert(ops.end(), floating.begin(), floating.end());
    for (const std::string& op : ops)
      for (const std::string combine : {"", "and", "or", "xor"}) {
        const int bytes = width(type);
        const std::string suffix = combine.empty() ? "" : "." + combine,
                          q = combine.empty() ? "" : ", %q";
        ScalarMachine m(fmt::format(".reg .b{0} %a, %b; .reg .pred %p, %q; .reg .b32 %u, %f;\n"
                                    "setp.{1}{2}.{3} %p, %a, %b{4}; set.{1}{2}.u32.{3} %u, %a, "
                                    "%b{4}; set.{1}{2}.f32.{3} %f, %a, %b{4};",
                                    8 * bytes, op, suffix, type, q),
                        best());
        ASSERT_EQ(m.error(), "") << op << type;
        for (size_t round = 0; round < kCount * kCount / 32; ++round) {
          set_pair(m, "%a", "%b", bytes, round);
          m.predicate("%q") = 0x0ff0c3a5;
          m.run();
          for (size_t l = 0; l < 32; ++l) {
            const bool extra = 0x0ff0c3a5u >> l & 1;
            bool want = compare(op, type, get(m, "%a", bytes, l), get(m, "%b", bytes, l));
            if (combine == "and") want = want && extra;
            if (combine == "or") want = want || extra;
            if (combine == "xor") want = want != extra;
            EXPECT_EQ(m.predicate("%p") >> l & 1, want) << op << combine << type << l;
            EXPECT_EQ(get(m, "%u", 4, l), want ? 0xffffffffu : 0) << op << combine << type << l;
            EXPECT_EQ(get(m, "%f", 4, l), want ? 0x3f800000u : 0) << op << combine << type << l;
          }
        }
        ++forms;
      }
  }
  EXPECT_EQ(forms, 4 * (3 * 2 + 3 * 10 + 3 * 6 + 14u));
}

// The predicate of lop3: the result is not zero, combined with another predicate.
TEST(IsaScalar, LogicOfThreeWithAPredicate) {
  for (const std::string combine : {"and", "or"}) {
    ScalarMachine m(".reg .b32 %a, %b, %d; .reg .pred %p, %q; lop3." + combine +
                        ".b32 %d|%p, %a, %b, 0x0000ffff, 0x80, %q;",
                    best());
    ASSERT_EQ(m.error(), "");
    set_pair(m, "%a", "%b", 4, 2);
    m.predicate("%q") = 0x33cc55aa;
    m.run();
    for (size_t l = 0; l < 32; ++l) {
      const uint64_t d = get(m, "%a", 4, l) & get(m, "%b", 4, l) & 0xffff;
      EXPECT_EQ(get(m, "%d", 4, l), d);
      const bool q = 0x33cc55aau >> l & 1;
      EXPECT_EQ(m.predicate("%p") >> l & 1, combine == "and" ? (d != 0 && q) : (d != 0 || q))
          << combine << l;
    }
  }
}

}  // namespace
}  // namespace ptxbench::emu
