// The shadow of shared memory: which bytes were written, are about to be written by a copy in
// flight, or belong to a live mbarrier; and which generic-proxy writes the async proxy may not see
// yet.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/demangle.h"
#include "emu/executor.h"

namespace ptxbench::emu {
namespace {

void set_shadow(Cta& c, uint32_t offset, uint32_t bytes, uint8_t value) {
  uint32_t end = std::min<uint32_t>(offset + bytes, static_cast<uint32_t>(c.shadow.size()));
  while (offset < end) {
    uint32_t stop = std::min(end, (offset | 1023) + 1);
    uint8_t* s = c.shadow.data() + offset;
    int delta = 0;
    for (uint32_t i = 0; i < stop - offset; i++) delta += (value != kWritten) - (s[i] != kWritten);
    std::memset(s, value, stop - offset);
    c.unclean[offset >> 10] = static_cast<uint16_t>(c.unclean[offset >> 10] + delta);
    offset = stop;
  }
}

// Whether the warp that wrote at `seq` fenced afterwards, or anyone synchronised with the write and
// then fenced.
bool fenced_since(const Cta& c, uint64_t seq, uint32_t writer) {
  for (const auto& x : c.warps)
    if (x->fence_seq > seq && (x->index == writer || x->sync_seq_at_fence > seq)) return true;
  return false;
}

}  // namespace

void Executor::mark_clean(Cta& c, uint32_t offset, uint32_t bytes) {
  set_shadow(c, offset, bytes, kWritten);
}

void Executor::mark_in_flight(Cta& c, uint32_t offset, uint32_t bytes) {
  set_shadow(c, offset, bytes, kInFlight);
  if (offset + bytes <= c.shared.size()) std::memset(c.shared.data() + offset, 0xff, bytes);
}

void Executor::mark_barrier(Cta& c, uint32_t offset, bool live) {
  set_shadow(c, offset, 8, live ? kWritten | kBarrierWord : kWritten);
}

bool Executor::is_clean(const Cta& c, uint32_t offset, uint32_t bytes) {
  for (uint32_t kib = offset >> 10; kib <= (offset + bytes - 1) >> 10; kib++) {
    if (kib >= c.unclean.size()) return false;
    if (!c.unclean[kib]) continue;
    uint32_t from = std::max(offset, kib << 10), to = std::min(offset + bytes, (kib + 1) << 10);
    for (uint32_t i = from; i < to; i++)
      if (c.shadow[i] != kWritten) return false;
  }
  return true;
}

std::string Executor::shared_symbol(const Cta& c, uint32_t offset) const {
  const Kernel& k = *launch_.kernel;
  uint32_t user = offset - kReservedShared;
  std::string where = c.cluster->ctas.size() > 1 ? fmt::format(" of CTA rank {}", c.rank) : "";
  if (offset >= kReservedShared) {
    for (const SharedSymbol& s : k.shared_symbols)
      if (user >= s.offset && user < s.offset + s.size)
        return fmt::format("{}+{}{}", demangled_variable(s.name), user - s.offset, where);
    if (launch_.dynamic_shared && user >= k.dynamic_shared_offset)
      return fmt::format("dynamic shared memory+{}{}", user - k.dynamic_shared_offset, where);
  }
  return fmt::format("shared memory offset {}{}", offset, where);
}

void Executor::diagnose_read(Warp& w, Cta& c, uint32_t offset, uint32_t bytes, uint32_t lanes,
                             const char* reader) {
  uint8_t seen = 0;
  uint32_t first_flight = ~0u, first_unwritten = ~0u;
  for (uint32_t i = offset; i < offset + bytes && i < c.shadow.size(); i++) {
    seen |= c.shadow[i];
    if ((c.shadow[i] & kInFlight) && first_flight == ~0u) first_flight = i;
    if (!(c.shadow[i] & (kWritten | kInFlight)) && first_unwritten == ~0u) first_unwritten = i;
  }
  if (seen & kInFlight) {
    report(w, "async-early-read", plan::HazardClass::fatal, lanes,
           fmt::format("{} reads {}, which an asynchronous copy still in flight will write", reader,
                       shared_symbol(c, first_flight)),
           "wait on the copy's mbarrier (or wait_group) before reading its destination",
           first_flight, shared_symbol(c, first_flight));
  } else if (seen & kBarrierWord) {
    report(w, "mbarrier-access", plan::HazardClass::fatal, lanes,
           fmt::format("{} touches {}, a live mbarrier object", reader, shared_symbol(c, offset)),
           "only mbarrier instructions may access a live mbarrier; mbarrier.inval ends its life",
           offset, shared_symbol(c, offset));
  } else if (first_unwritten != ~0u) {
    report(w, "uninitialized-read", plan::HazardClass::latent, lanes,
           fmt::format("{} reads {}, which nothing has written", reader,
                       shared_symbol(c, first_unwritten)),
           "shared memory holds arbitrary bytes at kernel start", first_unwritten,
           shared_symbol(c, first_unwritten));
  }
}

void Executor::check_proxy(Warp& w, Cta& c, uint32_t offset, uint32_t bytes, const char* reader) {
  if (c.generic_kib.empty() || bytes == 0) return;
  uint32_t last =
      std::min<uint32_t>(offset + bytes - 1, static_cast<uint32_t>(c.shared.size()) - 1);
  for (uint32_t kib = offset >> 10; kib <= last >> 10; kib++) {
    if (!c.generic_kib[kib]) continue;
    uint32_t from = std::max(offset, kib << 10) >> 4,
             to = std::min(last, ((kib + 1) << 10) - 1) >> 4;
    for (uint32_t g = from; g <= to; g++) {
      uint64_t entry = c.generic_writes[g];
      if (!entry) continue;
      uint64_t seq = entry >> 8;
      uint32_t writer = static_cast<uint32_t>(entry & 0xff);
      if (writer == 0xff || fenced_since(c, seq, writer)) continue;
      report(
          w, "missing-proxy-fence", plan::HazardClass::latent, 0,
          fmt::format(
              "{} reads {} through the async proxy; warp {} wrote it with ordinary stores and no "
              "fence.proxy.async lies between",
              reader, shared_symbol(c, g << 4), writer),
          "each writing thread executes fence.proxy.async.shared::cta after its stores, before the "
          "barrier",
          g << 4, shared_symbol(c, g << 4));
      return;
    }
  }
}

void Executor::check_barrier_fence(Warp& w, uint32_t offset) {
  auto it = w.cta->mbarriers.find(offset);
  if (it == w.cta->mbarriers.end()) return;  // reported when the copy completes
  LiveBarrier& b = it->second;
  if (b.fenced) return;
  if (fenced_since(*w.cta, b.init_seq, b.init_warp)) {
    b.fenced = true;
    return;
  }
  report(
      w, "mbarrier-fence-missing", plan::HazardClass::latent, 0,
      fmt::format(
          "a bulk load will complete on {}, which warp {} initialised without a fence since",
          shared_symbol(*w.cta, offset), b.init_warp),
      "fence.mbarrier_init.release.cluster (or fence.proxy.async) after mbarrier.init, before the "
      "barrier",
      offset, shared_symbol(*w.cta, offset));
}

void Executor::check_source_in_flight(Warp& w, Cta& c, uint32_t offset, uint32_t bytes,
                                      const char* writer) {
  auto overlaps = [&](uint32_t lo, uint32_t hi) { return offset < hi && offset + bytes > lo; };
  if (overlaps(c.store_lo, c.store_hi))
    for (const auto& x : c.warps)
      for (const BulkStore& s : x->stores)
        if (overlaps(s.shared_lo, s.shared_hi)) {
          report(w, "async-source-overwritten", plan::HazardClass::fatal, 0,
                 fmt::format("{} writes {}, which a bulk store of warp {} may still be reading",
                             writer, shared_symbol(c, std::max(offset, s.shared_lo)), x->index),
                 "cp.async.bulk.wait_group.read before the buffer is used again", offset,
                 shared_symbol(c, offset));
          return;
        }
  if (overlaps(c.wgmma_lo, c.wgmma_hi))
    for (const Warpgroup& g : c.warpgroups)
      for (const WgmmaOp& op : g.ops)
        if (bool hits_a = overlaps(op.a.lo, op.a.hi);
            op.done != 0xf && (hits_a || overlaps(op.b.lo, op.b.hi))) {
          report(w, "async-operand-overwritten", plan::HazardClass::fatal, 0,
                 fmt::format("{} writes {}, which a wgmma in flight may still be reading", writer,
                             shared_symbol(c, std::max(offset, hits_a ? op.a.lo : op.b.lo))),
                 "wgmma.wait_group before the stage is released to the producer", offset,
                 shared_symbol(c, offset));
          return;
        }
}

}  // namespace ptxbench::emu
