// cp.async: per-thread copies of 4, 8 or 16 bytes from global to shared memory, grouped per warp.

#include <fmt/format.h>

#include "emu/costs.h"
#include "emu/lane_access.h"
#include "emu/ops.h"
#include "emu/race_checker.h"

namespace ptxbench::emu::ops {
namespace {

bool check_lane(Warp& w, CpAsync& c, int l, uint64_t dst, uint64_t src) {
  Executor& e = *w.exec;
  uint32_t offset = 0;
  Cta* target = shared_target(w, dst, &offset);
  if (target != w.cta || offset < kReservedShared || offset + c.bytes > w.cta->shared_bytes) {
    e.fault(w, "out-of-bounds", 1u << l, "cp.async writes outside the CTA's shared memory", "",
            dst);
    return false;
  }
  if (offset % c.bytes || src % c.bytes) {
    e.fault(w, "misaligned", 1u << l,
            fmt::format("cp.async of {} bytes needs addresses aligned to it", c.bytes));
    return false;
  }
  c.dst[l] = offset;
  c.src[l] = src;
  if (!c.src_bytes[l]) return true;
  GlobalMemory& memory = *e.launch().memory;
  Allocation* a = memory.find(src);
  if (a && a->contains(src, c.src_bytes[l])) return true;
  std::string where = memory.describe(src);
  e.fault(w, "out-of-bounds", 1u << l, "cp.async reads " + where,
          "check the limits of ragged sizes", src, where);
  return false;
}

}  // namespace

void cp_async(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const BulkSite& site = w.exec->kernel().bulks[op.extra];
  CpAsync copy;
  copy.pc = w.pc - 1;
  copy.mask = mask;
  copy.group = ~uint64_t{0};
  copy.bytes = static_cast<uint32_t>(op.imm);
  const uint32_t ignored = op.imm >> 33 & 1 ? predicate(v, op, 0) : 0;
  bool ok = true;
  for_each_lane(mask, [&](int l) {
    if (!ok) return;
    copy.src_bytes[l] = ignored >> l & 1   ? 0
                        : op.imm >> 32 & 1 ? std::min(source<uint32_t>(v, site.size)[l], copy.bytes)
                                           : copy.bytes;
    ok = check_lane(w, copy, l,
                    source<uint64_t>(v, site.dst)[l] + static_cast<uint64_t>(site.dst_offset),
                    source<uint64_t>(v, site.src)[l] + static_cast<uint64_t>(site.src_offset));
  });
  if (!ok) return;
  if (RaceChecker* races = w.exec->races()) races->copy(w, copy);
  for_each_lane(mask, [&](int l) {
    w.exec->check_source_in_flight(w, *w.cta, copy.dst[l], copy.bytes, "cp.async");
    Executor::mark_in_flight(*w.cta, copy.dst[l], copy.bytes);
  });
  if (CostLedger* costs = w.exec->costs()) {
    costs->copy();
    costs->global(w.pc - 1, *w.cta, copy.src.data(), mask, copy.bytes, false);
    costs->shared(w.pc - 1, copy.dst.data(), mask, copy.bytes, true);
  }
  if (w.exec->eager())
    w.exec->perform_cp_async(w, copy);
  else
    w.cp_async.push_back(copy);
}

void cp_async_commit(RegisterView& v, const MicroOp&, uint32_t) {
  Warp& w = warp_of(v);
  if (RaceChecker* races = w.exec->races()) races->copy_commit(w);
  for (CpAsync& c : w.cp_async)
    if (c.group == ~uint64_t{0}) c.group = w.cp_groups;
  w.cp_groups++;
}

void cp_async_wait(RegisterView& v, const MicroOp& op, uint32_t) {
  Warp& w = warp_of(v);
  if (RaceChecker* races = w.exec->races()) races->copy_wait(w, op.imm);
  bool all = op.imm == ~uint64_t{0};
  while (!w.cp_async.empty()) {
    const CpAsync& c = w.cp_async.front();
    if (!all && (c.group == ~uint64_t{0} || w.cp_groups - c.group <= op.imm)) break;
    w.exec->perform_cp_async(w, c);
    w.cp_async.pop_front();
    if (w.exec->costs() && w.cp_async.empty())
      w.exec->costs()->exposed_wait(1.0 / static_cast<double>(w.cta->warps.size()));
  }
}

// Arrives on the barrier when all prior cp.async of the thread have completed. They are performed
// here: nothing else could be waiting for them before the arrival.
void cp_async_mbarrier_arrive(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  while (!w.cp_async.empty()) {
    w.exec->perform_cp_async(w, w.cp_async.front());
    w.cp_async.pop_front();
  }
  const MemorySite& m = w.exec->kernel().memories[op.extra];
  uint64_t address[32];
  lane_addresses(w, m, address);
  for_each_lane(mask, [&](int l) {
    if (w.exec->launch().stop) return;
    uint32_t offset = 0;
    Cta* c = shared_target(w, address[l], &offset);
    auto it = c ? c->mbarriers.find(offset) : decltype(c->mbarriers.end()){};
    if (!c || it == c->mbarriers.end())
      return w.exec->fault(w, "mbarrier-uninitialized", 1u << l,
                           "cp.async.mbarrier.arrive on no initialised mbarrier");
    if (RaceChecker* races = w.exec->races()) races->copy_arrive(w, it->second);
    uint64_t token;
    // Without .noinc the pending count is raised by one first, so the arrival is neutral.
    if (op.imm && it->second.arrive(1, &token) != Mbarrier::Fault::none)
      w.exec->report(w, "mbarrier-arrival-overflow", plan::HazardClass::fatal, 1u << l,
                     "more arrivals than the phase still expects");
    c->cluster->progress++;
  });
}

}  // namespace ptxbench::emu::ops
