// Who may read what a bulk load wrote.
//
// A load's bytes may be read by a thread that waited for the mbarrier phase which the load
// completed, or that synchronised with one that did. Timing hides a missing wait (the bytes are
// often there already, here too if another warp waited), so it is decided by knowledge: every warp
// carries, per mbarrier, the number of phases it knows to be complete; waits raise it, arrivals and
// barriers hand it on. Bytes carry the barrier and phase that announced them. A read without the
// knowledge is an early read, whatever the bytes hold.
//
// The same the other way round: a stage may be overwritten only by a thread that knows the wgmmas
// which read it to be complete. Each warp knows its own after wgmma.wait_group, and hands that on
// likewise; so a stage released before the wait is found although the bytes are still right here.

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
  return known(w.observed, phases_of(id)) >= phase;
}

}  // namespace

void learn(Observed& o, size_t what, uint32_t count) {
  if (o.size() <= what) o.resize(what + 1);
  o[what] = std::max(o[what], count);
}

void join(Observed& into, const Observed& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); i++) into[i] = std::max(into[i], from[i]);
}

void KnownInits::set(uint32_t index) {
  if (bits.size() <= index / 64) bits.resize(index / 64 + 1);
  bits[index / 64] |= uint64_t{1} << index % 64;
}

bool KnownInits::has(uint32_t index) const {
  return index / 64 < bits.size() && (bits[index / 64] >> index % 64 & 1);
}

void KnownInits::join(const KnownInits& from) {
  if (bits.size() < from.bits.size()) bits.resize(from.bits.size());
  for (size_t i = 0; i < from.bits.size(); i++) bits[i] |= from.bits[i];
}

void Executor::check_init_order(Warp& w, Cta& c, uint32_t offset, uint32_t lanes) {
  if (&c == w.cta) return;
  const auto it = c.mbarriers.find(offset);
  if (it != c.mbarriers.end() && w.known_inits.has(it->second.init_index)) return;
  report(w, "mbarrier-init-unordered", plan::HazardClass::latent, lanes,
         fmt::format("{} is used from another CTA, and nothing orders this behind its "
                     "initialisation",
                     shared_symbol(c, offset)),
         "a cluster barrier (arrive.release, wait.acquire) between mbarrier.init and the first use "
         "by other CTAs",
         offset, shared_symbol(c, offset));
}

void Executor::stamp_arrival(Cta& c, uint32_t offset, uint32_t bytes, const LiveBarrier& barrier) {
  if (bytes == 0 || c.arrivals.empty() || barrier.id >= (1u << (32 - kPhaseBits))) return;
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

void mark_wgmma_read(Warpgroup& g, const Cta& c, const WgmmaOp::Range& range,
                     uint32_t operand_bytes, uint64_t number) {
  // A bounding range of more than a row of the 128-byte swizzle per 32 bytes used may cover what
  // belongs to others.
  if (range.lo >= range.hi || range.hi - range.lo > 4 * operand_bytes) return;
  if (g.last_reader.empty()) g.last_reader.resize(c.shared_bytes / kReadGranule + 1);
  const uint32_t last = std::min(range.hi, c.shared_bytes) - 1;
  std::fill(g.last_reader.begin() + range.lo / kReadGranule,
            g.last_reader.begin() + last / kReadGranule + 1, static_cast<uint32_t>(number + 1));
}

void Executor::check_readers(Warp& w, Cta& c, uint32_t offset, uint32_t bytes, const char* writer) {
  if (&c != w.cta || bytes == 0) return;
  for (size_t i = 0; i < c.warpgroups.size(); i++) {
    const Warpgroup& g = c.warpgroups[i];
    if (g.last_reader.empty()) continue;
    uint32_t complete = ~0u;
    for (uint32_t x = 0; x < 4; x++)
      complete = std::min(complete, known(w.observed, wgmmas_of(static_cast<uint32_t>(i) * 4 + x)));
    for (uint32_t at = offset / kReadGranule; at <= (offset + bytes - 1) / kReadGranule; at++) {
      if (g.last_reader[at] <= complete) continue;
      report(w, "async-operand-overwritten", plan::HazardClass::latent, w.active,
             fmt::format("{} overwrites {}, which a wgmma of warpgroup {} reads; nothing says that "
                         "it has completed",
                         writer, shared_symbol(c, at * kReadGranule), i),
             "release a stage (mbarrier.arrive) only after wgmma.wait_group covers the wgmmas that "
             "read it",
             at * kReadGranule, shared_symbol(c, at * kReadGranule));
      return;
    }
  }
}

}  // namespace ptxbench::emu
