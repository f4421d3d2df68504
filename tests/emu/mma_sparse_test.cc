// mma.sp: stored elements and metadata placed as the PTX ISA's figures show, against products with
// the dense matrix that they stand for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "emu/mma_forms.h"
#include "emu/ptx_runner.h"
#include "emu/tensor_model.h"

namespace ptxbench::emu {
namespace {

using plan::TensorMode;

std::vector<MmaForm> sparse_forms() {
  std::vector<MmaForm> out;
  auto add = [&](int k, Type d, Type a, Type b) {
    MmaForm f{16, 8, k, d, a, b, d};
    f.sparse = true;
    out.push_back(f);
  };
  for (int k : {16, 32})
    add(k, Type::f32, Type::f16, Type::f16), add(k, Type::f16, Type::f16, Type::f16),
        add(k, Type::f32, Type::bf16, Type::bf16);
  for (int k : {8, 16}) add(k, Type::f32, Type::tf32, Type::tf32);
  for (int k : {32, 64})
    add(k, Type::s32, Type::s8, Type::u8), add(k, Type::s32, Type::u8, Type::s8);
  for (int k : {64, 128})
    add(k, Type::s32, Type::s4, Type::s4), add(k, Type::s32, Type::u4, Type::s4);
  add(64, Type::f32, Type::e4m3, Type::e5m2), add(64, Type::f32, Type::e5m2, Type::e4m3);
  return out;
}

// Where the four bits of chunk c of a row are: thread of its four, and shift.
struct MetadataPlace {
  int thread, shift;
};
MetadataPlace metadata_place(const MmaForm& f, int chunks, int row, int c) {
  const bool upper = row >= 8;
  if (f.d != Type::s32 && f.a != Type::e4m3 && f.a != Type::e5m2) {
    // Sixteen bits a row: T(selector), or columns of the first and second half in two threads.
    if (chunks == 4) return {f.selector, 4 * c + (upper ? 16 : 0)};
    return {2 * f.selector + (c >= 4 ? 1 : 0), 4 * (c % 4) + (upper ? 16 : 0)};
  }
  if (chunks == 8) return {2 * f.selector + (upper ? 1 : 0), 4 * c};
  return {(upper ? 1 : 0) + (c >= 8 ? 2 : 0), 4 * (c % 8)};
}

// A random sparse matrix: dense values with zeros, stored values, metadata.
struct SparseCase {
  double dense[16][128] = {};
  double b[128][8], c[16][8];
  std::vector<std::vector<int>> index{16};  // dense column of each stored element
};

void fill(SparseCase& s, const MmaForm& f, Fill how, Generator& g, WarpFragments& w) {
  const bool integer = f.d == Type::s32;
  const bool nibbles = f.a == Type::s4 || f.a == Type::u4;
  const int width = WarpFragments::element_bits(f.a);
  const int chunk = nibbles ? 8 : f.a == Type::tf32 ? 2 : 4, chunks = f.k / chunk;
  for (int row = 0; row < 16; ++row)
    for (int i = 0; i < chunks; ++i) {
      int first = static_cast<int>(g.next(4)), second = first;
      while (second == first) second = static_cast<int>(g.next(4));
      if (first > second) std::swap(first, second);
      const int element = static_cast<int>(g.next(2));
      const int bits = f.a == Type::tf32 ? (element ? 0b1110 : 0b0100) : first | second << 2;
      const MetadataPlace p = metadata_place(f, chunks, row, i);
      w.metadata[row % 8 * 4 + p.thread] |= static_cast<uint32_t>(bits) << p.shift;
      auto& index = s.index[static_cast<size_t>(row)];
      if (f.a == Type::tf32) {
        index.push_back(2 * i + element);
      } else if (nibbles) {
        for (int pair : {first, second})
          index.push_back(8 * i + 2 * pair), index.push_back(8 * i + 2 * pair + 1);
      } else {
        index.push_back(4 * i + first), index.push_back(4 * i + second);
      }
    }
  auto number = [&](Type t, double* value) -> uint64_t {
    if (!integer) {
      const uint32_t x = g.element(bits_of(t), how);
      *value = value_of(t, x);
      return x;
    }
    const bool is_signed = t == Type::s8 || t == Type::s4;
    const int low = is_signed ? -(1 << (width - 1)) : 0;
    const int x = low + static_cast<int>(g.next(1u << width));
    *value = x;
    return static_cast<uint64_t>(static_cast<int64_t>(x));
  };
  w.fill(
      [&](int row, int i) {
        return number(f.a,
                      &s.dense[row][s.index[static_cast<size_t>(row)][static_cast<size_t>(i)]]);
      },
      [&](int k, int n) { return number(f.b, &s.b[k][n]); },
      [&](int row, int n) -> uint64_t {
        if (integer) {
          const int32_t x = static_cast<int32_t>(g.next(1000000)) - 500000;
          s.c[row][n] = x;
          return static_cast<uint32_t>(x);
        }
        const bool half = f.c == Type::f16;
        const uint32_t x = g.element(half ? bits_of(Type::f16) : Bits{23, 8}, how);
        s.c[row][n] = half ? value_of(Type::f16, x) : double{std::bit_cast<float>(x)};
        return x;
      });
}

uint32_t rounded(Type t, double exact) {
  if (t == Type::f16)
    return std::isnan(exact) ? 0x7fffu : std::bit_cast<uint16_t>(static_cast<_Float16>(exact));
  return std::isnan(exact) ? 0x7fffffffu : std::bit_cast<uint32_t>(static_cast<float>(exact));
}

// From the dense matrix: zeros take no part, so the step is that of a dense product.
uint32_t expected(const MmaForm& f, const SparseCase& s, int row, int n) {
  std::vector<double> a[2], b[2];
  double sum = s.c[row][n];
  const bool fp8 = f.a == Type::e4m3 || f.a == Type::e5m2;
  for (int column : s.index[static_cast<size_t>(row)]) {
    // fp8: even chunks of four first, then the odd ones.
    const size_t part = fp8 ? static_cast<size_t>(column / 4 % 2) : 0;
    a[part].push_back(s.dense[row][column]);
    b[part].push_back(s.b[column][n]);
    sum += s.dense[row][column] * s.b[column][n];
  }
  if (f.d == Type::s32) return static_cast<uint32_t>(static_cast<int64_t>(sum));
  const bool half = f.d == Type::f16;
  if (!fp8) return model_step(f.a, f.b, half, 25, a[0], b[0], s.c[row][n]);
  uint32_t z = 0;
  auto widened = [&] { return half ? value_of(Type::f16, z) : double{std::bit_cast<float>(z)}; };
  for (size_t part : {0, 1})
    z = model_step(Type::f16, Type::f16, half, 25, a[part], b[part], widened());
  return rounded(f.d, s.c[row][n] + widened());
}

TEST(MmaSparse, EveryFormAndSelector) {
  Generator g;
  size_t forms = 0;
  for (MmaForm f : sparse_forms())
    for (f.selector = 0; check(f).ok(); ++f.selector)
      for (Fill how : kFills) {
        WarpFragments w(f);
        SparseCase s;
        fill(s, f, how, g, w);
        mma(f, w.operands, TensorMode::hw);
        int bad = 0;
        for (int row = 0; row < 16; ++row)
          for (int n = 0; n < 8; ++n) bad += w.result(row, n) != expected(f, s, row, n);
        EXPECT_EQ(bad, 0) << "k" << f.k << ptx::name(f.d) << ptx::name(f.a) << " selector "
                          << f.selector << " fill " << int(how);
        forms += how == Fill::narrow;
      }
  EXPECT_EQ(forms, 3u * (4 + 2) + (4 + 2) + 2 * (2 + 1) + 2 * (2 + 1) + 2);
}

std::string registers(char name, int count) {
  std::string s;
  for (int r = 0; r < count; ++r) s += fmt::format("{}%{}{}", r ? "," : "{", name, r);
  return s + "}";
}

// One warp loads its fragments, multiplies and stores; the result is left in w.
void run_in_kernel(const MmaForm& f, const char* kind, WarpFragments* w) {
  const MmaRegisters n = registers_of(f);
  std::vector<uint32_t> in;
  std::string loads;
  const auto load = [&](char name, int count, int at) {
    for (int r = 0; r < count; ++r)
      loads += fmt::format("ld.global.b32 %{}{},[%p+{}];\n", name, r, 4 * (at + r));
  };
  load('a', n.a, 0), load('b', n.b, n.a), load('c', n.c, n.a + n.b);
  const int words = n.a + n.b + n.c + 1;
  for (size_t l = 0; l < 32; ++l) {
    for (int r = 0; r < n.a; ++r) in.push_back(static_cast<uint32_t>(w->get(w->a, r, l)));
    for (int r = 0; r < n.b; ++r) in.push_back(static_cast<uint32_t>(w->get(w->b, r, l)));
    for (int r = 0; r < n.c; ++r) in.push_back(static_cast<uint32_t>(w->get(w->c, r, l)));
    in.push_back(w->metadata[l]);
  }
  std::string text = fmt::format(
      ".visible .entry k(.param .u64 in,.param .u64 out) {{\n.reg .b32 "
      "%a<9>,%b<9>,%c<9>,%d<9>,%e,%t;\n"
      ".reg .b64 %p;\nmov.u32 %t,%tid.x;\nld.param.u64 %p,[in];\nmad.wide.u32 %p,%t,{},%p;\n{}"
      "ld.global.b32 %e,[%p+{}];\n",
      4 * words, loads, 4 * (words - 1));
  text += fmt::format("mma.{}.sync.aligned.m16n8k{}.row.col{}.{}.{}.{}.{} {},{},{},{},%e,{};\n",
                      kind, f.k, f.saturate ? ".satfinite" : "", ptx::name(f.d), ptx::name(f.a),
                      ptx::name(f.b), ptx::name(f.c), registers('d', n.d), registers('a', n.a),
                      registers('b', n.b), registers('c', n.c), f.selector);
  text += fmt::format("ld.param.u64 %p,[out];\nmad.wide.u32 %p,%t,{},%p;\n", 4 * n.d);
  for (int r = 0; r < n.d; ++r) text += fmt::format("st.global.b32 [%p+{}],%d{};\n", 4 * r, r);
  test::PtxRun p;
  p.ptx = text + "ret;\n}\n";
  p.buffers = {test::buffer_of("in", in, true),
               test::output_of("out", static_cast<size_t>(128 * n.d))};
  p.block = {32, 1, 1};
  p.go();
  ASSERT_EQ(p.error, "") << p.ptx;
  EXPECT_EQ(p.kinds(), "");
  EXPECT_EQ(p.result.kernels.at(0).tensor_flop, 2.0 * 16 * 8 * f.k);
  const auto d = test::values_of<uint32_t>(p.buffers[1]);
  for (size_t l = 0; l < 32; ++l)
    for (int r = 0; r < n.d; ++r)
      w->set(w->d, r, l, d[l * static_cast<size_t>(n.d) + static_cast<size_t>(r)]);
}

// Both spellings of the metadata's order are executed alike; sums that leave the range are cut.
TEST(MmaSparse, InKernels) {
  Generator g;
  int cut = 0;
  for (MmaForm f : sparse_forms())
    for (const char* kind : {"sp", "sp::ordered_metadata"})
      for (bool saturate : {false, true}) {
        if (saturate && f.d != Type::s32) continue;
        f.saturate = saturate;
        f.selector = 0;
        if (MmaForm next = f; ++next.selector, check(next).ok()) f.selector = 1;
        WarpFragments w(f);
        SparseCase s;
        fill(s, f, Fill::narrow, g, w);
        if (saturate)  // accumulators at the ends of the range
          for (int row = 0; row < 16; ++row)
            for (int n = 0; n < 8; ++n) {
              const int32_t x = n % 2 ? INT32_MAX : INT32_MIN;
              s.c[row][n] = x;
              w.set(w.c, row / 8 * 2 + n % 2, static_cast<size_t>(row % 8 * 4 + n / 2),
                    static_cast<uint32_t>(x));
            }
        run_in_kernel(f, kind, &w);
        int bad = 0;
        for (int row = 0; row < 16; ++row)
          for (int n = 0; n < 8; ++n) {
            uint32_t want = expected(f, s, row, n);
            if (saturate) {
              double sum = s.c[row][n];
              for (int column : s.index[static_cast<size_t>(row)])
                sum += s.dense[row][column] * s.b[column][n];
              want = static_cast<uint32_t>(
                  static_cast<int32_t>(std::clamp<double>(sum, INT32_MIN, INT32_MAX)));
              cut += sum > INT32_MAX || sum < INT32_MIN;
            }
            bad += w.result(row, n) != want;
          }
        EXPECT_EQ(bad, 0) << kind << " k" << f.k << ptx::name(f.d) << ptx::name(f.a) << saturate;
      }
  EXPECT_GT(cut, 100);
}

}  // namespace
}  // namespace ptxbench::emu
