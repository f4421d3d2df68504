// What asynchronous operations read and write: from their issue until somebody waits for them.

#include "emu/lane_access.h"
#include "emu/race_state.h"
#include "emu/tensor_core.h"
#include "emu/tma_walk.h"

namespace ptxbench::emu {
namespace {

constexpr uint64_t kOpen = ~uint64_t{0};  // a group that is not committed

TimedAccess of_agent(uint32_t cluster, uint32_t component, uint32_t clock, uint32_t pc,
                     SyncScope scope = SyncScope::weak, bool followed = false) {
  return {clock, cluster, static_cast<uint16_t>(component), 0,
          TimedAccess::make_site(pc, scope, followed)};
}

}  // namespace

// -------------------------------------------------------------------------------------- cp.async

void RaceChecker::copy(Warp& w, const CpAsync& copy) {
  WarpState& s = of(w);
  const TimedAccess now = of_agent(state(w).cluster, component(w, kCopies), ++s.copies, copy.pc);
  for_each_lane(copy.mask, [&](int l) {
    touch_shared(w, *w.cta, copy.dst[l], copy.bytes, now, true);
    bulk_global(w, nullptr, nullptr, 0, copy.src[l], copy.src_bytes[l], now, false);
  });
}

void RaceChecker::copy_commit(Warp& w) { of(w).copy_groups.push_back(of(w).copies); }

void RaceChecker::copy_wait(Warp& w, uint64_t groups_left) {
  WarpState& s = of(w);
  const size_t n = s.copy_groups.size();
  if (groups_left == kOpen)
    s.known.clock.raise(component(w, kCopies), s.copies);
  else if (groups_left < n)
    s.known.clock.raise(component(w, kCopies), s.copy_groups[n - 1 - groups_left]);
}

void RaceChecker::copy_arrive(Warp& w, const LiveBarrier& barrier) {
  WarpState& s = of(w);
  HandedOn with_copies = s.known;
  with_copies.clock.raise(component(w, kCopies), s.copies);
  Meeting& m = state(w).mbarriers[barrier.race_index].meeting;
  m.advance(barrier.phase());
  m.current.join(with_copies);
  s.known.clock.raise(component(w, kSelf), s.known.clock.at(component(w, kSelf)) + 1);
}

// ---------------------------------------------------------------------------- bulk copies,
// st.async

// Bytes of a tensor copy, or [address, address + bytes).
void RaceChecker::bulk_global(Warp& w, const plan::TensorMapArgs* map, const Coordinates* at,
                              uint32_t shared, uint64_t address, uint32_t bytes,
                              const TimedAccess& now, bool write) {
  const Allocation* owner = launch_.memory->find(map ? map->global_address : address);
  if (!write && (!owner || owner->read_only)) return;
  if (!map) return touch_global(w, address, bytes, now, write);
  for_each_piece(*map, *at, shared, write, [&](const CopyPiece& p) {
    if (p.global_offset >= 0)
      touch_global(w, map->global_address + static_cast<uint64_t>(p.global_offset), p.bytes, now,
                   write);
  });
}

void RaceChecker::bulk_load(Warp& w, const BulkLoad& load) {
  Cluster& cluster = *w.cta->cluster;
  const Cta& barrier_cta = *cluster.ctas[load.mbarrier_rank];
  const auto it = barrier_cta.mbarriers.find(load.mbarrier);
  if (it == barrier_cta.mbarriers.end()) return;  // reported when the copy completes
  const LiveBarrier& barrier = it->second;
  mbarrier_use(w, barrier_cta, load.mbarrier, barrier);
  const uint32_t who = warps_ * kAgents + barrier.race_index;
  if (who > UINT16_MAX) return;
  const bool whole = load.data.empty() || load.bytes == kGranuleBytes;
  const bool reduces = load.reduce != 0xff;
  const TimedAccess now = of_agent(
      state(w).cluster, who, static_cast<uint32_t>(barrier.phase()) + 1, load.pc,
      reduces ? SyncScope::gpu : SyncScope::weak, whole && load.mbarrier_rank == load.cta_rank);
  Cta& target = *cluster.ctas[load.cta_rank];
  if (load.tensor && load.span != load.bytes)
    for_each_piece(load.map, load.at, load.shared_address, false, [&](const CopyPiece& p) {
      touch_shared(w, target, p.shared_address & kSharedOffsetMask, p.bytes, now, true);
    });
  else
    touch_shared(w, target, load.shared_address, load.span, now, true);
  TimedAccess read = now;
  read.site = TimedAccess::make_site(load.pc, SyncScope::weak);
  if (load.shared_source)
    touch_shared(w, *w.cta, static_cast<uint32_t>(load.shared_source - w.cta->shared.data()),
                 load.bytes, read, false);
  else if (load.data.empty())
    bulk_global(w, load.tensor ? &load.map : nullptr, &load.at, load.shared_address, load.global,
                load.bytes, read, false);
}

void RaceChecker::bulk_store(Warp& w, const BulkStore& store) {
  WarpState& s = of(w);
  const uint32_t number = ++s.bulks_issued, cluster = state(w).cluster;
  s.bulks.push_back({number, store.lane, kOpen, false});
  const TimedAccess read = of_agent(cluster, component(w, kBulkReads), number, store.pc);
  if (store.tensor && store.shared_hi - store.shared_lo != store.bytes)
    for_each_piece(store.map, store.at, store.shared_address, true, [&](const CopyPiece& p) {
      touch_shared(w, *w.cta, p.shared_address & kSharedOffsetMask, p.bytes, read, false);
    });
  else
    touch_shared(w, *w.cta, store.shared_lo, store.shared_hi - store.shared_lo, read, false);
  bulk_global(w, store.tensor ? &store.map : nullptr, &store.at, store.shared_address, store.global,
              store.bytes,
              of_agent(cluster, component(w, kBulkWrites), number, store.pc,
                       store.reduce ? SyncScope::gpu : SyncScope::weak),
              true);
}

void RaceChecker::bulk_commit(Warp& w, uint32_t lane) {
  WarpState& s = of(w);
  for (WarpState::Bulk& b : s.bulks)
    if (b.lane == lane && b.group == kOpen) b.group = s.bulk_groups[lane];
  s.bulk_groups[lane]++;
}

void RaceChecker::bulk_wait(Warp& w, uint32_t lanes, uint64_t groups_left, bool read) {
  WarpState& s = of(w);
  uint32_t reads = s.bulks_issued, writes = s.bulks_issued;
  std::erase_if(s.bulks, [&](WarpState::Bulk& b) {
    const bool due =
        (lanes >> b.lane & 1) && b.group != kOpen && s.bulk_groups[b.lane] - b.group > groups_left;
    b.read |= due;
    if (due && !read) return true;
    writes = std::min(writes, b.number - 1);
    if (!b.read) reads = std::min(reads, b.number - 1);
    return false;
  });
  s.known.clock.raise(component(w, kBulkReads), reads);
  s.known.clock.raise(component(w, kBulkWrites), writes);
}

// ----------------------------------------------------------------------------------------- wgmma

// Rows (or columns of B) [first, first + count) of an operand in shared memory. Without `record`
// only ordinary stores are looked at.
void RaceChecker::operand(Warp& w, uint64_t descriptor, bool mn_major, int bytes, int first,
                          int count, int k, const TimedAccess& read, bool record) {
  const MatrixDescriptor d = decode_descriptor(descriptor);
  const int per_chunk = static_cast<int>(kGranuleBytes) / bytes;
  const int outer_end = mn_major ? k : first + count, inner_begin = mn_major ? first : 0,
            inner_end = mn_major ? first + count : k;
  for (int o = mn_major ? 0 : first; o < outer_end; o++)
    for (int i = inner_begin; i < inner_end; i += per_chunk) {
      const uint32_t at = element_address(d, mn_major, bytes, mn_major ? i : o, mn_major ? o : i);
      if (at < kReservedShared || at + kGranuleBytes > w.cta->shared_bytes) continue;
      if (!record && !w.cta->generic_kib[at >> 10]) continue;
      touch_shared(w, *w.cta, at & ~(kGranuleBytes - 1), kGranuleBytes, read, false);
    }
}

void RaceChecker::wgmma(Warp& w, const WgmmaSite& site, uint64_t a, uint64_t b, uint64_t number,
                        bool first) {
  const WgmmaForm& f = site.form;
  auto width = [](ptx::Type t) { return t == ptx::Type::tf32 ? 4 : std::max(1, ptx::bits(t) / 8); };
  const uint32_t cluster = state(w).cluster, pc = w.pc - 1;
  const uint32_t leader = component(w, kWgmma) - w.index % 4 * kAgents;
  const uint32_t clock = static_cast<uint32_t>(number) + 1;
  const TimedAccess rows =
      of_agent(cluster, component(w, kWgmmaRows), clock, pc, SyncScope::weak, true);
  if (!f.a_in_registers)
    operand(w, a, f.a_mn_major, width(f.a), static_cast<int>(w.index % 4) * 16, 16,
            addressed(f, f.a_k()), rows, true);
  operand(w, b, f.b_mn_major, width(f.b), 0, f.n, addressed(f, f.k),
          first ? of_agent(cluster, leader, clock, pc, SyncScope::weak, true) : rows, first);
}

void RaceChecker::wgmma_complete(Warp& w, uint64_t count) {
  of(w).known.clock.raise(component(w, kWgmmaRows), static_cast<uint32_t>(count));
}

}  // namespace ptxbench::emu
