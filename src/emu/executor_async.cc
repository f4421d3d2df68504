// Asynchronous copies: issued at their instruction, performed when something waits for them.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emu/costs.h"
#include "emu/executor.h"
#include "emu/race_checker.h"
#include "emu/tma_walk.h"

namespace ptxbench::emu {
namespace {

// The host memory of [address, address+bytes), or null.
uint8_t* global_bytes(GlobalMemory& m, uint64_t address, uint64_t bytes, Allocation** owner) {
  Allocation* a = m.find(address);
  *owner = a;
  if (!a || !a->contains(address, bytes)) return nullptr;
  return a->data + (address - a->base);
}

}  // namespace

void Executor::issue_load(Warp& w, BulkLoad load) {
  Cluster& c = *w.cta->cluster;
  Cta& target = *c.ctas[load.cta_rank];
  check_source_in_flight(w, target, load.shared_address, load.span, "a bulk load");
  check_readers(w, target, load.shared_address, load.span, "a bulk load");
  if (!target.mbarriers.empty())
    for (auto& [offset, bar] : target.mbarriers)
      if (offset + 8 > load.shared_address && offset < load.shared_address + load.span)
        return fault(w, "mbarrier-access", 0,
                     fmt::format("a bulk load writes over the live mbarrier at {}",
                                 shared_symbol(target, offset)));
  if (races()) races()->bulk_load(w, load);
  // Only the bytes of the box are written; a small inner box leaves the gaps of its pitch alone.
  // What a reduction adds to stays as it is until then.
  if (load.reduce != 0xff) {
    if (!is_clean(target, load.shared_address, load.span))
      diagnose_read(w, target, load.shared_address, load.span, 0, "a reduction");
  } else if (load.tensor && load.span != load.bytes) {
    for_each_piece(load.map, load.at, load.shared_address, false, [&](const CopyPiece& p) {
      mark_in_flight(target, p.shared_address & kSharedOffsetMask, p.bytes);
    });
  } else {
    mark_in_flight(target, load.shared_address, load.span);
  }
  c.loads.push_back(std::move(load));
  if (eager()) perform_load(c, c.loads.size() - 1);
}

void Executor::perform_load(Cluster& c, size_t index) {
  BulkLoad load = std::move(c.loads[index]);
  c.loads.erase(c.loads.begin() + static_cast<long>(index));
  Cta& target = *c.ctas[load.cta_rank];
  uint8_t* shared = target.shared.data();
  Allocation* owner = nullptr;
  if (load.tensor) {
    uint8_t* global = global_bytes(*launch_.memory, load.map.global_address, 0, &owner);
    if (owner) touch(owner, load.bytes, 0);
    tma_load(load.map, load.at, load.shared_address, shared, global);
    if (launch_.options->ghost == plan::Ghost::tensor_load)
      for_each_piece(load.map, load.at, load.shared_address, false, [&](const CopyPiece& p) {
        std::memset(shared + (p.shared_address & kSharedOffsetMask), 0, p.bytes);
      });
    if (load.span != load.bytes)
      for_each_piece(load.map, load.at, load.shared_address, false, [&](const CopyPiece& p) {
        mark_clean(target, p.shared_address & kSharedOffsetMask, p.bytes);
      });
    else
      mark_clean(target, load.shared_address, load.span);
  } else {
    const uint8_t* src = !load.data.empty() ? load.data.data()
                         : load.shared_source
                             ? load.shared_source
                             : global_bytes(*launch_.memory, load.global, load.bytes, &owner);
    if (owner) touch(owner, load.bytes, 0);
    if (src && load.reduce != 0xff)
      reduce_elements(load.type, static_cast<ReduceOp>(load.reduce), shared + load.shared_address,
                      src, load.bytes / static_cast<uint32_t>(plan::element_size(load.type)));
    else if (src)
      std::memcpy(shared + load.shared_address, src, load.bytes);
    mark_clean(target, load.shared_address, load.bytes);
  }
  // These bytes were written by the async proxy: earlier generic writes no longer matter. (The
  // state is kept for 16 bytes together: an asynchronous store of fewer leaves it alone.)
  const bool whole = load.data.empty() || load.bytes == 16;
  if (!target.generic_writes.empty() && whole) {
    uint32_t from = load.shared_address >> 4, to = (load.shared_address + load.span + 15) >> 4;
    std::fill(target.generic_writes.begin() + from,
              target.generic_writes.begin() + std::min<size_t>(to, target.generic_writes.size()),
              0);
  }
  traffic_.bulk_load += load.bytes;
  c.progress++;
  Cta& barrier_cta = *c.ctas[load.mbarrier_rank];
  auto it = barrier_cta.mbarriers.find(load.mbarrier);
  if (it != barrier_cta.mbarriers.end())
    it->second.beside = c.loads.empty() ? Beside::none : Beside::others;
  if (&barrier_cta == &target && it != barrier_cta.mbarriers.end() && whole) {
    if (load.tensor && load.span != load.bytes)
      for_each_piece(load.map, load.at, load.shared_address, false, [&](const CopyPiece& p) {
        stamp_arrival(target, p.shared_address & kSharedOffsetMask, p.bytes, it->second);
      });
    else
      stamp_arrival(target, load.shared_address, load.span, it->second);
  }
  if (it == barrier_cta.mbarriers.end()) {
    report_at(
        barrier_cta, load.issuer_warp, load.pc, "mbarrier-uninitialized", plan::HazardClass::fatal,
        0,
        fmt::format("a bulk copy completes on {}, which is no initialised mbarrier",
                    shared_symbol(barrier_cta, load.mbarrier)),
        "mbarrier.init the barrier before the copy and keep it alive until the copy has completed");
    return;
  }
  if (it->second.complete_tx(load.bytes) != Mbarrier::Fault::none)
    report_at(barrier_cta, load.issuer_warp, load.pc, "mbarrier-tx-overflow",
              plan::HazardClass::fatal, 0,
              fmt::format("the transaction count of {} leaves its range",
                          shared_symbol(barrier_cta, load.mbarrier)));
}

void Executor::perform_for(Cluster& c, const Wait& wait) {
  const Cta& cta = *c.ctas[wait.cta_rank];
  bool performed = false;
  for (size_t i = 0; i < c.loads.size() && !satisfied(cta, wait);) {
    const BulkLoad& l = c.loads[i];
    if (l.mbarrier_rank == wait.cta_rank && l.mbarrier == wait.address)
      perform_load(c, i), performed = true;
    else
      i++;
  }
  if (costs_ && performed && c.loads.empty()) costs_->exposed_wait(1);
}

// Nobody waited: on silicon the bytes may arrive when the memory already belongs to another CTA.
void Executor::report_unfinished_loads(Cluster& c) {
  for (const BulkLoad& l : c.loads)
    report_at(*c.ctas[l.cta_rank], l.issuer_warp, l.pc, "bulk-load-unfinished",
              plan::HazardClass::latent, 0,
              "the CTA exits while a bulk load into its shared memory is still in flight",
              "wait for every load on its mbarrier before the CTA exits");
  c.loads.clear();
}

void Executor::perform_store(Warp& w, const BulkStore& s) {
  Cta& cta = *w.cta;
  Allocation* owner = nullptr;
  traffic_.bulk_store += s.bytes;
  cta.cluster->progress++;
  if (!s.tensor) {
    uint8_t* dst = global_bytes(*launch_.memory, s.global, s.bytes, &owner);
    if (!dst) return;
    touch(owner, s.reduce ? s.bytes : 0, s.bytes);
    const uint8_t* src = cta.shared.data() + s.shared_address;
    if (s.reduce)
      reduce_elements(s.type, s.op, dst, src,
                      s.bytes / static_cast<uint32_t>(plan::element_size(s.type)));
    else
      std::memcpy(dst, src, s.bytes);
    owner->mark_written(s.global - owner->base, s.bytes);
    return;
  }
  uint8_t* base = global_bytes(*launch_.memory, s.map.global_address, 0, &owner);
  if (!base) return;
  touch(owner, s.reduce ? s.bytes : 0, s.bytes);
  if (s.reduce)
    tma_reduce(s.map, s.at, s.shared_address, cta.shared.data(), base, s.op);
  else
    tma_store(s.map, s.at, s.shared_address, cta.shared.data(), base);
  if (owner->tracks_writes())
    for_each_piece(s.map, s.at, s.shared_address, true, [&](const CopyPiece& p) {
      if (p.global_offset >= 0)
        owner->mark_written(
            s.map.global_address - owner->base + static_cast<uint64_t>(p.global_offset), p.bytes);
    });
}

void Executor::finish_stores(Warp& w) {
  if (w.stores.empty()) return;
  std::vector<BulkStore> stores = std::move(w.stores);
  w.stores.clear();
  for (const BulkStore& s : stores) {
    report_at(
        *w.cta, static_cast<int>(w.index), s.pc, "bulk-store-unfinished", plan::HazardClass::latent,
        1u << s.lane, "the thread exits while its bulk store may still be reading shared memory",
        "cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0 before the CTA exits");
    perform_store(w, s);
  }
}

void Executor::perform_cp_async(Warp& w, const CpAsync& copy) {
  Cta& cta = *w.cta;
  for (int l = 0; l < 32; l++) {
    if (!(copy.mask >> l & 1)) continue;
    uint8_t* dst = cta.shared.data() + copy.dst[l];
    Allocation* owner = nullptr;
    std::memset(dst, 0, copy.bytes);
    if (copy.src_bytes[l])
      if (const uint8_t* src =
              global_bytes(*launch_.memory, copy.src[l], copy.src_bytes[l], &owner))
        touch(owner, copy.src_bytes[l], 0), std::memcpy(dst, src, copy.src_bytes[l]);
    mark_clean(cta, copy.dst[l], copy.bytes);
  }
  traffic_.global_load +=
      uint64_t{copy.bytes} * static_cast<unsigned>(__builtin_popcount(copy.mask));
  cta.cluster->progress++;
}

}  // namespace ptxbench::emu
