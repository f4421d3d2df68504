// mma.sync against plain models on random and adversarial operands, at every instruction-set level.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>

#include "emu/mma_forms.h"
#include "emu/tensor_model.h"

namespace ptxbench::emu {
namespace {

using plan::TensorMode;

std::vector<MmaForm> float_forms() {
  std::vector<MmaForm> out;
  for (Type d : {Type::f32, Type::f16}) {
    for (int k : {8, 16}) out.push_back({16, 8, k, d, Type::f16, Type::f16, d});
    for (int k : {16, 32})
      for (Type a : {Type::e4m3, Type::e5m2})
        for (Type b : {Type::e4m3, Type::e5m2}) out.push_back({16, 8, k, d, a, b, d});
  }
  for (int k : {8, 16}) out.push_back({16, 8, k, Type::f32, Type::bf16, Type::bf16, Type::f32});
  for (int k : {4, 8}) out.push_back({16, 8, k, Type::f32, Type::tf32, Type::tf32, Type::f32});
  return out;
}

struct Matrices {
  std::vector<std::vector<double>> a{16}, b{8};  // rows of A, columns of B
  double c[16][8];

  Matrices(const MmaForm& f, Fill fill, Generator& g, WarpFragments& w) {
    for (auto& row : a) row.resize(static_cast<size_t>(f.k));
    for (auto& column : b) column.resize(static_cast<size_t>(f.k));
    w.fill(
        [&](int row, int k) {
          const uint32_t x = g.element(bits_of(f.a), fill);
          a[static_cast<size_t>(row)][static_cast<size_t>(k)] = value_of(f.a, x);
          return x;
        },
        [&](int k, int n) {
          const uint32_t x = g.element(bits_of(f.b), fill);
          b[static_cast<size_t>(n)][static_cast<size_t>(k)] = value_of(f.b, x);
          return x;
        },
        [&](int row, int n) {
          const bool half = f.c == Type::f16;
          const uint32_t x = g.element(half ? bits_of(Type::f16) : Bits{23, 8}, fill);
          c[row][n] = half ? value_of(Type::f16, x) : double{std::bit_cast<float>(x)};
          return x;
        });
  }
};

uint32_t round_to(Type t, double exact) {
  if (t == Type::f16)
    return std::isnan(exact) ? 0x7fffu : std::bit_cast<uint16_t>(static_cast<_Float16>(exact));
  return std::isnan(exact) ? 0x7fffffffu : std::bit_cast<uint32_t>(static_cast<float>(exact));
}
double widened(Type t, uint32_t bits) {
  return t == Type::f16 ? value_of(Type::f16, bits) : double{std::bit_cast<float>(bits)};
}

uint32_t expected_hw(const MmaForm& f, const std::vector<double>& a, const std::vector<double>& b,
                     double c) {
  const bool half = f.d == Type::f16;
  if (f.a != Type::e4m3 && f.a != Type::e5m2) return model_step(f.a, f.b, half, 25, a, b, c);
  uint32_t z = 0;
  for (size_t part : {0, 1}) {
    std::vector<double> x, y;
    for (size_t k = 0; k < a.size(); ++k)
      if (k % 4 / 2 == part) x.push_back(a[k]), y.push_back(b[k]);
    z = model_step(Type::f16, Type::f16, half, 25, x, y, widened(f.d, z));
  }
  return round_to(f.d, c + widened(f.d, z));
}

uint32_t expected_f32(const MmaForm& f, const std::vector<double>& a, const std::vector<double>& b,
                      double c) {
  const uint32_t sum = model_f32(a, b, static_cast<float>(c));
  return f.d == Type::f16 ? round_to(f.d, double{std::bit_cast<float>(sum)}) : sum;
}

void compare(TensorMode mode) {
  Generator g;
  const tensor::Levels& levels = tensor::levels();
  size_t compared = 0;
  for (const MmaForm& form : float_forms())
    for (Fill fill : kFills) {
      ASSERT_TRUE(check(form).ok()) << check(form).error().message;
      auto w = std::make_unique<WarpFragments>(form);
      const Matrices m(form, fill, g, *w);
      for (int i = 0; i < levels.count; ++i) {
        tensor::mma_at(form, w->operands, mode, *levels.level[i]);
        int bad = 0;
        for (int row = 0; row < 16; ++row)
          for (int n = 0; n < 8; ++n, ++compared) {
            const auto& a = m.a[static_cast<size_t>(row)];
            const auto& b = m.b[static_cast<size_t>(n)];
            const uint32_t want = mode == TensorMode::hw ? expected_hw(form, a, b, m.c[row][n])
                                                         : expected_f32(form, a, b, m.c[row][n]);
            const uint64_t got = w->result(row, n);
            // Where K is padded a sum of zeros is +0 in mode f32.
            const bool zeros = mode == TensorMode::f32 && ((want | got) & 0x7fff7fff) == 0;
            if (got != want && !zeros && ++bad == 1)
              ADD_FAILURE() << "k " << form.k << " types " << ptx::name(form.a) << " "
                            << ptx::name(form.b) << " " << ptx::name(form.d) << " fill "
                            << int(fill) << " " << levels.level[i]->level << " row " << row
                            << " column " << n << ": " << std::hex << got << " instead of " << want;
          }
        EXPECT_EQ(bad, 0);
      }
    }
  EXPECT_EQ(compared, float_forms().size() * 9 * 128 * static_cast<size_t>(levels.count));
}

TEST(MmaProperty, HardwareMode) { compare(TensorMode::hw); }
TEST(MmaProperty, F32ModeIsTheFixedOrderAtEveryLevel) { compare(TensorMode::f32); }

// Integers of both widths and signs; accumulators at the edges of 32 bits.
TEST(MmaProperty, Integers) {
  Generator g;
  for (auto [m, k, width] :
       {std::tuple{8, 16, 8}, {16, 16, 8}, {16, 32, 8}, {8, 32, 4}, {16, 32, 4}, {16, 64, 4}})
    for (bool a_signed : {false, true})
      for (bool b_signed : {false, true})
        for (bool saturate : {false, true}) {
          auto type = [&](bool s) {
            return width == 8 ? s ? Type::s8 : Type::u8 : s ? Type::s4 : Type::u4;
          };
          MmaForm f{m, 8, k, Type::s32, type(a_signed), type(b_signed), Type::s32, saturate};
          ASSERT_TRUE(check(f).ok()) << check(f).error().message;
          int64_t a[16][64], b[64][8], c[16][8];
          const int64_t one = int64_t{1} << width;
          auto number = [&](bool is_signed) {  // a third at the extremes
            const int64_t low = is_signed ? -one / 2 : 0, high = low + one - 1;
            const uint32_t kind = g.next(6);
            return kind == 0 ? low : kind == 1 ? high : low + g.next(static_cast<uint32_t>(one));
          };
          WarpFragments w(f);
          w.fill(
              [&](int row, int i) { return static_cast<uint64_t>(a[row][i] = number(a_signed)); },
              [&](int i, int n) { return static_cast<uint64_t>(b[i][n] = number(b_signed)); },
              [&](int row, int n) {
                const uint32_t kind = g.next(4);
                c[row][n] = kind == 0   ? INT32_MAX - static_cast<int>(g.next(1000))
                            : kind == 1 ? INT32_MIN + static_cast<int>(g.next(1000))
                                        : static_cast<int32_t>(g.random());
                return static_cast<uint64_t>(c[row][n]);
              });
          mma(f, w.operands, TensorMode::hw);
          int bad = 0;
          for (int row = 0; row < m; ++row)
            for (int n = 0; n < 8; ++n) {
              int64_t sum = c[row][n];
              for (int i = 0; i < k; ++i) sum += a[row][i] * b[i][n];
              if (saturate) sum = std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX);
              bad += w.result(row, n) != static_cast<uint32_t>(sum);
            }
          EXPECT_EQ(bad, 0) << "m" << m << " k" << k << " " << ptx::name(f.a) << ptx::name(f.b)
                            << saturate;
        }
}

TEST(MmaProperty, BitsAndDoubles) {
  Generator g;
  for (auto [m, k] : {std::pair{8, 128}, {16, 128}, {16, 256}})
    for (bool exclusive_or : {false, true}) {
      MmaForm f{m, 8, k, Type::s32, Type::b1, Type::b1, Type::s32, false, exclusive_or};
      ASSERT_TRUE(check(f).ok()) << check(f).error().message;
      bool a[16][256], b[256][8];
      WarpFragments w(f);
      w.fill([&](int row, int i) { return a[row][i] = g.next(2); },
             [&](int i, int n) { return b[i][n] = g.next(3) != 0; },
             [&](int row, int n) { return row * 8 + n == 3 ? 0xffffff00u : 100u * n; });
      mma(f, w.operands, TensorMode::hw);
      for (int row = 0; row < m; ++row)
        for (int n = 0; n < 8; ++n) {
          uint32_t sum = row * 8 + n == 3 ? 0xffffff00u : 100u * static_cast<uint32_t>(n);
          for (int i = 0; i < k; ++i)
            sum += exclusive_or ? a[row][i] != b[i][n] : a[row][i] && b[i][n];
          EXPECT_EQ(w.result(row, n), sum);
        }
    }
  for (auto [m, k] : {std::pair{8, 4}, {16, 4}, {16, 8}, {16, 16}}) {
    MmaForm f{m, 8, k, Type::f64, Type::f64, Type::f64, Type::f64};
    ASSERT_TRUE(check(f).ok()) << check(f).error().message;
    double a[16][16], b[16][8], c[16][8];
    const double edges[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 5e-324, 1.7e308, -1e-310};
    auto number = [&] {
      return g.next(60) == 0 ? edges[g.next(8)]
                             : std::ldexp(g.next(1u << 31) - 0x1p30, static_cast<int>(g.next(60)));
    };
    WarpFragments w(f);
    w.fill([&](int row, int i) { return std::bit_cast<uint64_t>(a[row][i] = number()); },
           [&](int i, int n) { return std::bit_cast<uint64_t>(b[i][n] = number()); },
           [&](int row, int n) { return std::bit_cast<uint64_t>(c[row][n] = number()); });
    mma(f, w.operands, TensorMode::hw);
    for (int row = 0; row < m; ++row)
      for (int n = 0; n < 8; ++n) {
        // A NaN among the operands goes on: that of B before the sum before that of A (recorded).
        uint64_t want = std::bit_cast<uint64_t>(c[row][n]);
        for (int i = 0; i < k; ++i) {
          const double x = a[row][i], y = b[i][n], sum = std::bit_cast<double>(want);
          const double r = std::fma(x, y, sum), nan = y != y ? y : sum != sum ? sum : x;
          want = std::isnan(r) ? nan == nan ? 0xfff8000000000000u : std::bit_cast<uint64_t>(nan)
                               : std::bit_cast<uint64_t>(r);
        }
        EXPECT_EQ(w.result(row, n), want) << row << " " << n;
      }
  }
}

// m8n8k4.f16: four 8x8 products of eight threads each; fragments of every layout from the figures
// of the PTX ISA, numbers in the order of additions that ptxas emits for sm_90.
TEST(MmaProperty, QuadPairs) {
  Generator g;
  for (auto [d, c] :
       {std::pair{Type::f32, Type::f32}, {Type::f32, Type::f16}, {Type::f16, Type::f16}})
    for (bool a_columns : {false, true})
      for (bool b_rows : {false, true})
        for (Fill fill : {Fill::narrow, Fill::wide, Fill::bits, Fill::tiny}) {
          MmaForm f{8, 8, 4, d, Type::f16, Type::f16, c};
          f.a_columns = a_columns, f.b_rows = b_rows;
          ASSERT_TRUE(check(f).ok()) << check(f).error().message;
          WarpFragments w(f);
          float a[4][8][4], b[4][4][8], start[4][8][8];
          auto half = [&](float* value) {
            const uint32_t x = g.element(bits_of(Type::f16), fill);
            *value = static_cast<float>(value_of(Type::f16, x));
            return x;
          };
          for (int lane = 0; lane < 32; ++lane) {
            const int q = lane % 16 / 4, upper = lane >= 16 ? 4 : 0;
            for (int i = 0; i < 4; ++i) {
              float* to = a_columns ? &a[q][i + upper][lane % 4] : &a[q][lane % 4 + upper][i];
              w.put(w.a, i / 2, lane, 16, i % 2, half(to));
              to = b_rows ? &b[q][lane % 4][i + upper] : &b[q][i][lane % 4 + upper];
              w.put(w.b, i / 2, lane, 16, i % 2, half(to));
            }
            for (int i = 0; i < 8; ++i) {
              if (c == Type::f16) {
                w.put(w.c, i / 2, lane, 16, i % 2, half(&start[q][lane % 4 + upper][i]));
                continue;
              }
              const int row = (lane & 1) + (i & 2) + upper, column = (i & 4) + (lane & 2) + (i & 1);
              const uint32_t x = g.element({23, 8}, fill);
              start[q][row][column] = std::bit_cast<float>(x);
              w.put(w.c, i, lane, 32, 0, x);
            }
          }
          mma(f, w.operands, TensorMode::hw);
          int bad = 0;
          for (int lane = 0; lane < 32; ++lane)
            for (int i = 0; i < 8; ++i) {
              const int q = lane % 16 / 4, upper = lane >= 16 ? 4 : 0;
              const bool packed = d == Type::f16;
              const int row = packed ? lane % 4 + upper : (lane & 1) + (i & 2) + upper;
              const int column = packed ? i : (i & 4) + (lane & 2) + (i & 1);
              const float* x = a[q][row];
              auto y = [&](int k) { return b[q][k][column]; };
              const float low = std::fma(x[1], y(1), x[0] * y(0));
              const size_t l = static_cast<size_t>(lane);
              uint64_t want, got;
              if (packed) {
                const float high = std::fma(x[3], y(3), x[2] * y(2));
                want = round_to(Type::f16, double{start[q][row][column] + low + high});
                got = w.get(w.d, i / 2, l) >> (i % 2 * 16) & 0xffff;
              } else {
                const float sum = std::fma(x[3], y(3), std::fma(x[2], y(2), low));
                want = round_to(Type::f32, double{start[q][row][column] + sum});
                got = w.get(w.d, i, l);
              }
              bad += got != want;
            }
          EXPECT_EQ(bad, 0) << ptx::name(d) << ptx::name(c) << a_columns << b_rows << int(fill);
        }
}

// D may be the registers of A, B or C.
TEST(MmaProperty, DestinationMayBeASource) {
  Generator g;
  for (const MmaForm& form : {MmaForm{16, 8, 16, Type::f32, Type::f16, Type::f16, Type::f32},
                              MmaForm{16, 8, 32, Type::f32, Type::e4m3, Type::e4m3, Type::f32},
                              MmaForm{16, 8, 32, Type::s32, Type::s8, Type::s8, Type::s32},
                              MmaForm{16, 8, 16, Type::f16, Type::f16, Type::f16, Type::f16}}) {
    WarpFragments apart(form);
    const Matrices m(form, Fill::narrow, g, apart);
    for (auto source : {&WarpFragments::a, &WarpFragments::c}) {
      WarpFragments w(form);
      std::memcpy(w.a, apart.a, sizeof w.a);
      std::memcpy(w.b, apart.b, sizeof w.b);
      std::memcpy(w.c, apart.c, sizeof w.c);
      for (int r = 0; r < 4; ++r) w.operands.d[r] = reinterpret_cast<uint32_t*>((w.*source)[r]);
      mma(form, apart.operands, TensorMode::hw);
      mma(form, w.operands, TensorMode::hw);
      for (int r = 0; r < registers_of(form).d; ++r)
        EXPECT_EQ(std::memcmp(w.operands.d[r], apart.d[r], 128), 0);
    }
  }
}

TEST(MmaProperty, RefusesByName) {
  auto refused = [](MmaForm f, const char* word) {
    auto r = check(f);
    return !r.ok() && r.error().kind == "unsupported" &&
           r.error().message.find(word) != std::string::npos;
  };
  EXPECT_TRUE(refused({16, 8, 32, Type::f32, Type::f16, Type::f16, Type::f32}, "shape"));
  EXPECT_TRUE(refused({16, 8, 16, Type::f32, Type::f16, Type::bf16, Type::f32}, "types"));
  EXPECT_TRUE(refused({16, 8, 16, Type::f16, Type::bf16, Type::bf16, Type::f16}, "types"));
  EXPECT_TRUE(refused({16, 8, 32, Type::f32, Type::e2m1, Type::e2m1, Type::f32}, "e2m1"));
  EXPECT_TRUE(refused({16, 8, 16, Type::f32, Type::f16, Type::f16, Type::f32, true}, "satfinite"));
}

}  // namespace
}  // namespace ptxbench::emu
