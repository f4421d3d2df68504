#include "emu/tensor_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "emu/sparse.h"
#include "emu/tensor_core_exact.h"
#include "emu/tensor_core_levels.h"
#include "emu/tensor_core_operands.h"
#include "emu/tensor_core_step.h"
#include "numeric/float_formats.h"

namespace ptxbench::emu {
namespace {

using plan::TensorMode;
using ptx::Type;
using tensor::Element;
using tensor::Job;
using tensor::kRowBytes;
using tensor::Panels;

const char* type_name(Type t) {
  switch (t) {
#define PTX_TYPE(name, text, bits) \
  case Type::name:                 \
    return text;
#include "ptx/types.def"
#undef PTX_TYPE
    default:
      return "?";
  }
}

bool is_fp8(Type t) { return t == Type::e4m3 || t == Type::e5m2; }
bool is_int8(Type t) { return t == Type::s8 || t == Type::u8; }
bool is_integer(Type t) { return is_int8(t) || t == Type::b1; }
bool is_16bit(Type t) { return t == Type::bf16 || t == Type::f16; }

int element_bytes(Type t) { return t == Type::tf32 ? 4 : is_16bit(t) ? 2 : 1; }

bool types_exist(const WgmmaForm& f) {
  if (is_int8(f.a) && is_int8(f.b)) return f.d == Type::s32;
  if (is_fp8(f.a) && is_fp8(f.b)) return f.d == Type::f32 || f.d == Type::f16;
  if (f.a != f.b) return false;
  if (f.a == Type::b1) return f.d == Type::s32;
  if (f.a == Type::f16) return f.d == Type::f32 || f.d == Type::f16;
  return (f.a == Type::bf16 || f.a == Type::tf32) && f.d == Type::f32;
}

Element element(Type t) {
  switch (t) {
    case Type::bf16:
      return Element::bf16;
    case Type::f16:
      return Element::f16;
    case Type::tf32:
      return Element::tf32;
    case Type::e4m3:
      return Element::e4m3;
    default:
      return Element::e5m2;
  }
}

// What the slow path needs beside the job.
struct Context : Job {
  Type a_type{}, b_type{}, d_type{};
};

void exact_lanes(const Job& job, int w, int r, uint32_t mask) {
  const Context& c = static_cast<const Context&>(job);
  for (int l = 0; l < 32; ++l) {
    if (!(mask >> l & 1)) continue;
    const int row = 16 * w + l / 4 + 8 * (r / 2 % 2), column = 8 * (r / 4) + 2 * (l % 4) + r % 2;
    uint32_t& d = c.d[w][r][l];
    uint32_t start = c.scale_d ? d : 0;
    if (c.half) start = numeric::f16_from_float(std::bit_cast<float>(start));
    d = exact_step(c.a_type, c.b_type, c.d_type, c.panels->a_rows[row], c.panels->b_rows[column],
                   c.k, start);
    if (c.half) d = std::bit_cast<uint32_t>(numeric::f16_to_float(static_cast<uint16_t>(d)));
  }
}

template <class F>
void for_each_output(const Job& job, F f) {
  for (int w = 0; w < 4; ++w) {
    if (!(job.warps >> w & 1)) continue;
    for (int r = 0; r < job.n / 2; ++r)
      for (int l = 0; l < 32; ++l)
        f(w, r, l, 16 * w + l / 4 + 8 * (r / 2 % 2), 8 * (r / 4) + 2 * (l % 4) + r % 2);
  }
}

// s32 += s8 or u8 products, or counts of common bits; wraps, or with .satfinite clamps the total.
void integer_step(const Context& c, bool saturate) {
  const Panels& p = *c.panels;
  const bool a_signed = c.a_type == Type::s8, b_signed = c.b_type == Type::s8;
  for_each_output(c, [&](int w, int r, int l, int row, int column) {
    int32_t sum = 0;  // 32 products of at most 2^16
    for (int k = 0; k < kRowBytes; ++k) {
      const uint8_t a = p.a_rows[row][k], b = p.b_rows[column][k];
      const int x = a_signed ? static_cast<int8_t>(a) : a,
                y = b_signed ? static_cast<int8_t>(b) : b;
      sum += c.a_type == Type::b1 ? std::popcount(static_cast<uint8_t>(a & b)) : x * y;
    }
    uint32_t& d = c.d[w][r][l];
    const uint32_t start = c.scale_d ? d : 0;
    const int64_t total = int64_t{static_cast<int32_t>(start)} + sum;
    d = saturate ? static_cast<uint32_t>(std::clamp<int64_t>(total, INT32_MIN, INT32_MAX))
                 : start + static_cast<uint32_t>(sum);
  });
}

// Accumulators of 16 bits: register r/2 holds elements r and r + 1, low half first. The step runs
// on a copy in f32, which mode hw rounds to f16 itself and the others once at the end.
void f16_step(Context& c, TensorMode mode, const tensor::Kernels& kernels) {
  uint32_t* const(*packed)[128] = c.d;
  uint32_t(*wide)[128][32] = c.panels->wide_d;
  uint32_t* pointers[4][128];
  uint16_t half[2][32];
  auto floats = [&](int w, int r) { return reinterpret_cast<float*>(wide[w][r]); };
  for (int w = 0; w < 4; ++w) {
    if (!(c.warps >> w & 1)) continue;
    for (int r = 0; r < c.n / 2; r += 2) {
      for (int l = 0; l < 32; ++l) {
        half[0][l] = static_cast<uint16_t>(packed[w][r / 2][l]);
        half[1][l] = static_cast<uint16_t>(packed[w][r / 2][l] >> 16);
      }
      for (int e : {0, 1}) {
        pointers[w][r + e] = wide[w][r + e];
        numeric::f16_to_float(std::span<const uint16_t>(half[e]),
                              std::span<float>(floats(w, r + e), 32));
      }
    }
  }
  c.d = pointers;
  c.half = mode == TensorMode::hw;
  c.half ? kernels.hw(c) : kernels.f32(c);
  for (int w = 0; w < 4; ++w) {
    if (!(c.warps >> w & 1)) continue;
    for (int r = 0; r < c.n / 2; r += 2) {
      for (int e : {0, 1})
        numeric::f16_from_float(std::span<const float>(floats(w, r + e), 32),
                                std::span<uint16_t>(half[e]));
      for (int l = 0; l < 32; ++l)
        packed[w][r / 2][l] = half[0][l] | static_cast<uint32_t>(half[1][l]) << 16;
    }
  }
}

void fetch_a(const WgmmaForm& f, const WgmmaOperands& o, Panels& p) {
  const int bytes = element_bytes(f.a);
  if (f.a_in_registers)
    tensor::fetch_registers(o.a, o.warps, p.a_rows);
  else
    tensor::fetch_shared(decode_descriptor(o.a_descriptor), f.a_mn_major, bytes, 64, o.shared,
                         o.shared_bytes, p.a_rows);
  if (f.negate_a) tensor::negate(bytes, 64, p.a_rows);
}

void fetch_b(const WgmmaForm& f, const WgmmaOperands& o, uint8_t (*rows)[kRowBytes],
             uint32_t first) {
  const int bytes = element_bytes(f.b);
  tensor::fetch_shared(decode_descriptor(o.b_descriptor), f.b_mn_major, bytes, f.n, o.shared,
                       o.shared_bytes, rows, first);
  if (f.negate_b) tensor::negate(bytes, f.n, rows);
}

void dense_step(const WgmmaForm& f, const WgmmaOperands& o, Panels& p, TensorMode mode,
                const tensor::Kernels& kernels) {
  if (!is_integer(f.a))
    return tensor::float_step({f.a, f.b, f.d, 64, f.n, f.a_k(), o.d, o.scale_d, o.warps}, p, mode,
                              kernels);
  Context c;
  c.panels = &p;
  c.n = f.n, c.k = f.a_k();
  c.d = o.d;
  c.scale_d = o.scale_d;
  c.warps = o.warps;
  c.a_type = f.a, c.b_type = f.b;
  integer_step(c, f.saturate);
}

// Rows of A with the same pattern meet the same elements of B: one dense step of half the K for
// each pattern that occurs in a warp, of which the rows with that pattern are kept.
void sparse_step(const WgmmaForm& f, const WgmmaOperands& o, Panels& p, TensorMode mode,
                 const tensor::Kernels& kernels) {
  const int registers = f.n / (f.d == Type::f16 ? 4 : 2);
  const auto n = static_cast<size_t>(f.n);
  std::vector<std::array<uint8_t, 2 * kRowBytes>> dense(n);
  for (uint32_t half : {0u, 1u}) {
    fetch_b(f, o, p.b_rows, half * kRowBytes);
    for (size_t i = 0; i < n; ++i)
      std::memcpy(dense[i].data() + half * kRowBytes, p.b_rows[i], kRowBytes);
  }
  std::vector<std::array<uint32_t, 32>> result(static_cast<size_t>(registers));
  WgmmaOperands step = o;
  for (int w = 0; w < 4; ++w) {
    if (!(o.warps >> w & 1)) continue;
    step.warps = 1u << w;
    SparsePattern patterns[16];
    for (int row = 0; row < 16; ++row)
      patterns[row] = sparse_pattern(f.a, f.k, o.metadata[w], f.selector, row);
    std::vector<std::array<uint32_t, 32>> kept(static_cast<size_t>(registers));
    uint32_t done = 0;
    for (int row = 0; row < 16; ++row) {
      if (done >> row & 1) continue;
      for (size_t i = 0; i < n; ++i)
        gather_sparse(f.b, f.k, patterns[row], dense[i].data(), p.b_rows[i]);
      for (size_t r = 0; r < result.size(); ++r) {
        std::memcpy(result[r].data(), o.d[w][r], 128);
        step.d[w][r] = result[r].data();
      }
      dense_step(f, step, p, mode, kernels);
      for (int same = row; same < 16; ++same) {
        if (patterns[same] != patterns[row]) continue;
        done |= 1u << same;
        // Rows g + 8 are in the odd registers of f16 pairs, the odd pairs of 32-bit ones.
        for (size_t r = 0; r < result.size(); ++r)
          if ((f.d == Type::f16 ? r % 2 : r / 2 % 2) == static_cast<size_t>(same / 8))
            std::memcpy(kept[r].data() + same % 8 * 4, result[r].data() + same % 8 * 4, 16);
      }
    }
    for (size_t r = 0; r < kept.size(); ++r) std::memcpy(o.d[w][r], kept[r].data(), 128);
  }
}

}  // namespace

Result<void> check(const WgmmaForm& f) {
  auto refuse = [&](const std::string& why) {
    return Error{"unsupported",
                 fmt::format("wgmma{} m64n{}k{}.{}.{}.{}: {}", f.sparse ? ".sp" : "", f.n, f.k,
                             type_name(f.d), type_name(f.a), type_name(f.b), why)};
  };
  if (!types_exist(f)) return refuse("this combination of types is not implemented");
  if (f.n < 8 || f.n > 256 || f.n % 8) return refuse("N is not a multiple of 8 in 8..256");
  if (is_integer(f.a) && f.n > 32 && f.n % 16)
    return refuse("integer forms above N = 32 come in steps of 16");
  const int full = kRowBytes / element_bytes(f.a) * (f.a == Type::b1 ? 8 : 1) * (f.sparse ? 2 : 1);
  if (f.k != full) return refuse(fmt::format("K is {}, not {}", f.k, full));
  if (f.sparse && f.a == Type::b1) return refuse("b1 has no sparse form");
  if (f.sparse && (f.selector < 0 || f.selector >= sparse_selectors(f.a, f.k)))
    return refuse("the sparsity selector is out of range");
  if (f.saturate && !is_int8(f.a)) return refuse("only 8-bit integers have .satfinite");
  if ((f.a_mn_major || f.b_mn_major) && !is_16bit(f.a))
    return refuse("only 16-bit types have a transposed form");
  if (f.a_mn_major && f.a_in_registers) return refuse("A in registers has no transposed form");
  if ((f.negate_a || f.negate_b) && is_integer(f.a))
    return refuse("integer forms have no negation");
  return {};
}

void wgmma(const WgmmaForm& form, const WgmmaOperands& o, TensorMode mode) {
  tensor::wgmma_at(form, o, mode, tensor::best_kernels());
}

tensor::Panels& tensor::scratch() {
  thread_local const std::unique_ptr<Panels> panels = std::make_unique<Panels>();
  return *panels;
}

void tensor::float_step(const FloatStep& step, Panels& panels, TensorMode mode,
                        const Kernels& kernels) {
  Context c;
  c.panels = &panels;
  c.rows = step.rows, c.n = step.n, c.k = step.k;
  c.d = step.registers;
  c.scale_d = step.scale_d;
  c.warps = step.warps;
  c.exact = exact_lanes;
  c.a_type = step.a, c.b_type = step.b, c.d_type = step.d;
  c.a = element(step.a), c.b = element(step.b);
  if (step.d == Type::f16) return f16_step(c, mode, kernels);
  if (mode == TensorMode::hw) return kernels.hw(c);
  if (mode == TensorMode::fast && kernels.dot) return kernels.dot(c);
  kernels.f32(c);
}

void tensor::wgmma_at(const WgmmaForm& form, const WgmmaOperands& o, TensorMode mode,
                      const Kernels& kernels) {
  Panels& panels = scratch();
  fetch_a(form, o, panels);
  if (form.sparse) return sparse_step(form, o, panels, mode, kernels);
  fetch_b(form, o, panels.b_rows, 0);
  dense_step(form, o, panels, mode, kernels);
}

}  // namespace ptxbench::emu
