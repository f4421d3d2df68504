#pragma once
// Reads mma.sync forms out of instruction text, and holds a warp's fragments for a call.

#include <cstring>
#include <regex>
#include <stdexcept>
#include <string>

#include "emu/mma.h"
#include "emu/wgmma_forms.h"

namespace ptxbench::emu {

// "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 ..."
inline MmaForm parse_mma(const std::string& ptx) {
  static const std::regex pattern(
      R"(mma(\.sp::ordered_metadata)?\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.(row|col)\.(row|col)(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)\.(\w+)(\.xor\.popc|\.and\.popc)?( .*)?)");
  std::smatch m;
  if (!std::regex_match(ptx, m, pattern)) throw std::runtime_error("cannot read " + ptx);
  MmaForm f;
  f.sparse = m[1].matched;
  f.m = std::stoi(m[2]), f.n = std::stoi(m[3]), f.k = std::stoi(m[4]);
  f.a_columns = m[5] == "col", f.b_rows = m[6] == "row";
  f.saturate = m[7].matched;
  f.d = type_named(m[8]), f.a = type_named(m[9]), f.b = type_named(m[10]), f.c = type_named(m[11]);
  f.exclusive_or = m[12] == ".xor.popc";
  return f;
}

// The registers of one warp, addressed as registers or as matrix elements. Written from the
// fragment figures of the PTX ISA: lane l = 4g + t.
struct WarpFragments {
  static constexpr int kMax = 8;
  MmaForm form;
  uint64_t a[kMax][32] = {}, b[kMax][32] = {}, c[kMax][32] = {}, d[kMax][32] = {};  // raw storage
  uint32_t metadata[32] = {};
  MmaOperands operands;

  explicit WarpFragments(const MmaForm& f) : form(f) {
    for (int r = 0; r < kMax; ++r) {
      operands.a[r] = reinterpret_cast<uint32_t*>(a[r]);
      operands.b[r] = reinterpret_cast<uint32_t*>(b[r]);
      operands.c[r] = reinterpret_cast<uint32_t*>(c[r]);
      operands.d[r] = reinterpret_cast<uint32_t*>(d[r]);
    }
    operands.metadata = metadata;
  }
  bool wide() const { return form.a == ptx::Type::f64; }

  using Fragment = uint64_t[kMax][32];
  void set(Fragment& f, int r, size_t lane, uint64_t v) {
    if (wide())
      f[r][lane] = v;
    else
      reinterpret_cast<uint32_t*>(f[r])[lane] = static_cast<uint32_t>(v);
  }
  uint64_t get(const Fragment& f, int r, size_t lane) const {
    return wide() ? f[r][lane] : reinterpret_cast<const uint32_t*>(f[r])[lane];
  }

  static int element_bits(ptx::Type t) { return t == ptx::Type::tf32 ? 32 : ptx::bits(t); }
  // Writes `bits` bits of the register that holds element e (in elements of that size).
  void put(Fragment& f, int r, int lane, int bits, int e, uint64_t v) {
    const uint64_t mask = bits == 64 ? ~uint64_t{0} : ((uint64_t{1} << bits) - 1) << (e * bits);
    const size_t l = static_cast<size_t>(lane);
    set(f, r, l, (get(f, r, l) & ~mask) | ((v << (e * bits)) & mask));
  }

  template <class A, class B, class C>
  void fill(A element_a, B element_b, C element_c) {
    const int bits = element_bits(form.a), per = (wide() ? 64 : 32) / bits, halves = form.m / 8;
    for (int row = 0; row < form.m; ++row)
      for (int k = 0; k < (form.sparse ? form.k / 2 : form.k); ++k)
        put(a, row / 8 + halves * (k / (4 * per)), row % 8 * 4 + k / per % 4, bits, k % per,
            element_a(row, k));
    for (int k = 0; k < form.k; ++k)
      for (int n = 0; n < form.n; ++n)
        put(b, k / (4 * per), n * 4 + k / per % 4, bits, k % per, element_b(k, n));
    for (int row = 0; row < form.m; ++row)
      for (int n = 0; n < form.n; ++n) {
        const int lane = row % 8 * 4 + n / 2;
        if (form.c == ptx::Type::f16)
          put(c, row / 8, lane, 16, n % 2, element_c(row, n));
        else
          put(c, row / 8 * 2 + n % 2, lane, wide() ? 64 : 32, 0, element_c(row, n));
      }
  }
  uint64_t result(int row, int n) const {
    const size_t lane = static_cast<size_t>(row % 8 * 4 + n / 2);
    if (form.d == ptx::Type::f16) return get(d, row / 8, lane) >> (16 * (n % 2)) & 0xffff;
    return get(d, row / 8 * 2 + n % 2, lane);
  }
};

}  // namespace ptxbench::emu
