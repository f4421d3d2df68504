// mma.sync. Fragments of every shape follow one rule (register j, lane l = 4g + t: row g + 8(j%2),
// byte 4t + 16(j/2) of A's row), so operands become rows of the panels by copying 16 bytes at a
// time.
//
// What sm_90 executes for a form is what mode hw computes:
//   f16, bf16, tf32   one tensor-core step;
//   fp8               the operands become f16, k%4 < 2 is a step from zero and the rest a second
//                     one, then an IEEE addition of C;
//   s8, u8, s4, u4    exact sums; .satfinite clamps the total, C included;
//   b1                exact counts of bits, wrapping;
//   f64               fused multiply-adds from C in order of k; NaNs keep their payload;
//   m8n8k4.f16        four matrices of eight threads each, in f32 scalar arithmetic: see quad_form.

#include "emu/mma.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "emu/sparse.h"
#include "emu/tensor_core_levels.h"
#include "emu/tensor_core_step.h"
#include "numeric/float_formats.h"

namespace ptxbench::emu {
namespace {

using plan::TensorMode;
using ptx::Type;
using tensor::kRowBytes;
using tensor::Panels;

bool is_fp8(Type t) { return t == Type::e4m3 || t == Type::e5m2; }
bool is_int8(Type t) { return t == Type::s8 || t == Type::u8; }
bool is_int4(Type t) { return t == Type::s4 || t == Type::u4; }
int bits_of(Type t) { return t == Type::tf32 ? 32 : ptx::bits(t); }

bool is_quad(const MmaForm& f) { return f.m == 8 && f.a == Type::f16 && !f.sparse; }

bool types_exist(const MmaForm& f) {
  if (f.c != f.d && !(is_quad(f) && f.d == Type::f32 && f.c == Type::f16)) return false;
  if (f.a == Type::f16 && f.b == Type::f16) return f.d == Type::f32 || f.d == Type::f16;
  if (is_fp8(f.a) && is_fp8(f.b)) return f.d == Type::f32 || f.d == Type::f16;
  if (is_int8(f.a) && is_int8(f.b)) return f.d == Type::s32;
  if (is_int4(f.a) && is_int4(f.b)) return f.d == Type::s32;
  if (f.a != f.b) return false;
  if (f.a == Type::b1) return f.d == Type::s32;
  if (f.a == Type::f64) return f.d == Type::f64;
  return (f.a == Type::bf16 || f.a == Type::tf32) && f.d == Type::f32;
}

// A row of A is a multiple of 16 bytes with 16 rows, exactly 16 with 8 rows of integers.
bool shape_exists(const MmaForm& f) {
  if (f.n != 8) return false;
  if (f.a == Type::f64 && f.sparse) return false;
  if (f.a == Type::f64) {
    if (f.m == 8) return f.k == 4;
    return f.m == 16 && (f.k == 4 || f.k == 8 || f.k == 16);
  }
  if (is_quad(f)) return f.k == 4;
  if (f.a_columns || f.b_rows) return false;
  const int row = f.k * bits_of(f.a) / (f.sparse ? 16 : 8);  // as stored
  if (f.sparse && is_fp8(f.a) && (row != 32 || f.d != Type::f32)) return false;
  if (f.sparse && (f.a == Type::b1 || f.m == 8)) return false;
  if (f.m == 8) return f.d == Type::s32 && row == 16;
  return f.m == 16 && (row == 16 || row == 32);
}

// Operand rows, element k of row i at rows[i][k]; what lies past the instruction's K is zero.
void fetch(const MmaForm& f, const MmaOperands& o, Panels& p) {
  const MmaRegisters r = registers_of(f);
  const int row_bytes = f.k * bits_of(f.a) / 8;
  auto copy = [](const uint32_t* lanes, uint8_t(*rows)[kRowBytes], int byte) {
    for (int i = 0; i < 8; ++i) std::memcpy(rows[i] + byte, lanes + 4 * i, 16);
  };
  if (row_bytes < kRowBytes) {
    for (int i = 0; i < f.m; ++i) std::memset(p.a_rows[i], 0, kRowBytes);
    for (int i = 0; i < f.n; ++i) std::memset(p.b_rows[i], 0, kRowBytes);
  }
  const int halves = f.m / 8;
  for (int j = 0; j < r.a; ++j) copy(o.a[j], p.a_rows + 8 * (j % halves), 16 * (j / halves));
  for (int j = 0; j < r.b; ++j) copy(o.b[j], p.b_rows, 16 * j);
}

// Accumulators of one warp as float_step wants them.
struct Accumulators {
  alignas(64) uint32_t lanes[4][32];
  uint32_t* pointers[1][128];
  int count;

  Accumulators(const MmaForm& f, const uint32_t* const* c) : count(registers_of(f).c) {
    for (int r = 0; r < count; ++r) {
      pointers[0][r] = lanes[r];
      if (c) std::memcpy(lanes[r], c[r], sizeof lanes[r]);
    }
  }
  void store(uint32_t* const* d) const {
    for (int r = 0; r < count; ++r) std::memcpy(d[r], lanes[r], sizeof lanes[r]);
  }
};

void float_form(const MmaForm& f, const MmaOperands& o, TensorMode mode,
                const tensor::Kernels& kernels) {
  Panels& p = tensor::scratch();
  fetch(f, o, p);
  Accumulators acc(f, o.c);
  const int full_k = kRowBytes * 8 / bits_of(f.a);
  tensor::float_step({f.a, f.b, f.d, 16, 8, full_k, acc.pointers, true, 1}, p, mode, kernels);
  acc.store(o.d);
}

// ------------------------------------------------------------------------------------------- fp8

struct HalfTable {
  uint16_t half[256];
  explicit HalfTable(Type t) {
    for (int i = 0; i < 256; ++i) {
      const uint8_t x = static_cast<uint8_t>(i);
      half[i] = numeric::f16_from_float(t == Type::e4m3 ? numeric::e4m3_to_float(x)
                                                        : numeric::e5m2_to_float(x));
    }
  }
};
const HalfTable& half_table(Type t) {
  static const HalfTable e4m3(Type::e4m3), e5m2(Type::e5m2);
  return t == Type::e4m3 ? e4m3 : e5m2;
}

// Elements with k%4 / 2 == part of every row, as f16.
void widen(Type t, const uint8_t (*from)[kRowBytes], int rows, int part, uint8_t (*to)[kRowBytes]) {
  const HalfTable& table = half_table(t);
  for (int i = 0; i < rows; ++i) {
    uint16_t out[16];
    for (int e = 0; e < 16; ++e) out[e] = table.half[from[i][e / 2 * 4 + 2 * part + e % 2]];
    std::memcpy(to[i], out, sizeof out);
  }
}

uint32_t add_f32(uint32_t x, uint32_t y) {
  const float sum = std::bit_cast<float>(x) + std::bit_cast<float>(y);
  return std::isnan(sum) ? 0x7fffffffu : std::bit_cast<uint32_t>(sum);
}

uint32_t add_f16(uint32_t x, uint32_t y) {
  const float sum = numeric::f16_to_float(static_cast<uint16_t>(x)) +
                    numeric::f16_to_float(static_cast<uint16_t>(y));  // exact in f32
  return std::isnan(sum) ? 0x7fffu : numeric::f16_from_float(sum);
}

void fp8_form(const MmaForm& f, const MmaOperands& o, TensorMode mode,
              const tensor::Kernels& kernels) {
  if (mode != TensorMode::hw) return float_form(f, o, mode, kernels);
  Panels& p = tensor::scratch();
  fetch(f, o, p);
  uint8_t a[16][kRowBytes], b[8][kRowBytes];
  std::memcpy(a, p.a_rows, sizeof a);
  std::memcpy(b, p.b_rows, sizeof b);
  Accumulators acc(f, nullptr);
  for (int part = 0; part < 2; ++part) {
    widen(f.a, a, 16, part, p.a_rows);
    widen(f.b, b, 8, part, p.b_rows);
    tensor::float_step({Type::f16, Type::f16, f.d, 16, 8, 16, acc.pointers, part != 0, 1}, p, mode,
                       kernels);
  }
  for (int r = 0; r < acc.count; ++r)
    for (int l = 0; l < 32; ++l) {
      const uint32_t z = acc.lanes[r][l], c = o.c[r][l];
      acc.lanes[r][l] = f.d == Type::f32
                            ? add_f32(c, z)
                            : add_f16(c & 0xffff, z & 0xffff) | add_f16(c >> 16, z >> 16) << 16;
    }
  acc.store(o.d);
}

// -------------------------------------------------------------------------------------- integers

// Rows of bytes or nibbles as 16-bit numbers.
void widen(Type t, const uint8_t (*rows)[kRowBytes], int count, int16_t (*out)[64]) {
  for (int i = 0; i < count; ++i)
    for (int k = 0; k < kRowBytes; ++k) {
      const uint8_t x = rows[i][k];
      if (is_int8(t)) {
        out[i][k] = t == Type::s8 ? static_cast<int8_t>(x) : x;
        continue;
      }
      const int low = x & 15, high = x >> 4;
      out[i][2 * k] = static_cast<int16_t>(t == Type::s4 ? (low ^ 8) - 8 : low);
      out[i][2 * k + 1] = static_cast<int16_t>(t == Type::s4 ? (high ^ 8) - 8 : high);
    }
}

// f(row, column, C) for every output; registers hold columns 2t and 2t + 1 of rows g and g + 8.
template <class F>
void for_each_sum(const MmaForm& f, const MmaOperands& o, F dot) {
  Accumulators acc(f, o.c);
  for (int r = 0; r < acc.count; ++r)
    for (int l = 0; l < 32; ++l)
      acc.lanes[r][l] = dot(l / 4 + r / 2 * 8, l % 4 * 2 + r % 2, acc.lanes[r][l]);
  acc.store(o.d);
}

void integer_form(const MmaForm& f, const MmaOperands& o) {
  Panels& p = tensor::scratch();
  fetch(f, o, p);
  int16_t a[16][64], b[8][64];
  widen(f.a, p.a_rows, f.m, a);
  widen(f.b, p.b_rows, f.n, b);
  const int k = is_int8(f.a) ? kRowBytes : 2 * kRowBytes;
  for_each_sum(f, o, [&](int row, int column, uint32_t c) {
    int32_t sum = 0;  // at most 64 products of less than 2^16
    for (int i = 0; i < k; ++i) sum += a[row][i] * b[column][i];
    if (!f.saturate) return c + static_cast<uint32_t>(sum);
    const int64_t total = int64_t{static_cast<int32_t>(c)} + sum;
    return static_cast<uint32_t>(std::clamp<int64_t>(total, INT32_MIN, INT32_MAX));
  });
}

void bit_form(const MmaForm& f, const MmaOperands& o) {
  Panels& p = tensor::scratch();
  fetch(f, o, p);
  for_each_sum(f, o, [&](int row, int column, uint32_t c) {
    for (int i = 0; i < kRowBytes; i += 8) {
      uint64_t x, y;
      std::memcpy(&x, p.a_rows[row] + i, 8);
      std::memcpy(&y, p.b_rows[column] + i, 8);
      c += static_cast<uint32_t>(std::popcount(f.exclusive_or ? x ^ y : x & y));
    }
    return c;
  });
}

// ------------------------------------------------------------------------------------------- f64

// A NaN operand goes on with its payload, quiet: b before c before a. An invalid operation gives
// the negative default NaN.
uint64_t f64_step(uint64_t a, uint64_t b, uint64_t c) {
  for (uint64_t operand : {b, c, a})
    if (std::isnan(std::bit_cast<double>(operand))) return operand | uint64_t{1} << 51;
  const double r =
      std::fma(std::bit_cast<double>(a), std::bit_cast<double>(b), std::bit_cast<double>(c));
  return std::isnan(r) ? 0xfff8000000000000ull : std::bit_cast<uint64_t>(r);
}

void f64_form(const MmaForm& f, const MmaOperands& o) {
  auto lanes = [](const uint32_t* p) { return reinterpret_cast<const uint64_t*>(p); };
  const int halves = f.m / 8, count = f.m * f.n / 32;
  uint64_t out[4][32];
  for (int r = 0; r < count; ++r)
    for (int l = 0; l < 32; ++l) {
      const int column = l % 4 * 2 + r % 2;
      uint64_t sum = lanes(o.c[r])[l];
      for (int k = 0; k < f.k; ++k)
        sum = f64_step(lanes(o.a[k / 4 * halves + r / 2])[l / 4 * 4 + k % 4],
                       lanes(o.b[k / 4])[column * 4 + k % 4], sum);
      out[r][l] = sum;
    }
  for (int r = 0; r < count; ++r) std::memcpy(o.d[r], out[r], sizeof out[r]);
}

// ------------------------------------------------------------------------------ m8n8k4.f16

// Threads 4q..4q+3 and 16+4q..19+4q hold matrix q. An element of a fragment: lane and position.
struct Place {
  int lane, element;
};
Place in_rows(int q, int row, int column) {  // a thread holds a row
  return {4 * q + row % 4 + (row >= 4 ? 16 : 0), column};
}
Place in_columns(int q, int row, int column) {  // a thread holds half a column of A (or row of B)
  return {4 * q + column + (row >= 4 ? 16 : 0), row % 4};
}
Place in_f32(int q, int row, int column) {  // an accumulator of 32 bits
  return {4 * q + row % 2 + (column & 2) + (row >= 4 ? 16 : 0),
          (column & 4) + (row & 2) + column % 2};
}

float half_at(const uint32_t* const* registers, Place p) {
  const uint32_t pair = registers[p.element / 2][p.lane];
  return numeric::f16_to_float(static_cast<uint16_t>(pair >> p.element % 2 * 16));
}

// Hopper has no such instruction; ptxas composes it. f32: the four products are summed from zero in
// order of k and added to C. f16: C plus the sum of the first two products, plus that of the
// others, rounded at the end.
void quad_form(const MmaForm& f, const MmaOperands& o) {
  uint32_t out[8][32] = {};
  for (int i = 0; i < 4 * 64; ++i) {
    const int q = i / 64, row = i / 8 % 8, column = i % 8;
    float a[4], b[4];
    for (int k = 0; k < 4; ++k) {
      a[k] = half_at(o.a, f.a_columns ? in_columns(q, row, k) : in_rows(q, row, k));
      b[k] = half_at(o.b, f.b_rows ? in_columns(q, column, k) : in_rows(q, column, k));
    }
    const Place wide = in_f32(q, row, column), packed = in_rows(q, row, column);
    const float c = f.c == Type::f16 ? half_at(o.c, packed)
                                     : std::bit_cast<float>(o.c[wide.element][wide.lane]);
    const float first = std::fma(a[1], b[1], a[0] * b[0]);
    if (f.d == Type::f32) {
      const float sum = std::fma(a[3], b[3], std::fma(a[2], b[2], first));
      out[wide.element][wide.lane] =
          add_f32(std::bit_cast<uint32_t>(c), std::bit_cast<uint32_t>(sum));
      continue;
    }
    const float sum = c + first + std::fma(a[3], b[3], a[2] * b[2]);
    const uint32_t h = std::isnan(sum) ? 0x7fffu : numeric::f16_from_float(sum);
    out[packed.element / 2][packed.lane] |= h << packed.element % 2 * 16;
  }
  for (int r = 0; r < registers_of(f).d; ++r) std::memcpy(o.d[r], out[r], sizeof out[r]);
}

// ---------------------------------------------------------------------------------------- sparse

// Rows of A with the same pattern meet the same elements of B: one dense product of half the K for
// each pattern that occurs.
void sparse_form(const MmaForm& f, const MmaOperands& o, TensorMode mode,
                 const tensor::Kernels& kernels) {
  MmaForm dense = f;
  dense.sparse = false, dense.k = f.k / 2;
  const MmaRegisters all = registers_of(f), half = registers_of(dense);
  uint8_t rows[8][64], picked[kRowBytes] = {};
  for (int j = 0; j < all.b; ++j)
    for (int n = 0; n < 8; ++n) std::memcpy(rows[n] + 16 * j, o.b[j] + 4 * n, 16);
  SparsePattern patterns[16];
  for (int row = 0; row < 16; ++row)
    patterns[row] = sparse_pattern(f.a, f.k, o.metadata, f.selector, row);
  uint32_t b[2][32], d[4][32], out[4][32];
  MmaOperands step = o;
  for (int j = 0; j < half.b; ++j) step.b[j] = b[j];
  for (int r = 0; r < half.d; ++r) step.d[r] = d[r];
  uint32_t done = 0;
  for (int row = 0; row < 16; ++row) {
    if (done >> row & 1) continue;
    for (int n = 0; n < 8; ++n) {
      gather_sparse(f.a, f.k, patterns[row], rows[n], picked);
      for (int j = 0; j < half.b; ++j) std::memcpy(b[j] + 4 * n, picked + 16 * j, 16);
    }
    tensor::mma_at(dense, step, mode, kernels);
    const int per_half = half.d / 2;  // registers of rows g, then those of rows g + 8
    for (int same = row; same < 16; ++same) {
      if (patterns[same] != patterns[row]) continue;
      done |= 1u << same;
      for (int r = same / 8 * per_half; r < (same / 8 + 1) * per_half; ++r)
        std::memcpy(out[r] + same % 8 * 4, d[r] + same % 8 * 4, 16);
    }
  }
  for (int r = 0; r < half.d; ++r) std::memcpy(o.d[r], out[r], sizeof out[r]);
}

}  // namespace

MmaRegisters registers_of(const MmaForm& f) {
  if (is_quad(f)) return {2, 2, f.c == Type::f32 ? 8 : 4, f.d == Type::f32 ? 8 : 4};
  const int lane_bits = 32 * (f.a == Type::f64 ? 64 : 32);
  auto count = [&](int rows, int columns, Type t) {
    return rows * columns * bits_of(t) / lane_bits;
  };
  return {count(f.m, f.sparse ? f.k / 2 : f.k, f.a), count(f.n, f.k, f.b), count(f.m, f.n, f.c),
          count(f.m, f.n, f.d)};
}

double flop_of(const MmaForm& f) { return (is_quad(f) ? 8.0 : 2.0) * f.m * f.n * f.k; }

Result<void> check(const MmaForm& f) {
  const char* why = !types_exist(f)    ? "this combination of types is not implemented"
                    : !shape_exists(f) ? "this shape is not implemented for these types"
                    : f.saturate && !is_int8(f.a) && !is_int4(f.a)
                        ? "only integer forms have .satfinite"
                    : f.sparse && (f.selector < 0 || f.selector >= sparse_selectors(f.a, f.k))
                        ? "the sparsity selector is out of range"
                        : nullptr;
  if (!why) return {};
  return Error{"unsupported",
               fmt::format("mma{} m{}n{}k{}.{}.{}.{}.{}: {}", f.sparse ? ".sp" : "", f.m, f.n, f.k,
                           ptx::name(f.d), ptx::name(f.a), ptx::name(f.b), ptx::name(f.c), why)};
}

void mma(const MmaForm& f, const MmaOperands& o, TensorMode mode) {
  tensor::mma_at(f, o, mode, tensor::best_kernels());
}

void tensor::mma_at(const MmaForm& f, const MmaOperands& o, TensorMode mode,
                    const Kernels& kernels) {
  if (f.sparse) return sparse_form(f, o, mode, kernels);
  if (f.a == Type::f64) return f64_form(f, o);
  if (f.a == Type::b1) return bit_form(f, o);
  if (f.d == Type::s32) return integer_form(f, o);
  if (is_quad(f)) return quad_form(f, o);
  if (is_fp8(f.a)) return fp8_form(f, o, mode, kernels);
  float_form(f, o, mode, kernels);
}

}  // namespace ptxbench::emu
