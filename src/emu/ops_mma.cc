// mma.sync and wmma: registers to emu/mma.h and emu/wmma.h, fragments to and from memory.

#include "emu/costs.h"
#include "emu/lane_access.h"
#include "emu/ops.h"

namespace ptxbench::emu::ops {

void mma(RegisterView& v, const MicroOp& op, uint32_t) {
  Executor& e = *warp_of(v).exec;
  const MmaSite& site = e.kernel().mmas[op.extra];
  if (CostLedger* costs = e.costs()) costs->matrix(warp_of(v));
  MmaOperands o;
  for (size_t r = 0; r < site.a.size(); r++) o.a[r] = source<uint32_t>(v, site.a[r]);
  for (size_t r = 0; r < site.b.size(); r++) o.b[r] = source<uint32_t>(v, site.b[r]);
  for (size_t r = 0; r < site.c.size(); r++) o.c[r] = source<uint32_t>(v, site.c[r]);
  for (size_t r = 0; r < site.d.size(); r++) o.d[r] = destination<uint32_t>(v, site.d[r]);
  if (site.form.sparse) o.metadata = source<uint32_t>(v, site.metadata);
  if (e.launch().options->ghost == plan::Ghost::matrix) {
    for (size_t r = 0; r < site.d.size() && r < site.c.size(); r++)
      std::memmove(o.d[r], o.c[r], 32 * sizeof(uint32_t));
    return;
  }
  const plan::TensorMode mode = e.launch().options->tensor;
  site.is_wmma ? emu::wmma(site.wmma, o, mode) : emu::mma(site.form, o, mode);
}

namespace {

uint64_t address_of(const WmmaMemorySite& site, uint64_t base, uint32_t stride, int reg, int lane,
                    int element) {
  const WmmaElement e = element_of(site.fragment, reg, lane, element);
  const uint64_t outer = static_cast<uint64_t>(site.column_major ? e.column : e.row);
  const uint64_t inner = static_cast<uint64_t>(site.column_major ? e.row : e.column);
  const uint64_t bits =
      (outer * stride + inner) * static_cast<uint64_t>(site.fragment.type == ptx::Type::tf32
                                                           ? 32
                                                           : ptx::bits(site.fragment.type));
  return base + bits / 8;
}

}  // namespace

void wmma_memory(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const WmmaMemorySite& site = w.exec->kernel().wmma_memories[op.extra];
  const WmmaFragment& f = site.fragment;
  uint64_t base[32], address[32];
  uint32_t stride[32];
  lane_addresses(w, site.address, base);
  std::memcpy(stride, source<uint32_t>(v, site.stride), sizeof stride);
  // The elements of a register are neighbours along K, or along an accumulator's columns (m8n32:
  // its rows). Where they are neighbours in memory too, one access fetches the register.
  const bool down = f.role == WmmaFragment::Role::b ||
                    (f.role == WmmaFragment::Role::accumulator && f.m == 8 && f.n == 32);
  const int elements = f.elements();
  const bool whole = elements == 1 || down == site.column_major;
  const int bits = (f.type == ptx::Type::f64 ? 64 : 32) / (whole ? 1 : elements);
  MemorySite m;
  m.is_store = site.is_store;
  m.element_bytes = static_cast<uint8_t>(bits / 8);
  m.register_bytes = f.type == ptx::Type::f64 ? 8 : 4;
  for (size_t r = 0; r < site.values.size(); r++) {
    uint32_t packed[32] = {};
    for (int e = 0; e < (whole ? 1 : elements); e++) {
      for (int l = 0; l < 32; l++)
        address[l] = address_of(site, base[l], stride[l], static_cast<int>(r), l, e);
      m.values.assign(1, whole ? site.values[r] : site.scratch);
      uint32_t* one = destination<uint32_t>(v, site.scratch);
      if (!whole && site.is_store)
        for (int l = 0; l < 32; l++) one[l] = source<uint32_t>(v, site.values[r])[l] >> (e * bits);
      access_lanes(w, m, site.space, address, mask);
      if (w.exec->launch().stop) return;
      if (!whole && !site.is_store)
        for (int l = 0; l < 32; l++) packed[l] |= one[l] << (e * bits);
    }
    if (!whole && !site.is_store)
      std::memcpy(destination<uint32_t>(v, site.values[r]), packed, sizeof packed);
  }
}

}  // namespace ptxbench::emu::ops
