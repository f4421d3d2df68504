// Sparse wgmma, wgmma on single bits and .satfinite, against models of the dense product.
#include <gtest/gtest.h>

#include <memory>

#include "emu/sparse.h"
#include "emu/tensor_model.h"
#include "emu/wgmma_forms.h"

namespace ptxbench::emu {
namespace {

using plan::TensorMode;

struct Operands {
  std::vector<uint8_t> shared = std::vector<uint8_t>(96 * 1024);
  std::unique_ptr<Fragments> run = std::make_unique<Fragments>();
  uint32_t metadata[4][32] = {};
  MatrixDescriptor a{0, 128, 512, 0, 0}, b{32768, 128, 1024, 0, 0};

  Operands() {
    auto bits = [](const MatrixDescriptor& d) {
      return uint64_t{d.start >> 4} | uint64_t{d.leading >> 4} << 16 |
             uint64_t{d.stride >> 4} << 32;
    };
    WgmmaOperands& o = run->operands;
    o.shared = shared.data();
    o.shared_bytes = static_cast<uint32_t>(shared.size());
    o.a_descriptor = bits(a), o.b_descriptor = bits(b);
    for (int w = 0; w < 4; ++w) o.metadata[w] = metadata[w];
  }
  void put(const MatrixDescriptor& d, bool mn_major, int bytes, int mn, int k, uint64_t v) {
    std::memcpy(&shared[element_address(d, mn_major, bytes, mn, k)], &v,
                static_cast<size_t>(bytes));
  }
  void put_a_register(int bytes, int row, int k, uint64_t v) {
    const int word = k * bytes / 4;
    std::memcpy(reinterpret_cast<uint8_t*>(
                    &run->a[row / 16][word / 4 * 2 + row / 8 % 2][row % 8 * 4 + word % 4]) +
                    k * bytes % 4,
                &v, static_cast<size_t>(bytes));
  }
};

// Dense columns of the stored elements of a row; writes the metadata as the figures of the PTX ISA
// place it: each warp of the group describes its sixteen rows like mma.sp.
std::vector<int> choose(const WgmmaForm& f, int row, Generator& g, Operands& o) {
  std::vector<int> index;
  const bool narrow = bytes_of(f.a) == 1, tf32 = f.a == Type::tf32;
  const int chunks = f.k / (tf32 ? 2 : 4);
  for (int c = 0; c < chunks; ++c) {
    int first = static_cast<int>(g.next(3)),
        second = first + 1 + static_cast<int>(g.next(3u - first));
    if (tf32) first = 2 * static_cast<int>(g.next(2)), second = first + 1;
    const int thread = narrow ? row % 16 / 8 + 2 * (c / 8) : 2 * f.selector + c / 4;
    const int shift = narrow ? c % 8 * 4 : c % 4 * 4 + row % 16 / 8 * 16;
    o.metadata[row / 16][row % 8 * 4 + thread] |= static_cast<uint32_t>(first | second << 2)
                                                  << shift;
    if (tf32)
      index.push_back(2 * c + first / 2);
    else
      index.push_back(4 * c + first), index.push_back(4 * c + second);
  }
  return index;
}

void run_sparse(WgmmaForm f, Fill fill, Generator& g, bool scale_d) {
  f.sparse = true;
  ASSERT_TRUE(check(f).ok()) << check(f).error().message;
  Operands o;
  const int bytes = bytes_of(f.a);
  const bool integer = f.d == Type::s32;
  auto number = [&](Type t, double* value) -> uint64_t {
    if (integer) {
      const int x = static_cast<int>(g.next(256)) - (t == Type::s8 ? 128 : 0);
      *value = x;
      return static_cast<uint8_t>(x);
    }
    const uint32_t x = g.element(bits_of(t), fill);
    *value = value_of(t, x);
    return x;
  };
  std::vector<std::vector<int>> index;
  std::vector<std::vector<double>> a(64), b(static_cast<size_t>(f.n));
  for (int row = 0; row < 64; ++row) {
    index.push_back(choose(f, row, g, o));
    for (int i = 0; i < f.k / 2; ++i) {
      double value;
      const uint64_t x = number(f.a, &value);
      a[static_cast<size_t>(row)].push_back(value);
      if (f.a_in_registers)
        o.put_a_register(bytes, row, i, x);
      else
        o.put(o.a, f.a_mn_major, bytes, row, i, x);
    }
  }
  for (int n = 0; n < f.n; ++n)
    for (int k = 0; k < f.k; ++k) {
      double value;
      o.put(o.b, f.b_mn_major, bytes, n, k, number(f.b, &value));
      b[static_cast<size_t>(n)].push_back(value);
    }
  std::vector<double> start;
  for (int row = 0; row < 64; ++row)
    for (int n = 0; n < f.n; ++n) {
      const Bits format = f.d == Type::f16 ? bits_of(Type::f16) : Bits{23, 8};
      const uint32_t x = integer ? g.random() : g.element(format, fill);
      float wide;
      std::memcpy(&wide, &x, 4);
      if (f.d == Type::f16)
        o.run->set16(row, n, x), start.push_back(value_of(Type::f16, x));
      else
        o.run->at(row, n) = x, start.push_back(
                                   integer ? static_cast<double>(static_cast<int32_t>(x)) : wide);
    }
  o.run->operands.scale_d = scale_d;
  wgmma(f, o.run->operands, TensorMode::hw);
  int bad = 0;
  for (int row = 0; row < 64; ++row)
    for (int n = 0; n < f.n; ++n) {
      const double c = scale_d ? start[static_cast<size_t>(row * f.n + n)] : 0;
      const auto& x = a[static_cast<size_t>(row)];
      std::vector<double> y;
      double sum = c;
      for (size_t i = 0; i < x.size(); ++i) {
        y.push_back(
            b[static_cast<size_t>(n)][static_cast<size_t>(index[static_cast<size_t>(row)][i])]);
        sum += x[i] * y[i];
      }
      uint32_t want;
      if (integer)
        want = static_cast<uint32_t>(static_cast<int64_t>(sum));
      else if (f.d == Type::f16)
        want = model_step(f.a, f.b, true, bytes == 1 ? 13 : 25, x, y, c);
      else
        want = model_hw(f.a, f.b, x, y, static_cast<float>(c));
      bad += (f.d == Type::f16 ? o.run->get16(row, n) : o.run->at(row, n)) != want;
    }
  EXPECT_EQ(bad, 0) << "n" << f.n << "k" << f.k << ptx::name(f.d) << ptx::name(f.a) << " fill "
                    << int(fill) << f.a_in_registers << f.a_mn_major << f.b_mn_major;
}

TEST(WgmmaSparse, EveryType) {
  Generator g;
  for (Fill fill : {Fill::narrow, Fill::wide, Fill::bits, Fill::tiny, Fill::specials}) {
    const bool scale_d = fill != Fill::wide;
    for (int selector : {0, 1})
      for (bool registers : {false, true}) {
        auto form = [&](int k, Type d, Type t) {
          WgmmaForm f{16, k, t, t, d};
          f.a_in_registers = registers, f.selector = selector;
          return f;
        };
        run_sparse(form(32, Type::f32, Type::f16), fill, g, scale_d);
        run_sparse(form(32, Type::f16, Type::f16), fill, g, scale_d);
        run_sparse(form(32, Type::f32, Type::bf16), fill, g, scale_d);
        run_sparse(form(16, Type::f32, Type::tf32), fill, g, scale_d);
        WgmmaForm transposed = form(32, Type::f32, Type::bf16);
        transposed.b_mn_major = true, transposed.a_mn_major = !registers;
        run_sparse(transposed, fill, g, scale_d);
        if (selector) continue;
        run_sparse(form(64, Type::f32, Type::e4m3), fill, g, scale_d);
        run_sparse(form(64, Type::f16, Type::e5m2), fill, g, scale_d);
        run_sparse(form(64, Type::s32, Type::s8), fill, g, scale_d);
        run_sparse(form(64, Type::s32, Type::u8), fill, g, scale_d);
      }
  }
}

TEST(WgmmaIntegers, SatfiniteClampsTheTotal) {
  Generator g;
  for (bool saturate : {false, true}) {
    WgmmaForm f{8, 32, Type::s8, Type::u8, Type::s32};
    f.saturate = saturate;
    ASSERT_TRUE(check(f).ok());
    Operands o;
    std::vector<int> a(64 * 32), b(8 * 32);
    for (int row = 0; row < 64; ++row)
      for (int k = 0; k < 32; ++k)
        o.put(o.a, false, 1, row, k,
              static_cast<uint8_t>(a[static_cast<size_t>(row * 32 + k)] = row % 2 ? 127 : -128));
    for (int n = 0; n < 8; ++n)
      for (int k = 0; k < 32; ++k)
        o.put(o.b, false, 1, n, k,
              static_cast<uint64_t>(b[static_cast<size_t>(n * 32 + k)] =
                                        static_cast<int>(g.next(256))));
    std::vector<int32_t> c;
    for (int row = 0; row < 64; ++row)
      for (int n = 0; n < 8; ++n) {
        const int32_t x = g.next(2) ? INT32_MAX - static_cast<int>(g.next(600000))
                                    : INT32_MIN + static_cast<int>(g.next(600000));
        c.push_back(x), o.run->at(row, n) = static_cast<uint32_t>(x);
      }
    wgmma(f, o.run->operands, TensorMode::hw);
    int clamped = 0;
    for (int row = 0; row < 64; ++row)
      for (int n = 0; n < 8; ++n) {
        int64_t sum = c[static_cast<size_t>(row * 8 + n)];
        for (int k = 0; k < 32; ++k)
          sum += a[static_cast<size_t>(row * 32 + k)] * b[static_cast<size_t>(n * 32 + k)];
        clamped += sum != static_cast<int32_t>(sum);
        if (saturate) sum = std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX);
        EXPECT_EQ(o.run->at(row, n), static_cast<uint32_t>(sum));
      }
    EXPECT_GT(clamped, 20);
  }
}

TEST(WgmmaIntegers, BitsInCommon) {
  Generator g;
  for (int n : {8, 24, 48, 256}) {
    const WgmmaForm f{n, 256, Type::b1, Type::b1, Type::s32};
    ASSERT_TRUE(check(f).ok()) << check(f).error().message;
    Operands o;
    std::vector<uint8_t> a(64 * 32), b(static_cast<size_t>(n) * 32);
    for (size_t i = 0; i < a.size(); ++i)
      o.put(o.a, false, 1, static_cast<int>(i / 32), static_cast<int>(i % 32),
            a[i] = static_cast<uint8_t>(g.random()));
    for (size_t i = 0; i < b.size(); ++i)
      o.put(o.b, false, 1, static_cast<int>(i / 32), static_cast<int>(i % 32),
            b[i] = static_cast<uint8_t>(g.random()));
    for (int row = 0; row < 64; ++row)
      for (int c = 0; c < n; ++c) o.run->at(row, c) = 0xffffffc0u + static_cast<uint32_t>(c);
    wgmma(f, o.run->operands, TensorMode::hw);
    int bad = 0;
    for (int row = 0; row < 64; ++row)
      for (int c = 0; c < n; ++c) {
        uint32_t sum = 0xffffffc0u + static_cast<uint32_t>(c);
        for (int bit = 0; bit < 256; ++bit)
          sum += a[static_cast<size_t>(row * 32 + bit / 8)] >> bit % 8 &
                 b[static_cast<size_t>(c * 32 + bit / 8)] >> bit % 8 & 1;
        bad += o.run->at(row, c) != sum;
      }
    EXPECT_EQ(bad, 0) << n;
  }
}

}  // namespace
}  // namespace ptxbench::emu
