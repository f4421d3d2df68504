// wmma in kernels: every shape, type and layout, loads and stores included, against exact products
// of small numbers computed here; what two tiles of mma.sync give otherwise.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "emu/mma_forms.h"
#include "emu/ptx_runner.h"
#include "emu/tensor_model.h"
#include "emu/wmma.h"

namespace ptxbench::emu {
namespace {

using test::buffer_of;
using test::output_of;
using test::PtxRun;

struct Case {
  int m, n, k;
  Type a, c, d;
  bool a_columns, b_columns, c_columns, d_columns;
  int from = 0, to = 0;  // spaces: global, shared, shared::cta
  bool exclusive_or = false, saturate = false;
  const char* rounding = "";
};
const char* const kSpaces[] = {"global", "shared", "shared::cta"};

int bits_in_memory(Type t) { return t == Type::tf32 ? 32 : ptx::bits(t); }

uint64_t encoded(Type t, int value) {
  const float f = static_cast<float>(value);
  const double d = value;
  const _Float16 h = static_cast<_Float16>(value);
  uint64_t bits = 0;
  if (t == Type::f16)
    std::memcpy(&bits, &h, 2);
  else if (t == Type::bf16)
    std::memcpy(&bits, reinterpret_cast<const char*>(&f) + 2, 2);
  else if (t == Type::f32 || t == Type::tf32)
    std::memcpy(&bits, &f, 4);
  else if (t == Type::f64)
    std::memcpy(&bits, &d, 8);
  else
    bits = static_cast<uint64_t>(value);
  return bits;
}

// A matrix in memory with rows (or columns) `stride` elements apart.
struct Matrix {
  int rows, columns, stride;
  bool column_major;
  Type type;
  std::vector<uint8_t> bytes;

  Matrix(int r, int c, bool by_columns, Type t)
      : rows(r), columns(c), column_major(by_columns), type(t) {
    const int inner = by_columns ? r : c, outer = by_columns ? c : r;
    stride = inner + 128 / std::min(bits_in_memory(t), 16);  // 16 bytes at least between them
    if (bits_in_memory(t) < 8) stride = inner * 2;
    bytes.assign(static_cast<size_t>(stride * outer * std::max(bits_in_memory(t), 1) / 8 + 16), 0);
  }
  size_t bit(int r, int c) const {
    return static_cast<size_t>((column_major ? c * stride + r : r * stride + c) *
                               bits_in_memory(type));
  }
  void set(int r, int c, uint64_t v) {
    const size_t at = bit(r, c), n = static_cast<size_t>(bits_in_memory(type));
    if (n >= 8)
      std::memcpy(&bytes[at / 8], &v, n / 8);
    else
      bytes[at / 8] = static_cast<uint8_t>(bytes[at / 8] | (v & ((1u << n) - 1)) << at % 8);
  }
  uint64_t get(int r, int c) const {
    uint64_t v = 0;
    std::memcpy(&v, &bytes[bit(r, c) / 8], static_cast<size_t>(bits_in_memory(type)) / 8);
    return v;
  }
};

std::string registers(char name, int count) {
  std::string s;
  for (int r = 0; r < count; ++r) s += fmt::format("{}%{}{}", r ? "," : "{", name, r);
  return s + "}";
}

std::string kernel(const Case& t, const WmmaForm& f, const Matrix& a, const Matrix& b,
                   const Matrix& c, const Matrix& d) {
  const MmaRegisters n = registers_of(f);
  const std::string shape = fmt::format("m{}n{}k{}", t.m, t.n, t.k);
  auto layout = [](bool columns) { return columns ? "col" : "row"; };
  auto name = [](Type x) { return ptx::name(x); };
  std::string s = ".visible .entry k(.param .u64 a,.param .u64 b,.param .u64 c,.param .u64 d) {\n";
  s += fmt::format(
      ".reg .{} %a<9>,%b<9>,%c<9>,%d<9>;\n.reg .b64 %p;\n.reg .b32 %s,%i,%x;\n"
      ".reg .pred %q;\n.shared .align 128 .b8 buffer[8192];\n",
      t.a == Type::f64 ? "f64" : "b32");
  // Operands come from shared memory, copied word by word, or from global memory.
  auto source = [&](char matrix, const Matrix& m) {
    s += fmt::format("ld.param.u64 %p,[{}];\n", matrix);
    if (t.from == 0) return std::string(kSpaces[0]);
    s += fmt::format(
        "mov.u32 %i,0;\nmov.u32 %s,buffer;\nbar.sync 0;\n$copy_{0}:\nld.global.b32 %x,[%p];\n"
        "st.shared.b32 [%s],%x;\nadd.u64 %p,%p,4;\nadd.u32 %s,%s,4;\nadd.u32 %i,%i,4;\n"
        "setp.lt.u32 %q,%i,{1};\n@%q bra $copy_{0};\nbar.sync 0;\nmov.u64 %p,buffer;\n",
        matrix, m.bytes.size() / 4 * 4);
    return std::string(kSpaces[t.from]);
  };
  auto load = [&](char matrix, const Matrix& m, int count, Type type, bool columns) {
    const std::string space = source(matrix, m);
    s += fmt::format("wmma.load.{}.sync.aligned.{}.{}.{}.{} {},[%p],{};\n", matrix, layout(columns),
                     shape, space, name(type), registers(matrix, count), m.stride);
  };
  load('a', a, n.a, f.a, t.a_columns), load('b', b, n.b, f.b, t.b_columns);
  load('c', c, n.c, f.c, t.c_columns);
  const std::string operation = f.a != Type::b1 ? "" : t.exclusive_or ? ".xor.popc" : ".and.popc";
  const std::string types =
      f.a == Type::f16 ? fmt::format("{}.{}", name(f.d), name(f.c))
                       : fmt::format("{}.{}.{}.{}", name(f.d), name(f.a), name(f.b), name(f.c));
  s += fmt::format("wmma.mma{}.sync.aligned.{}.{}.{}{}.{}{} {},{},{},{};\n", operation,
                   layout(t.a_columns), layout(t.b_columns), shape, t.rounding, types,
                   t.saturate ? ".satfinite" : "", registers('d', n.d), registers('a', n.a),
                   registers('b', n.b), registers('c', n.c));
  const std::string store =
      fmt::format("wmma.store.d.sync.aligned.{}.{}.{}.{} [%p],{},{};\n", layout(t.d_columns), shape,
                  kSpaces[t.to], name(f.d), registers('d', n.d), d.stride);
  if (t.to == 0) return s + "ld.param.u64 %p,[d];\n" + store + "ret;\n}\n";
  // Through shared memory that holds zeros.
  s += fmt::format(
      "mov.u32 %x,0;\nmov.u32 %i,0;\nmov.u32 %s,buffer;\nbar.sync 0;\n$zero:\nst.shared.b32 "
      "[%s],%x;\nadd.u32 %s,%s,4;\nadd.u32 %i,%i,4;\nsetp.lt.u32 %q,%i,{0};\n@%q bra "
      "$zero;\nbar.sync "
      "0;\nmov.u64 %p,buffer;\n{1}bar.sync 0;\nld.param.u64 %p,[d];\nmov.u32 %i,0;\nmov.u32 "
      "%s,buffer;\n$out:\nld.shared.b32 %x,[%s];\nst.global.b32 [%p],%x;\nadd.u64 "
      "%p,%p,4;\nadd.u32 "
      "%s,%s,4;\nadd.u32 %i,%i,4;\nsetp.lt.u32 %q,%i,{0};\n@%q bra $out;\nret;\n}}\n",
      d.bytes.size() / 4 * 4, store);
  return s;
}

void run(const Case& t, Generator& g) {
  const WmmaForm f{t.m, t.n, t.k, t.d, t.a, t.a, t.c, t.saturate, t.exclusive_or};
  ASSERT_TRUE(check(f).ok()) << check(f).error().message;
  Matrix a(t.m, t.k, t.a_columns, t.a), b(t.k, t.n, t.b_columns, t.a);
  Matrix c(t.m, t.n, t.c_columns, t.c), d(t.m, t.n, t.d_columns, t.d);
  std::vector<int> av(static_cast<size_t>(t.m * t.k)), bv(static_cast<size_t>(t.k * t.n)), want;
  const bool is_unsigned = t.a == Type::u8 || t.a == Type::u4 || t.a == Type::b1;
  auto number = [&] {
    const int range = t.a == Type::b1 ? 2 : 8;
    return static_cast<int>(g.next(static_cast<uint32_t>(range))) - (is_unsigned ? 0 : 4);
  };
  for (int r = 0; r < t.m; ++r)
    for (int k = 0; k < t.k; ++k) a.set(r, k, encoded(t.a, av[r * t.k + k] = number()));
  for (int k = 0; k < t.k; ++k)
    for (int n = 0; n < t.n; ++n) b.set(k, n, encoded(t.a, bv[k * t.n + n] = number()));
  for (int r = 0; r < t.m; ++r)
    for (int n = 0; n < t.n; ++n) {
      int64_t sum = static_cast<int>(g.next(64)) - 32;
      // Near the ends of the range, so that about half of the sums leave it.
      if (t.saturate) sum = n % 2 ? INT32_MAX - std::abs(sum) : INT32_MIN + std::abs(sum);
      c.set(r, n, encoded(t.c, static_cast<int>(sum)));
      for (int k = 0; k < t.k; ++k) {
        const int x = av[r * t.k + k], y = bv[k * t.n + n];
        sum += t.exclusive_or ? x != y : x * y;
      }
      if (t.saturate) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
      want.push_back(static_cast<int>(sum));
    }
  PtxRun p;
  p.ptx = kernel(t, f, a, b, c, d);
  p.buffers = {buffer_of("a", a.bytes, true), buffer_of("b", b.bytes, true),
               buffer_of("c", c.bytes, true), output_of("d", d.bytes.size())};
  p.block = {32, 1, 1};
  p.go();
  const std::string what = p.ptx.substr(p.ptx.find("wmma.mma"), 70);
  ASSERT_EQ(p.error, "") << what;
  EXPECT_EQ(p.kinds(), "") << what << p.ptx;
  EXPECT_EQ(p.warps("wmma.mma"), 1u);
  EXPECT_EQ(p.result.kernels.at(0).tensor_flop, 2.0 * t.m * t.n * t.k);
  const std::vector<uint8_t> untouched = p.buffers[3].bytes;
  d.bytes = p.buffers[3].bytes;
  int bad = 0;
  for (int r = 0; r < t.m; ++r)
    for (int n = 0; n < t.n; ++n)
      bad += d.get(r, n) !=
             (encoded(t.d, want[r * t.n + n]) & (~uint64_t{0} >> (64 - bits_in_memory(t.d))));
  EXPECT_EQ(bad, 0) << what << " a " << t.a_columns << " b " << t.b_columns << " c " << t.c_columns;
}

TEST(CoreWmma, EveryShapeTypeAndLayout) {
  Generator g;
  int count = 0;
  auto layouts = [&](Case t, bool fixed) {
    for (int bits = 0; bits < 16; ++bits) {
      t.a_columns = fixed ? false : bits & 1, t.b_columns = fixed ? true : bits & 2;
      t.c_columns = bits & 4, t.d_columns = bits & 8;
      t.from = count % 3, t.to = (count + count / 3) % 3;
      if (fixed && bits % 4) continue;
      run(t, g), ++count;
    }
  };
  const int shapes[3][3] = {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}};
  for (auto [m, n, k] : shapes) {
    for (Type c : {Type::f16, Type::f32})
      for (Type d : {Type::f16, Type::f32}) layouts({m, n, k, Type::f16, c, d}, false);
    layouts({m, n, k, Type::bf16, Type::f32, Type::f32}, false);
    layouts({m, n, k, Type::s8, Type::s32, Type::s32}, false);
    layouts({m, n, k, Type::u8, Type::s32, Type::s32}, false);
  }
  for (auto [m, n, k] : shapes)
    for (Type a : {Type::s8, Type::u8}) {
      Case saturating{m, n, k, a, Type::s32, Type::s32};
      saturating.saturate = true;
      layouts(saturating, false);
    }
  for (Type a : {Type::s4, Type::u4}) {
    Case saturating{8, 8, 32, a, Type::s32, Type::s32};
    saturating.saturate = true;
    layouts(saturating, true);
  }
  layouts({16, 16, 8, Type::tf32, Type::f32, Type::f32}, false);
  layouts({8, 8, 4, Type::f64, Type::f64, Type::f64}, false);
  layouts({8, 8, 32, Type::s4, Type::s32, Type::s32}, true);
  layouts({8, 8, 32, Type::u4, Type::s32, Type::s32}, true);
  layouts({8, 8, 128, Type::b1, Type::s32, Type::s32}, true);
  Case exclusive{8, 8, 128, Type::b1, Type::s32, Type::s32};
  exclusive.exclusive_or = true;
  layouts(exclusive, true);
  EXPECT_EQ(count, 3 * 7 * 16 + 2 * 16 + 4 * 4 + 3 * 2 * 16 + 2 * 4);
}

// Each of the four products is rounded on its own: 1 plus or minus 2^-60 is 1 or a neighbour of 1.
TEST(CoreWmma, RoundingOfDoubles) {
  struct Expected {
    const char* mode;
    double above, below;
  };
  const double after = std::nextafter(1.0, 2.0), before = std::nextafter(1.0, 0.0);
  for (const Expected& e : {Expected{"", 1, 1},
                            {".rn", 1, 1},
                            {".rz", 1, before},
                            {".rm", 1, before},
                            {".rp", after, 1}}) {
    PtxRun p;
    p.ptx = fmt::format(
        ".visible .entry k(.param .u64 in,.param .u64 out) {{ .reg .f64 %c<2>,%d<2>,%a,%b; .reg "
        ".b64 "
        "%p; .reg .b32 %t; ld.param.u64 %p,[in]; mov.u32 %t,%tid.x; "
        "mad.wide.u32 %p,%t,32,%p; ld.global.f64 %a,[%p]; ld.global.f64 %b,[%p+8]; ld.global.f64 "
        "%c0,[%p+16]; ld.global.f64 %c1,[%p+24]; "
        "wmma.mma.sync.aligned.row.col.m8n8k4{}.f64.f64.f64.f64 "
        "{{%d0,%d1}},{{%a}},{{%b}},{{%c0,%c1}}; "
        "ld.param.u64 %p,[out]; mad.wide.u32 %p,%t,16,%p; st.global.f64 [%p],%d0; st.global.f64 "
        "[%p+8],%d1; ret; }}",
        e.mode);
    std::vector<double> in;  // a, b: lane l holds k = l % 4, of which only k = 2 is not zero
    for (int lane = 0; lane < 32; ++lane) {
      const double one = lane % 4 == 2 ? 1 : 0;
      in.insert(in.end(), {one, one, 0x1p-60, -0x1p-60});
    }
    p.buffers = {buffer_of("in", in, true), output_of("out", 512)};
    p.block = {32, 1, 1};
    p.go();
    ASSERT_EQ(p.error, "");
    const auto out = test::values_of<double>(p.buffers[1]);
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(out[i], i % 2 ? e.below : e.above) << e.mode << i;
  }
}

// Random operands: the tiles are mma.sync's, in the order of registers that ptxas shows; two steps
// for tf32; exchanged operands for m8n32.
TEST(CoreWmma, TilesAreThoseOfMma) {
  Generator g;
  for (plan::TensorMode mode : {plan::TensorMode::hw, plan::TensorMode::f32})
    for (int swapped : {0, 1}) {
      const WmmaForm f = swapped
                             ? WmmaForm{8, 32, 16, Type::f32, Type::bf16, Type::bf16, Type::f32}
                             : WmmaForm{16, 16, 16, Type::f32, Type::bf16, Type::bf16, Type::f32};
      const MmaForm t{16, 8, 16, Type::f32, Type::bf16, Type::bf16, Type::f32};
      WarpFragments whole(t), tile(t);
      for (auto* fragment : {&whole.a, &whole.b, &whole.c})
        for (int r = 0; r < 8; ++r)
          for (size_t l = 0; l < 32; ++l) {
            const uint32_t high = g.element(bits_of(Type::bf16), Fill::wide);
            whole.set(*fragment, r, l, high << 16 | g.element(bits_of(Type::bf16), Fill::wide));
          }
      wmma(f, whole.operands, mode);
      for (int i = 0; i < 2; ++i) {
        MmaOperands o = whole.operands;
        const auto& a = swapped ? whole.operands.b : whole.operands.a;
        const auto& b = swapped ? whole.operands.a : whole.operands.b;
        for (int r = 0; r < 4; ++r) o.a[r] = a[r + (swapped ? 4 * i : 0)];
        for (int r = 0; r < 2; ++r) o.b[r] = b[r + (swapped ? 0 : 2 * i)];
        for (int r = 0; r < 4; ++r)
          o.c[r] = whole.operands.c[4 * i + r], o.d[r] = tile.operands.d[r];
        mma(t, o, mode);
        for (int r = 0; r < 4; ++r)
          EXPECT_EQ(std::memcmp(whole.operands.d[4 * i + r], o.d[r], 128), 0) << swapped << i << r;
      }
    }
}

TEST(CoreWmma, OutsideItsBufferIsAFault) {
  PtxRun p;
  p.ptx =
      ".visible .entry k(.param .u64 a) {\n.reg .b32 %a<4>;\n.reg .b64 %p;\nld.param.u64 %p,[a];\n"
      "wmma.load.a.sync.aligned.row.m16n16k16.global.bf16 {%a0,%a1,%a2,%a3},[%p],32;\nret;\n}\n";
  p.buffers = {buffer_of("a", std::vector<uint8_t>(16 * 64 - 64), true)};
  p.block = {32, 1, 1};
  p.go();
  ASSERT_EQ(p.error, "");
  EXPECT_TRUE(p.finding("out-of-bounds")) << p.kinds();
}

}  // namespace
}  // namespace ptxbench::emu
