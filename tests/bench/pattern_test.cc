// Planted faults: each must be named as what it is, which also says that no other hypothesis claims
// it. The faulty results are computed from the definition of the fault; swizzle faults by writing
// tiles into a shared-memory image and running the emulated instruction on it.
#include <gtest/gtest.h>

#include <cstring>

#include "bench/pattern/explain.h"
#include "emu/tensor_core.h"
#include "gemm_data.h"

namespace ptxbench::bench {
namespace {

using Matrix = std::vector<uint16_t>;
using Range = std::pair<int64_t, int64_t>;

constexpr int64_t kM = 192, kN = 256, kK = 448;

class Pattern : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    gemm_ = new Gemm(make_gemm(kM, kN, kK, 21));
    right_ = new Matrix(honest(*gemm_));
  }
  static void TearDownTestSuite() {
    delete gemm_;
    delete right_;
    gemm_ = nullptr;
    right_ = nullptr;
  }

  Explanation explain(const Matrix& c) { return explain(*gemm_, c); }
  Explanation explain(const Gemm& g, const Matrix& c) {
    std::vector<uint64_t> bad_tiles;
    const Correctness judged = judge(g, c, 1, &bad_tiles);
    EXPECT_FALSE(judged.passed);
    return explain_gemm({g.a, g.b, c, g.m, g.n, g.k}, bad_tiles);
  }
  void expect(const Matrix& c, const char* kind, const char* words) {
    SCOPED_TRACE(words);
    const Explanation e = explain(c);
    EXPECT_EQ(e.kind, kind) << e.text;
    EXPECT_NE(e.text.find(words), std::string::npos) << e.text;
  }

  static float a(int64_t row, int64_t k) {
    return numeric::bf16_to_float(gemm_->a[static_cast<size_t>(row * kK + k)]);
  }
  static float b(int64_t column, int64_t k) {
    return numeric::bf16_to_float(gemm_->b[static_cast<size_t>(column * kK + k)]);
  }
  // Every element by a formula of row, column.
  template <class F>
  static Matrix fill(F element) {
    Matrix c(static_cast<size_t>(kM * kN));
    for (int64_t i = 0; i < kM; ++i)
      for (int64_t j = 0; j < kN; ++j)
        c[static_cast<size_t>(i * kN + j)] = numeric::bf16_from_float(element(i, j));
    return c;
  }
  // Sum over the listed parts of K.
  static float sum(int64_t i, int64_t j, std::initializer_list<Range> parts) {
    float total = 0;
    for (const Range& part : parts)
      for (int64_t k = part.first; k < part.second; ++k) total += a(i, k) * b(j, k);
    return total;
  }
  static float value(int64_t i, int64_t j) {
    return numeric::bf16_to_float((*right_)[static_cast<size_t>(i * kN + j)]);
  }

  static Gemm* gemm_;
  static Matrix* right_;
};
Gemm* Pattern::gemm_ = nullptr;
Matrix* Pattern::right_ = nullptr;

TEST_F(Pattern, ReductionFaults) {
  expect(fill([](auto i, auto j) {
           return sum(i, j, {{0, kK - 32}});
         }),
         "k-tail", "the last 32 of K");
  expect(fill([](auto i, auto j) {
           return sum(i, j, {{0, kK - 5}});
         }),
         "k-tail", "the last 5 of K");
  expect(fill([](auto i, auto j) { return sum(i, j, {{0, 256}}); }), "k-tail", "the last 192 of K");
  expect(fill([](auto i, auto j) { return sum(i, j, {{64, kK}}); }), "k-head", "the first 64 of K");
  expect(fill([](auto i, auto j) {
           return sum(i, j, {{0, 128}, {192, kK}});
         }),
         "k-block", "K 128..191 left out");
  expect(fill([](auto i, auto j) {
           return sum(i, j, {{0, kK}, {64, 128}});
         }),
         "k-twice", "K 64..127 counted twice");
  expect(fill([](auto i, auto j) {
           return sum(i, j, {{0, 256}, {0, 64}, {320, kK}});
         }),
         "k-stale", "at K 256..319 A and B still or already hold the values of K 0..63");
  expect(fill([](auto i, auto j) {
           float total = sum(i, j, {{0, 256}, {320, kK}});
           for (int64_t k = 256; k < 320; ++k) total += a(i, k - 256) * b(j, k);
           return total;
         }),
         "k-stale", "at K 256..319 A still or already holds the values of K 0..63");
}

// The same faults in one warpgroup's rows or a few tiles only.
TEST_F(Pattern, FaultsInFewTiles) {
  auto only = [](int64_t i, int64_t j) { return i >= 128 && i < 160 && j >= 64 && j < 96; };
  expect(fill([&](auto i, auto j) {
           return sum(i, j, {{0, only(i, j) ? kK - 64 : kK}});
         }),
         "k-tail", "the last 64 of K");
  expect(fill([&](auto i, auto j) { return only(i, j) ? 0 : value(i, j); }), "zeros", "zeros");
  expect(fill([&](auto i, auto j) { return only(i, j) ? NAN : value(i, j); }), "nan", "NaN");
  expect(fill([&](auto i, auto j) { return only(i, j) ? value(i - 64, j + 128) : value(i, j); }),
         "shifted", "-64 rows and +128 columns");
}

TEST_F(Pattern, ContentFaults) {
  expect(Matrix(kM * kN, 0), "zeros", "zeros");
  expect(Matrix(kM * kN, 0x3f80), "constant", "1");
  expect(fill([](auto i, auto j) { return 0.125f * value(i, j); }), "scaled", "times 0.125");
  expect(fill([](auto i, auto j) { return 2 * sum(i, j, {{0, kK}}); }), "scaled", "added up twice");
  expect(fill([](auto i, auto j) {
           return sum(i, j, {{0, kK}}) + 17;
         }),
         "bias", "a constant added");
  expect(fill([](auto i, auto j) {
           return sum(i, j, {{0, kK}}) + 5 * static_cast<float>(j % 7 + 1);
         }),
         "bias", "per column");
  expect(fill([](auto i, auto j) {
           return sum(i, j, {{0, kK}}) - 5 * static_cast<float>(i % 9 + 1);
         }),
         "bias", "per row");
}

TEST_F(Pattern, LayoutFaults) {
  expect(fill([](auto i, auto j) { return i < kN && j < kM ? value(j, i) : value(i, j); }),
         "transposed-output", "the transposed result");
  expect(fill([](auto i, auto j) {
           const int64_t linear = i * kN + j;
           return value(linear % kM, linear / kM);
         }),
         "transposed-output", "column by column");
  expect(fill([](auto i, auto j) { return value(i ^ 8, j); }), "exchanged", "rows r and r^8");
  expect(fill([](auto i, auto j) { return value(i, j ^ 1); }), "exchanged", "columns c and c^1");
  expect(fill([](auto i, auto j) { return value(i, j ^ (i % 8 * 8)); }), "swizzle-output",
         "128-byte swizzle");
  expect(fill([](auto i, auto j) { return value(i, j ^ (i / 2 % 4 * 8)); }), "swizzle-output",
         "64-byte swizzle");
  expect(fill([](auto i, auto j) { return i + 1 < kM ? value(i + 1, j) : 0; }), "shifted",
         "+1 rows");
  expect(fill([](auto i, auto j) { return j >= 8 ? value(i, j - 8) : 0; }), "shifted",
         "-8 columns");
  // Each CTA's second tile begins with what its first one left; CTAs are not all as far apart.
  expect(fill([](auto i, auto j) {
           if (i < 64) return value(i, j);
           return i < 128 ? sum(i, j, {{0, kK}}) + sum(i - 64, j, {{0, kK}})
                          : sum(i, j, {{0, kK}}) + sum(i - 128, (j + 128) % kN, {{0, kK}});
         }),
         "not-cleared", "not cleared");
  expect(fill([](auto i, auto j) {
           if (i < 64) return value(i, j);
           return i < 128 ? value(i - 64, j) : value(i - 128, (j + 128) % kN);
         }),
         "stale-tile", "the result of another tile");
}

TEST_F(Pattern, TransposedOperands) {
  expect(fill([](auto i, auto j) {
           float total = 0;  // B read as B[K,N]
           for (int64_t k = 0; k < kK; ++k)
             total += a(i, k) * numeric::bf16_to_float(gemm_->b[static_cast<size_t>(k * kN + j)]);
           return total;
         }),
         "transposed-operand", "B read the other way round");
  expect(fill([](auto i, auto j) {
           float total = 0;
           for (int64_t k = 0; k < kK; ++k)
             total += a(i / 8 * 8 + k % 8, k / 8 * 8 + i % 8) * b(j, k);
           return total;
         }),
         "transposed-operand", "A read transposed in blocks of 8x8");
}

TEST_F(Pattern, CheaperArithmetic) {
  auto e4m3 = [](float x) { return numeric::e4m3_to_float(numeric::e4m3_from_float(x)); };
  auto e5m2 = [](float x) { return numeric::e5m2_to_float(numeric::e5m2_from_float(x)); };
  auto f16 = [](float x) { return numeric::f16_to_float(numeric::f16_from_float(x)); };
  auto bf16 = [](float x) { return numeric::bf16_to_float(numeric::bf16_from_float(x)); };
  expect(multiply(*gemm_, kK, e4m3, nullptr), "e4m3-inputs", "A and B rounded to e4m3");
  expect(multiply(*gemm_, kK, e5m2, nullptr), "e5m2-inputs", "A and B rounded to e5m2");
  expect(fill([&](auto i, auto j) {
           float total = 0;
           for (int64_t k = 0; k < kK; ++k) total += a(i, k) * e4m3(b(j, k));
           return total;
         }),
         "e4m3-inputs", "B rounded to e4m3");
  expect(multiply(*gemm_, kK, nullptr, f16), "fp16-accumulation", "after every product");
  expect(multiply(*gemm_, kK, nullptr, bf16), "bf16-accumulation", "after every product");
  expect(fill([&](auto i, auto j) {
           return f16(sum(i, j, {{0, kK}}));
         }),
         "rounded-through-fp16", "through fp16");
  Matrix truncated = fill([](auto, auto) { return 0.0f; });
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j)
      truncated[static_cast<size_t>(i * kN + j)] =
          static_cast<uint16_t>(std::bit_cast<uint32_t>(sum(i, j, {{0, kK}})) >> 16);
  expect(truncated, "rounded-toward-zero", "toward zero");
}

// The instruction itself, on a shared-memory image: one warpgroup's 64 rows, `tile_n` columns.
struct Tile {
  int swizzle, pitch;                        // as TMA writes
  uint64_t (*descriptor)(uint32_t address);  // as the kernel describes
  bool trans = false, advance = true;
  int tile_n = 128;
};

uint64_t describe(uint32_t address, uint64_t mode, uint64_t stride, uint64_t leading) {
  return mode << 62 | (stride >> 4) << 32 | (leading >> 4) << 16 | (address & 0x3ffff) >> 4;
}

void write_tile(std::vector<uint8_t>& shared, uint32_t base, const Matrix& from, int64_t first_row,
                int64_t rows_total, int rows, int64_t first_k, const Tile& tile) {
  const int box = tile.pitch / 2;
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < box; ++i) {
      const bool inside = first_row + r < rows_total && first_k + i < kK;
      const uint16_t x =
          inside ? from[static_cast<size_t>((first_row + r) * kK + first_k + i)] : uint16_t{0};
      uint32_t at = base + static_cast<uint32_t>(r * tile.pitch + 2 * i);
      if (tile.swizzle == 128) at ^= (at >> 7 & 7) << 4;
      if (tile.swizzle == 64) at ^= (at >> 7 & 3) << 4;
      if (tile.swizzle == 32) at ^= (at >> 7 & 1) << 4;
      std::memcpy(&shared[at], &x, 2);
    }
}

void multiply_tile(const Gemm& g, const Tile& tile, int64_t row, int64_t column, Matrix& c) {
  constexpr uint32_t kBaseB = 0x8000;
  std::vector<uint8_t> shared(kBaseB + 256 * 128);
  static uint32_t registers[4][128][32];
  std::memset(registers, 0, sizeof(registers));
  emu::WgmmaForm form;
  form.n = tile.tile_n;
  form.a = form.b = ptx::Type::bf16;
  form.d = ptx::Type::f32;
  form.a_mn_major = form.b_mn_major = tile.trans;
  emu::WgmmaOperands operands;
  for (int w = 0; w < 4; ++w)
    for (int r = 0; r < 128; ++r) operands.d[w][r] = registers[w][r];
  const int box = tile.pitch / 2;
  for (int64_t k = 0; k < kK; k += box) {
    write_tile(shared, 0, g.a, row, kM, 64, k, tile);
    write_tile(shared, kBaseB, g.b, column, kN, tile.tile_n, k, tile);
    for (int step = 0; step < box; step += 16) {
      const uint32_t offset = tile.advance ? static_cast<uint32_t>(2 * step) : 0;
      operands.shared = shared.data();
      operands.shared_bytes = static_cast<uint32_t>(shared.size());
      operands.a_descriptor = tile.descriptor(offset);
      operands.b_descriptor = tile.descriptor(kBaseB + offset);
      emu::wgmma(form, operands, plan::TensorMode::hw);
    }
  }
  for (int w = 0; w < 4; ++w)
    for (int r = 0; r < tile.tile_n / 2; ++r)
      for (int lane = 0; lane < 32; ++lane) {
        const int64_t i = row + 16 * w + lane / 4 + 8 * (r / 2 % 2);
        const int64_t j = column + 8 * (r / 4) + 2 * (lane % 4) + r % 2;
        c[static_cast<size_t>(i * kN + j)] =
            numeric::bf16_from_float(std::bit_cast<float>(registers[w][r][lane]));
      }
}

Matrix multiply_by_tiles(const Gemm& g, const Tile& tile) {
  Matrix c(static_cast<size_t>(kM * kN));
  for (int64_t row = 0; row < kM; row += 64)
    for (int64_t column = 0; column < kN; column += tile.tile_n)
      multiply_tile(g, tile, row, column, c);
  return c;
}

uint64_t right128(uint32_t at) { return describe(at, 1, 1024, 16); }
uint64_t exchanged128(uint32_t at) { return describe(at, 1, 16, 1024); }
uint64_t read64(uint32_t at) { return describe(at, 2, 1024, 16); }
uint64_t read32(uint32_t at) { return describe(at, 3, 1024, 16); }
uint64_t read_none(uint32_t at) { return describe(at, 0, 1024, 16); }
uint64_t half_stride(uint32_t at) { return describe(at, 1, 512, 16); }
uint64_t right64(uint32_t at) { return describe(at, 2, 512, 16); }
uint64_t exchanged64(uint32_t at) { return describe(at, 2, 16, 512); }
uint64_t read128_of64(uint32_t at) { return describe(at, 1, 512, 16); }

TEST_F(Pattern, TilesOfSharedMemoryReadRightAreRight) {
  for (const Tile& tile : {Tile{128, 128, right128}, Tile{64, 64, right64}})
    EXPECT_TRUE(judge(*gemm_, multiply_by_tiles(*gemm_, tile)).passed);
}

TEST_F(Pattern, SwizzleFaults) {
  auto planted = [&](const Tile& tile, const char* words) {
    expect(multiply_by_tiles(*gemm_, tile), "swizzle", words);
  };
  planted({128, 128, exchanged128}, "written with the 128-byte swizzle, LBO and SBO exchanged");
  planted({64, 64, exchanged64}, "written with the 64-byte swizzle, LBO and SBO exchanged");
  planted({128, 128, read64}, "written with the 128-byte swizzle, read with the 64-byte swizzle");
  planted({128, 128, read32}, "written with the 128-byte swizzle, read with the 32-byte swizzle");
  planted({128, 128, read_none}, "written with the 128-byte swizzle, read with no swizzle");
  planted({0, 128, right128}, "written with no swizzle, read with the 128-byte swizzle");
  planted({64, 64, read128_of64},
          "written with the 64-byte swizzle, read with the 128-byte swizzle");
  planted({128, 128, half_stride}, "SBO 512 instead of 1024 bytes");
  Tile stuck{128, 128, right128};
  stuck.advance = false;
  planted(stuck, "not advanced along K");
  Tile wide{128, 128, exchanged128};
  wide.tile_n = 256;
  planted(wide, "LBO and SBO exchanged");
}

TEST_F(Pattern, TensorCoreHalfAccumulation) {
  Gemm g = *gemm_;
  Matrix c(static_cast<size_t>(kM * kN));
  static uint32_t registers[4][128][32];
  for (int64_t row = 0; row < kM; row += 64)
    for (int64_t column = 0; column < kN; column += 128) {
      // The same image, values as fp16 and 16-bit accumulators.
      Gemm half = g;
      for (auto* matrix : {&half.a, &half.b})
        for (uint16_t& x : *matrix) x = numeric::f16_from_float(numeric::bf16_to_float(x));
      std::memset(registers, 0, sizeof(registers));
      std::vector<uint8_t> shared(0x8000 + 256 * 128);
      emu::WgmmaForm form{128, 16, ptx::Type::f16, ptx::Type::f16, ptx::Type::f16};
      emu::WgmmaOperands operands;
      for (int w = 0; w < 4; ++w)
        for (int r = 0; r < 128; ++r) operands.d[w][r] = registers[w][r];
      const Tile tile{128, 128, right128};
      for (int64_t k = 0; k < kK; k += 64) {
        write_tile(shared, 0, half.a, row, kM, 64, k, tile);
        write_tile(shared, 0x8000, half.b, column, kN, 128, k, tile);
        for (uint32_t step = 0; step < 128; step += 32) {
          operands.shared = shared.data();
          operands.shared_bytes = static_cast<uint32_t>(shared.size());
          operands.a_descriptor = right128(step);
          operands.b_descriptor = right128(0x8000 + step);
          emu::wgmma(form, operands, plan::TensorMode::hw);
        }
      }
      for (int w = 0; w < 4; ++w)
        for (int r = 0; r < 64; ++r)
          for (int lane = 0; lane < 32; ++lane) {
            const int64_t i = row + 16 * w + lane / 4 + 8 * (r / 2 % 2);
            const int64_t j = column + 8 * (r / 4) + 2 * (lane % 4) + r % 2;
            const auto bits = static_cast<uint16_t>(registers[w][r / 2][lane] >> (r % 2 * 16));
            c[static_cast<size_t>(i * kN + j)] =
                numeric::bf16_from_float(numeric::f16_to_float(bits));
          }
    }
  expect(c, "fp16-accumulation", "of the tensor core");
}

TEST_F(Pattern, Races) {
  const numeric::Random random({7, 7}, 1);
  uint64_t draw = 0;
  // Each 16x8 fragment loses or repeats one K step of its own.
  std::vector<std::pair<int64_t, bool>> faults(static_cast<size_t>(kM / 16 * kN / 8));
  for (auto& [step, twice] : faults) {
    step = static_cast<int64_t>(random.below(draw++, 7));
    twice = random.below(draw++, 2) == 1;
  }
  expect(fill([&](auto i, auto j) {
           const auto [step, twice] = faults[static_cast<size_t>(i / 16 * (kN / 8) + j / 8)];
           const float part = sum(i, j, {{64 * step, 64 * step + 64}});
           return sum(i, j, {{0, kK}}) + (twice ? part : -part);
         }),
         "race", "single K steps of 64");
  // A fifth of the elements hold something else altogether.
  Matrix scattered = *right_;
  for (uint16_t& x : scattered)
    if (random.below(draw++, 5) == 0) x = numeric::bf16_from_float(40 * random.normal(draw++));
  expect(scattered, "scattered", "here and there");
}

TEST_F(Pattern, WhatFitsNothingIsNotNamed) {
  const numeric::Random random({9, 9}, 1);
  Matrix noise(static_cast<size_t>(kM * kN));
  for (size_t i = 0; i < noise.size(); ++i)
    noise[i] = numeric::bf16_from_float(30 * random.normal(i));
  EXPECT_EQ(explain(noise).kind, "");
  // Right everywhere: nothing to explain, whatever tiles are pointed at.
  const std::vector<uint64_t> all = {0, 1, 2, 3};
  EXPECT_EQ(explain_gemm({gemm_->a, gemm_->b, *right_, kM, kN, kK}, all).kind, "");
}

TEST_F(Pattern, TinyMatrices) {
  for (auto [m, n, k] : {std::tuple{1, 1, 1}, {3, 2, 7}, {1, 300, 16}, {17, 1, 100}}) {
    const Gemm g = make_gemm(m, n, k, 3);
    Matrix c = honest(g);
    for (uint16_t& x : c) x ^= 0x4000;
    const std::vector<uint64_t> tiles = {0};
    explain_gemm({g.a, g.b, c, m, n, k}, tiles);  // must not crash, whatever it says
  }
}

}  // namespace
}  // namespace ptxbench::bench
