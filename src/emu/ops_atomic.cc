// atom and red. Lanes take effect in lane order; kernels with global atomics run their CTAs in
// order on one host thread, so results do not depend on the number of threads.

#include <fmt/format.h>

#include "emu/atomics.h"
#include "emu/costs.h"
#include "emu/lane_access.h"
#include "emu/ops.h"
#include "emu/race_checker.h"

namespace ptxbench::emu::ops {
namespace {

uint64_t value_of(const Warp& w, Slot slot, int bytes, int lane) {
  switch (bytes) {
    case 2:
      return source<uint16_t>(w, slot)[lane];
    case 4:
      return source<uint32_t>(w, slot)[lane];
    default:
      return source<uint64_t>(w, slot)[lane];
  }
}

// Host bytes of an atomic's target; null after a fault.
uint8_t* target_bytes(Warp& w, uint64_t address, uint32_t bytes, int lane, int where,
                      const MemoryOrder& order) {
  Executor& e = *w.exec;
  if (address % bytes) {
    e.fault(w, "misaligned", 1u << lane,
            fmt::format("a {}-byte atomic at 0x{:x} is not aligned", bytes, address));
    return nullptr;
  }
  if (where == 1 || (where == 0 && in_window(address, kSharedWindow))) {
    uint32_t offset;
    Cta* c = shared_target(w, address, &offset);
    if (!c || offset < kReservedShared || offset + bytes > c->shared_bytes || c->exited) {
      e.fault(w, "out-of-bounds", 1u << lane, "a shared atomic leaves the CTA's shared memory", "",
              address);
      return nullptr;
    }
    if (!Executor::is_clean(*c, offset, bytes)) {
      e.diagnose_read(w, *c, offset, bytes, 1u << lane, "this atomic");
      Executor::mark_clean(*c, offset, bytes);
    }
    if (RaceChecker* races = e.races()) races->atomic(w, c, offset, bytes, order);
    return c->shared.data() + offset;
  }
  GlobalMemory& memory = *e.launch().memory;
  Allocation* a = memory.find(address);
  if (!a || !a->contains(address, bytes)) {
    std::string at = memory.describe(address);
    e.fault(w, "out-of-bounds", 1u << lane, "a global atomic touches " + at, "", address, at);
    return nullptr;
  }
  if (a->read_only) {
    e.fault(w, "write-to-input", 1u << lane,
            fmt::format("an atomic writes to {}, an input", a->name), "", address);
    return nullptr;
  }
  if (RaceChecker* races = e.races()) races->atomic(w, nullptr, address, bytes, order);
  uint64_t at = address - a->base;
  if (a->tracks_writes() && !a->note_read(at, bytes))
    e.report(w, "uninitialized-read", plan::HazardClass::latent, 1u << lane,
             fmt::format("an atomic reads {}, which nothing has written", memory.describe(address)),
             "", address);
  a->mark_written(at, bytes);
  e.touch(a, bytes, bytes);
  return a->data + at;
}

}  // namespace

namespace {

template <class T>
void store_lane(const Warp& w, Slot slot, int lane, uint64_t value) {
  destination<T>(w, slot)[lane] = static_cast<T>(value);
}

void set_value(const Warp& w, Slot slot, int bytes, int lane, uint64_t value) {
  if (bytes == 2)
    store_lane<uint16_t>(w, slot, lane, value);
  else if (bytes == 4)
    store_lane<uint32_t>(w, slot, lane, value);
  else
    store_lane<uint64_t>(w, slot, lane, value);
}

// 128-bit exch and cas. True if memory changed.
bool swap_wide(const Warp& w, const MemorySite& m, AtomicOp what, int l, uint8_t* p,
               uint8_t* before) {
  const size_t at = static_cast<size_t>(l) * 16;
  const uint8_t* b = source<uint8_t>(w, m.values[1]) + at;
  std::memcpy(before, p, 16);
  if (what == AtomicOp::cas) {
    if (std::memcmp(p, b, 16) != 0) return false;
    b = source<uint8_t>(w, m.values[2]) + at;
  }
  std::memcpy(p, b, 16);
  return std::memcmp(p, before, 16) != 0;
}

}  // namespace

// The elements of a vector are atomic one by one.
void atomic(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const MemorySite& m = w.exec->kernel().memories[op.extra];
  const AtomicOp what = static_cast<AtomicOp>(op.imm & 0xff);
  const ptx::Type type = static_cast<ptx::Type>(op.imm >> 8 & 0xff);
  const bool has_result = op.imm >> 16 & 0xff;
  const int where = static_cast<int>(op.imm >> 24 & 0xff);
  const size_t n = static_cast<size_t>(op.imm >> 32);
  const uint32_t bytes = m.element_bytes, all = bytes * static_cast<uint32_t>(n);
  uint64_t address[32];
  alignas(64) uint8_t before[32][32] = {};
  lane_addresses(w, m, address);
  if (CostLedger* costs = w.exec->costs(); costs && mask)
    costs->atomic(w.pc - 1, address, mask, all,
                  where == 1 || in_window(address[std::countr_zero(mask)], kSharedWindow));
  for_each_lane(mask, [&](int l) {
    if (w.exec->launch().stop) return;
    uint8_t* p = target_bytes(w, address[l], all, l, where, m.order);
    if (!p) return;
    if (bytes == 16) {
      if (swap_wide(w, m, what, l, p, before[l])) w.cta->cluster->progress++;
      return;
    }
    const bool shared = where == 1 || in_window(address[l], kSharedWindow);
    for (size_t e = 0; e < n; e++) {
      uint64_t old = 0;
      std::memcpy(&old, p + e * bytes, bytes);
      const uint64_t b = value_of(w, m.values[n + e], m.element_bytes, l);
      const uint64_t c =
          m.values.size() > 2 * n ? value_of(w, m.values[2 * n + e], m.element_bytes, l) : 0;
      const uint64_t now = atomic_result(what, type, old, b, c, !shared);
      std::memcpy(p + e * bytes, &now, bytes);
      std::memcpy(before[l] + e * bytes, &old, bytes);
      if (now != old) w.cta->cluster->progress++;
    }
  });
  if (!has_result) return;
  for (size_t e = 0; e < n; e++)
    for_each_lane(mask, [&](int l) {
      uint64_t old = 0;
      if (bytes == 16)
        return void(std::memcpy(destination<uint8_t>(w, m.values[0]) + l * 16, before[l], 16));
      std::memcpy(&old, before[l] + e * bytes, bytes);
      set_value(w, m.values[e], m.element_bytes, l, old);
    });
}

}  // namespace ptxbench::emu::ops
