// Who may read what a bulk load wrote.
//
// A load's bytes may be read by a thread that waited for the mbarrier phase which the load
// completed, or that synchronised with one that did. Timing hides a missing wait (the bytes are
// often there already, here too if another warp waited), so it is decided by knowledge: every warp
// carries, per mbarrier, the number of phases it knows to be complete; waits raise it, arrivals and
// barriers hand it on. Bytes carry the barrier and phase that announced them. A read without the
// knowledge is an early read, whatever the bytes hold.

#include <fmt/format.h>

#include <algorithm>

#include "emu/executor.h"

namespace ptxbench::emu {
namespace {

// Barrier id in the upper 12 bits, phase in the lower 20.
constexpr uint32_t kPhaseBits = 20;

bool knows(const Warp& w, const Cta& c, uint32_t stamp) {
  if (stamp == 0) return true;
  uint32_t id = stamp >> kPhaseBits, phase = stamp & ((1u << kPhaseBits) - 1);
  if (id >= c.barrier_live.size() || !c.barrier_live[id])
    return true;  // invalidated after its last phase
  return id < w.observed.size() && w.observed[id] >= phase;
}

}  // namespace

void join(Observed& into, const Observed& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); i++) into[i] = std::max(into[i], from[i]);
}

void Executor::stamp_arrival(Cta& c, uint32_t offset, uint32_t bytes, const LiveBarrier& barrier) {
  if (bytes == 0 || barrier.id >= (1u << (32 - kPhaseBits))) return;
  // Known complete once the current phase has ended.
  uint32_t stamp = barrier.id << kPhaseBits |
                   (static_cast<uint32_t>(barrier.phase() + 1) & ((1u << kPhaseBits) - 1));
  std::fill(c.arrivals.begin() + (offset >> 4), c.arrivals.begin() + ((offset + bytes + 15) >> 4),
            stamp);
  for (uint32_t kib = offset >> 10; kib <= (offset + bytes - 1) >> 10; kib++) {
    bool whole = offset <= kib << 10 && offset + bytes >= (kib + 1) << 10;
    uint32_t& k = c.arrival_kib[kib];
    k = whole || k == 0 || k == stamp ? stamp : kMixedArrivals;
  }
}

void Executor::clear_arrival(Cta& c, uint32_t offset, uint32_t bytes) {
  uint32_t last = offset + bytes - 1;
  for (uint32_t kib = offset >> 10; kib <= last >> 10; kib++)
    if (c.arrival_kib[kib] == 0 && kib == last >> 10 && kib == offset >> 10) return;
  std::fill(c.arrivals.begin() + (offset >> 4), c.arrivals.begin() + (last >> 4) + 1, 0);
}

bool Executor::may_be_unobserved(const Warp& w, const Cta& c, uint32_t offset, uint32_t bytes) {
  if (&c != w.cta || c.arrival_kib.empty()) return false;
  for (uint32_t kib = offset >> 10; kib <= (offset + bytes - 1) >> 10; kib++)
    if (uint32_t k = c.arrival_kib[kib]; k == kMixedArrivals || !knows(w, c, k)) return true;
  return false;
}

bool Executor::check_arrival(Warp& w, Cta& c, uint32_t offset, uint32_t bytes, uint32_t lanes,
                             const char* reader) {
  if (!may_be_unobserved(w, c, offset, bytes)) return true;
  for (uint32_t g = offset >> 4; g <= (offset + bytes - 1) >> 4; g++) {
    if (knows(w, c, c.arrivals[g])) continue;
    report(
        w, "async-early-read", plan::HazardClass::fatal, lanes,
        fmt::format("{} reads {}, which a bulk load writes; no wait on its mbarrier lies between",
                    reader, shared_symbol(c, g << 4)),
        "wait on the copy's mbarrier (mbarrier.try_wait) before reading its destination", g << 4,
        shared_symbol(c, g << 4));
    return false;
  }
  return true;
}

}  // namespace ptxbench::emu
