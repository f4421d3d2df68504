// atom and red. Lanes take effect in lane order; kernels with global atomics run their CTAs in
// order on one host thread, so results do not depend on the number of threads.

#include <fmt/format.h>

#include "emu/atomics.h"
#include "emu/lane_access.h"
#include "emu/ops.h"

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
uint8_t* target_bytes(Warp& w, uint64_t address, uint32_t bytes, int lane, int where) {
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

void atomic(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const MemorySite& m = w.exec->kernel().memories[op.extra];
  AtomicOp what = static_cast<AtomicOp>(op.imm & 0xff);
  ptx::Type type = static_cast<ptx::Type>(op.imm >> 8 & 0xff);
  bool has_result = op.imm >> 16 & 0xff;
  int where = static_cast<int>(op.imm >> 24 & 0xff);
  uint64_t address[32], before[32] = {};
  lane_addresses(w, m, address);
  for_each_lane(mask, [&](int l) {
    if (w.exec->launch().stop) return;
    uint8_t* p = target_bytes(w, address[l], m.element_bytes, l, where);
    if (!p) return;
    uint64_t old = 0;
    std::memcpy(&old, p, m.element_bytes);
    uint64_t b = value_of(w, m.values[1], m.element_bytes, l);
    uint64_t c = m.values.size() > 2 ? value_of(w, m.values[2], m.element_bytes, l) : 0;
    uint64_t now = atomic_result(what, type, old, b, c);
    std::memcpy(p, &now, m.element_bytes);
    before[l] = old;
    if (now != old) w.cta->cluster->progress++;
  });
  if (!has_result) return;
  for_each_lane(mask, [&](int l) {
    switch (m.element_bytes) {
      case 2:
        destination<uint16_t>(w, m.values[0])[l] = static_cast<uint16_t>(before[l]);
        break;
      case 4:
        destination<uint32_t>(w, m.values[0])[l] = static_cast<uint32_t>(before[l]);
        break;
      default:
        destination<uint64_t>(w, m.values[0])[l] = before[l];
    }
  });
}

}  // namespace ptxbench::emu::ops
