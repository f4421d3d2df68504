// ldmatrix and stmatrix (.m8n8, .b16): the checks around emu/matrix_move.h.

#include <fmt/format.h>

#include "emu/costs.h"
#include "emu/lane_access.h"
#include "emu/matrix_move.h"
#include "emu/ops.h"
#include "emu/race_checker.h"

namespace ptxbench::emu::ops {
namespace {

// The lanes whose addresses count.
uint32_t rows(int count) { return count == 4 ? ~0u : (1u << 8 * count) - 1; }

// The 16 bytes of each row; false after a fault.
bool rows_of(Warp& w, const MicroOp& op, uint32_t offset[32], int count, bool store) {
  const MemorySite& m = w.exec->kernel().memories[op.extra];
  uint64_t address[32];
  lane_addresses(w, m, address);
  for (int l = 0; l < 8 * count; l++) {
    uint32_t o = 0;
    Cta* c = shared_target(w, address[l], &o);
    if (c != w.cta || o < kReservedShared || o + 16 > w.cta->shared_bytes) {
      w.exec->fault(w, "out-of-bounds", 1u << l,
                    fmt::format("{} row address 0x{:x} is outside the CTA's shared memory",
                                store ? "stmatrix" : "ldmatrix", address[l]),
                    "", address[l]);
      return false;
    }
    if (o % 16) {
      w.exec->fault(w, "misaligned", 1u << l, "matrix row addresses must be 16-byte aligned", "", o,
                    w.exec->shared_symbol(*w.cta, o));
      return false;
    }
    offset[l] = o;
  }
  return true;
}

}  // namespace

void ldmatrix(RegisterView& v, const MicroOp& op, uint32_t) {
  Warp& w = warp_of(v);
  const MemorySite& m = w.exec->kernel().memories[op.extra];
  int count = static_cast<int>(op.imm & 0xff);
  bool trans = op.imm >> 8;
  uint32_t offset[32];
  if (!rows_of(w, op, offset, count, false)) return;
  Cta& c = *w.cta;
  if (RaceChecker* races = w.exec->races()) races->shared(w, c, offset, rows(count), 16, false);
  for (int l = 0; l < 8 * count; l++)
    if (!Executor::is_clean(c, offset[l], 16))
      w.exec->diagnose_read(w, c, offset[l], 16, 1u << l, "ldmatrix");
  bool early = false;
  for (int l = 0; l < 8 * count && w.exec->tracks_proxies(); l++)
    early |= !w.exec->check_arrival(w, c, offset[l], 16, 1u << l, "ldmatrix");
  uint32_t* regs[4];
  for (size_t j = 0; j < m.values.size(); j++) regs[j] = destination<uint32_t>(v, m.values[j]);
  emu::ldmatrix(c.shared.data(), offset, count, trans, regs);
  for (int j = 0; j < count && early; j++) std::fill_n(regs[j], 32, ~0u);
  if (CostLedger* costs = w.exec->costs()) costs->rows(w.pc - 1, offset, 8 * count, false);
  w.exec->traffic().shared_load += 128u * static_cast<unsigned>(count);
}

void stmatrix(RegisterView& v, const MicroOp& op, uint32_t) {
  Warp& w = warp_of(v);
  const MemorySite& m = w.exec->kernel().memories[op.extra];
  int count = static_cast<int>(op.imm & 0xff);
  bool trans = op.imm >> 8;
  uint32_t offset[32];
  if (!rows_of(w, op, offset, count, true)) return;
  Cta& c = *w.cta;
  if (RaceChecker* races = w.exec->races()) races->shared(w, c, offset, rows(count), 16, true);
  bool in_use = c.store_lo < c.store_hi || c.wgmma_lo < c.wgmma_hi;
  uint64_t stamp = c.sequence << 8 | w.index;
  for (int l = 0; l < 8 * count; l++) {
    if (in_use) w.exec->check_source_in_flight(w, c, offset[l], 16, "stmatrix");
    if (!Executor::is_clean(c, offset[l], 16)) {
      if (c.shadow[offset[l]] & (kInFlight | kBarrierWord))
        w.exec->diagnose_read(w, c, offset[l], 16, 1u << l, "stmatrix");
      Executor::mark_clean(c, offset[l], 16);
    }
    if (w.exec->tracks_proxies()) {
      c.generic_writes[offset[l] >> 4] = stamp;
      c.generic_kib[offset[l] >> 10] = stamp >> 8;
      Executor::clear_arrival(c, offset[l], 16);
    }
  }
  const uint32_t* regs[4];
  for (size_t j = 0; j < m.values.size(); j++) regs[j] = source<uint32_t>(v, m.values[j]);
  emu::stmatrix(c.shared.data(), offset, count, trans, regs);
  c.cluster->progress++;
  if (CostLedger* costs = w.exec->costs()) costs->rows(w.pc - 1, offset, 8 * count, true);
  w.exec->traffic().shared_store += 128u * static_cast<unsigned>(count);
}

// Lane l holds elements 2*(l%4) and 2*(l%4)+1 of row l/4, before and after the transposition.
void movmatrix(RegisterView& v, const MicroOp& op, uint32_t mask) {
  const uint32_t* from = source<uint32_t>(v, op.operand[1]);
  uint16_t element[8][8];
  for (int l = 0; l < 32; l++)
    for (int e = 0; e < 2; e++)
      element[l / 4][2 * (l % 4) + e] = static_cast<uint16_t>(from[l] >> (16 * e));
  uint32_t* to = destination<uint32_t>(v, op.operand[0]);
  for_each_lane(mask, [&](int l) {
    to[l] = element[2 * (l % 4)][l / 4] | uint32_t{element[2 * (l % 4) + 1][l / 4]} << 16;
  });
}

}  // namespace ptxbench::emu::ops
