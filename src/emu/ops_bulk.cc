// cp.async.bulk, cp.async.bulk.tensor, their reductions, commit and wait.

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "emu/costs.h"
#include "emu/lane_access.h"
#include "emu/ops.h"
#include "emu/race_checker.h"
#include "emu/tma_walk.h"

namespace ptxbench::emu::ops {
namespace {

uint64_t lane64(const Warp& w, Slot slot, int lane) { return source<uint64_t>(w, slot)[lane]; }
uint32_t lane32(const Warp& w, Slot slot, int lane) { return source<uint32_t>(w, slot)[lane]; }

// A shared address (or a generic one into the shared window) as rank and offset; false: not shared
// memory.
bool resolve_shared(const Warp& w, uint64_t address, uint32_t* rank, uint32_t* offset) {
  if (address >> 32) {
    if (!in_window(address, kSharedWindow)) return false;
  }
  uint32_t a = static_cast<uint32_t>(address);
  *rank = a >> kSharedRankShift;
  *offset = a & kSharedOffsetMask;
  return *rank < w.cta->cluster->ctas.size();
}

// The tensor map at a generic address: kernel parameter, global or constant memory.
bool fetch_map(Warp& w, uint64_t address, plan::TensorMapArgs* map, int lane) {
  LaunchState& launch = w.exec->launch();
  uint8_t bytes[128];
  bool ok = false;
  if (in_window(address, kParamWindow)) {
    uint64_t at = address & 0xffffffffu;
    if (at + 128 <= launch.params.size())
      std::memcpy(bytes, launch.params.data() + at, 128), ok = true;
  } else if (Allocation* a = launch.memory->find(address); a && a->contains(address, 128)) {
    std::memcpy(bytes, a->data + (address - a->base), 128);
    ok = true;
  }
  if (!ok || address % 64) {
    w.exec->fault(
        w, "tensor-map", 1u << lane,
        fmt::format("the tensor map's address 0x{:x} is {}", address,
                    ok ? "not 64-byte aligned" : "neither a kernel parameter nor global memory"),
        "pass the CUtensorMap as a const __grid_constant__ parameter and take its address",
        address);
    return false;
  }
  Result<plan::TensorMapArgs> decoded = plan::decode(bytes);
  if (!decoded.ok()) {
    w.exec->fault(w, "tensor-map", 1u << lane, "not a valid tensor map: " + decoded.error().message,
                  "encode it with cuTensorMapEncodeTiled", address);
    return false;
  }
  *map = decoded.take();
  check_map_fence(w, address, lane);
  return true;
}

// The map of a copy, which must be one for the instruction; false after a fault.
bool map_for(Warp& w, const BulkSite& site, plan::TensorMapArgs* map, int lane, bool is_store) {
  if (!fetch_map(w, lane64(w, site.map, lane) + static_cast<uint64_t>(site.map_offset), map, lane))
    return false;
  std::string why;
  if (map->rank != site.dims)
    why = fmt::format("the instruction is {}-dimensional, the tensor map {}-dimensional", site.dims,
                      map->rank);
  else if (map->im2col != site.im2col)
    why = fmt::format("the instruction is in {} mode, the tensor map in {} mode",
                      site.im2col ? "im2col" : "tiled", map->im2col ? "im2col" : "tiled");
  if (Result<void> known = supported(*map, is_store); why.empty() && !known.ok()) {
    w.exec->launch().halt(plan::RunStatus::unsupported, w.cta->cluster->index,
                          known.error().message);
    w.yield = true;
    return false;
  }
  if (why.empty()) return true;
  w.exec->fault(w, "tensor-map", 1u << lane, why);
  return false;
}

// Bytes from the tensor's start to the end of what the copy may touch (`whole`: of the whole
// tensor). 128 bits: dims reach 2^32 and strides 2^40, and a hostile map must not wrap around.
unsigned __int128 reach(const plan::TensorMapArgs& map, const Coordinates& at, bool whole) {
  auto last = [&](uint32_t d) -> unsigned __int128 {
    if (whole || map.im2col) return map.dims[d] - 1;
    int64_t to = int64_t{at[d]} + map.box[d] - 1;
    return to < 0 ? 0 : std::min<uint64_t>(static_cast<uint64_t>(to), map.dims[d] - 1);
  };
  unsigned __int128 end = (last(0) + 1) * static_cast<unsigned>(plan::element_size(map.type));
  end = (end + 15) / 16 * 16;
  for (uint32_t d = 1; d < map.rank; d++) end += last(d) * map.strides[d - 1];
  return end;
}

// The whole in-bounds extent of the copy must lie in one allocation.
bool check_extent(Warp& w, const plan::TensorMapArgs& map, const Coordinates& at, uint32_t shared,
                  bool store, int lane) {
  GlobalMemory& memory = *w.exec->launch().memory;
  // The usual case first: the whole tensor lies in an initialised buffer.
  constexpr unsigned __int128 kFar = uint64_t{1} << 46;
  unsigned __int128 end = reach(map, at, true);
  Allocation* whole = memory.find(map.global_address);
  if (whole && end < kFar && whole->contains(map.global_address, static_cast<uint64_t>(end)) &&
      (store ? !whole->read_only : !whole->tracks_writes()))
    return true;
  if (reach(map, at, false) >= kFar) {
    w.exec->fault(
        w, "out-of-bounds", 1u << lane,
        "the tensor copy reaches far beyond any buffer: the tensor map's strides are wrong");
    return false;
  }
  int64_t lo = INT64_MAX, hi = 0;
  for_each_piece(map, at, shared, store, [&](const CopyPiece& p) {
    if (p.global_offset < 0) return;
    lo = std::min(lo, p.global_offset);
    hi = std::max<int64_t>(hi, p.global_offset + p.bytes);
  });
  if (hi == 0) return true;
  uint64_t first = map.global_address + static_cast<uint64_t>(lo),
           bytes = static_cast<uint64_t>(hi - lo);
  Allocation* a = memory.find(map.global_address);
  if (!a || !a->contains(first, bytes)) {
    w.exec->fault(w, "out-of-bounds", 1u << lane,
                  fmt::format("the tensor copy touches {}", memory.describe(first + bytes - 1)),
                  "the tensor map's sizes and strides must describe memory inside the buffer",
                  first, memory.describe(first));
    return false;
  }
  if (store && a->read_only) {
    w.exec->fault(w, "write-to-input", 1u << lane,
                  fmt::format("the tensor copy writes to {}, an input", a->name), "", first,
                  a->name);
    return false;
  }
  if (!store && a->tracks_writes()) {
    bool bad = false;
    for_each_piece(map, at, shared, store, [&](const CopyPiece& p) {
      if (p.global_offset >= 0 && !bad)
        bad = !a->note_read(map.global_address - a->base + static_cast<uint64_t>(p.global_offset),
                            p.bytes);
    });
    if (bad)
      w.exec->report(
          w, "uninitialized-read", plan::HazardClass::latent, 1u << lane,
          fmt::format("the tensor copy reads bytes of {} that nothing has written", a->name), "",
          first, a->name);
  }
  return true;
}

bool check_shared_range(Warp& w, Cta& c, uint32_t offset, uint32_t bytes, int lane,
                        const char* what) {
  if (offset >= kReservedShared && offset + uint64_t{bytes} <= c.shared_bytes) return true;
  w.exec->fault(w, "out-of-bounds", 1u << lane,
                fmt::format("{} touches shared memory [{}, {}) of {} bytes", what, offset,
                            offset + bytes, c.shared_bytes),
                "the launch must ask for enough dynamic shared memory", offset,
                w.exec->shared_symbol(c, offset));
  return false;
}

Coordinates coordinates(const Warp& w, const BulkSite& site, int lane) {
  Coordinates at{};
  for (size_t d = 0; d < site.coordinates.size(); d++)
    at[d] = static_cast<int32_t>(lane32(w, site.coordinates[d], lane));
  for (size_t d = 0; d < site.image_offsets.size(); d++)
    at[kImageOffsets + d] = source<uint16_t>(w, site.image_offsets[d])[lane];
  return at;
}

plan::MapType reduce_type(ptx::Type t) {
  using T = ptx::Type;
  using M = plan::MapType;
  switch (t) {
    case T::f16:
      return M::f16;
    case T::bf16:
      return M::bf16;
    case T::f32:
      return M::f32;
    case T::f64:
      return M::f64;
    case T::s32:
      return M::s32;
    case T::s64:
      return M::s64;
    case T::u64:
    case T::b64:
      return M::u64;
    default:
      return M::u32;
  }
}

void load_lane(Warp& w, const BulkSite& site, int lane) {
  Executor& e = *w.exec;
  uint32_t rank, offset, bar_rank, bar;
  uint64_t dst = lane64(w, site.dst, lane) + static_cast<uint64_t>(site.dst_offset);
  uint64_t mbar = lane64(w, site.mbarrier, lane) + static_cast<uint64_t>(site.mbarrier_offset);
  if (!resolve_shared(w, dst, &rank, &offset) || !resolve_shared(w, mbar, &bar_rank, &bar))
    return e.fault(w, "out-of-bounds", 1u << lane,
                   "destination or mbarrier is not in the cluster's shared memory");
  BulkLoad load;
  load.pc = w.pc - 1;
  load.issuer_cta = w.cta->linear;
  load.issuer_warp = static_cast<int>(w.index);
  load.cta_rank = rank;
  load.shared_address = offset;
  load.mbarrier = bar;
  load.mbarrier_rank = bar_rank;
  Cluster& cluster = *w.cta->cluster;
  if (site.dims) {
    load.tensor = true;
    if (!map_for(w, site, &load.map, lane, false)) return;
    load.at = coordinates(w, site, lane);
    load.bytes = transaction_bytes(load.map);
    load.span = box_span(load.map);
    if (std::string why = check_copy(load.map, load.at, offset, false); !why.empty())
      return e.fault(w, "illegal-tensor-copy", 1u << lane, why, "", offset);
    if (!check_extent(w, load.map, load.at, offset, false, lane)) return;
  } else {
    load.bytes = load.span = lane32(w, site.size, lane);
    load.reduce = site.reduce, load.type = reduce_type(site.type);
    load.global = lane64(w, site.src, lane) + static_cast<uint64_t>(site.src_offset);
    if (load.bytes % 16 || load.global % 16 || offset % 16)
      return e.fault(
          w, "misaligned", 1u << lane,
          "a bulk copy needs 16-byte aligned addresses and a size that is a multiple of 16");
    uint32_t src_rank, src;
    if (in_window(load.global, kSharedWindow) || load.global >> 32 == 0) {
      if (!resolve_shared(w, load.global, &src_rank, &src) || src_rank != w.cta->rank)
        return e.fault(w, "out-of-bounds", 1u << lane,
                       "the source is not in the CTA's shared memory");
      if (!check_shared_range(w, *w.cta, src, load.bytes, lane, "a bulk copy")) return;
      e.check_proxy(w, *w.cta, src, load.bytes, "a bulk copy");
      load.shared_source = w.cta->shared.data() + src;
    } else {
      GlobalMemory& memory = *e.launch().memory;
      Allocation* a = memory.find(load.global);
      if (!a || !a->contains(load.global, load.bytes))
        return e.fault(w, "out-of-bounds", 1u << lane,
                       "the bulk copy reads " + memory.describe(load.global + load.bytes - 1), "",
                       load.global, memory.describe(load.global));
    }
  }
  if (bar_rank == w.cta->rank) e.check_barrier_fence(w, bar);
  uint32_t targets = site.has_multicast ? source<uint16_t>(w, site.multicast)[lane] : 1u << rank;
  if (CostLedger* costs = e.costs(); costs && !load.shared_source)
    costs->bulk_load(load.bytes, static_cast<uint32_t>(std::popcount(targets)));
  for (uint32_t r = 0; r < 16; r++) {
    if (!(targets >> r & 1)) continue;
    if (r >= cluster.ctas.size())
      return e.fault(w, "out-of-bounds", 1u << lane,
                     fmt::format("the multicast mask 0x{:x} names CTA {} of a cluster of {}",
                                 targets, r, cluster.ctas.size()));
    Cta& target = *cluster.ctas[r];
    if (!check_shared_range(w, target, offset, load.span, lane, "a bulk load")) return;
    if (target.exited)
      return e.fault(
          w, "out-of-bounds", 1u << lane,
          fmt::format("a bulk load writes to the shared memory of CTA rank {}, which has exited",
                      r),
          "keep every CTA of the cluster alive until all copies into it have completed");
    BulkLoad one = load;
    one.cta_rank = r;
    // A multicast signals the barrier at the same offset in each destination CTA.
    one.mbarrier_rank = site.has_multicast ? r : bar_rank;
    if (cluster.ctas.size() > 1)
      e.check_init_order(w, *cluster.ctas[one.mbarrier_rank], bar, 1u << lane);
    e.issue_load(w, std::move(one));
  }
}

void store_lane(Warp& w, const BulkSite& site, int lane) {
  Executor& e = *w.exec;
  uint32_t rank, offset;
  uint64_t src = lane64(w, site.src, lane) + static_cast<uint64_t>(site.src_offset);
  if (!resolve_shared(w, src, &rank, &offset) || rank != w.cta->rank)
    return e.fault(w, "out-of-bounds", 1u << lane,
                   "the source is not in the CTA's own shared memory");
  BulkStore s;
  s.lane = static_cast<uint32_t>(lane);
  s.group = ~uint64_t{0};
  s.pc = w.pc - 1;
  s.shared_address = offset;
  s.tensor = site.dims != 0;
  s.reduce = site.reduce != 0xff;
  if (s.reduce) s.op = static_cast<ReduceOp>(site.reduce);
  uint32_t span;
  if (site.dims) {
    if (!map_for(w, site, &s.map, lane, true)) return;
    s.at = coordinates(w, site, lane);
    span = box_span(s.map);
    s.bytes = transaction_bytes(s.map);
    if (std::string why = check_copy(s.map, s.at, offset, true); !why.empty())
      return e.fault(w, "illegal-tensor-copy", 1u << lane, why, "", offset);
    if (!check_extent(w, s.map, s.at, offset, true, lane)) return;
  } else {
    s.bytes = span = lane32(w, site.size, lane);
    s.global = lane64(w, site.dst, lane) + static_cast<uint64_t>(site.dst_offset);
    s.type = reduce_type(site.type);
    if (s.bytes % 16 || s.global % 16 || offset % 16)
      return e.fault(
          w, "misaligned", 1u << lane,
          "a bulk copy needs 16-byte aligned addresses and a size that is a multiple of 16");
    GlobalMemory& memory = *e.launch().memory;
    Allocation* a = memory.find(s.global);
    if (!a || !a->contains(s.global, s.bytes))
      return e.fault(w, "out-of-bounds", 1u << lane,
                     "the bulk store writes " + memory.describe(s.global + s.bytes - 1), "",
                     s.global, memory.describe(s.global));
    if (a->read_only)
      return e.fault(w, "write-to-input", 1u << lane,
                     "the bulk store writes to " + a->name + ", an input");
  }
  Cta& c = *w.cta;
  if (!check_shared_range(w, c, offset, span, lane, "a bulk store")) return;
  s.shared_lo = offset, s.shared_hi = offset + span;
  if (s.bytes == span && !Executor::is_clean(c, offset, span))
    e.diagnose_read(w, c, offset, span, 1u << lane, "a bulk store");
  e.check_proxy(w, c, offset, span, "a bulk store");
  if (e.races()) e.races()->bulk_store(w, s);
  if (CostLedger* costs = e.costs()) costs->bulk_store(s.bytes, s.reduce);
  if (e.eager()) return e.perform_store(w, s);
  c.store_lo = std::min(c.store_lo, s.shared_lo);
  c.store_hi = std::max(c.store_hi, s.shared_hi);
  w.stores.push_back(std::move(s));
}

}  // namespace

void bulk_load(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const BulkSite& site = w.exec->kernel().bulks[op.extra];
  for (uint32_t m = mask; m && !w.exec->launch().stop; m &= m - 1)
    load_lane(w, site, std::countr_zero(m));
}

void bulk_store(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  const BulkSite& site = w.exec->kernel().bulks[op.extra];
  for (uint32_t m = mask; m && !w.exec->launch().stop; m &= m - 1)
    store_lane(w, site, std::countr_zero(m));
}

void bulk_commit(RegisterView& v, const MicroOp&, uint32_t mask) {
  Warp& w = warp_of(v);
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t lane = static_cast<uint32_t>(std::countr_zero(m));
    if (RaceChecker* races = w.exec->races()) races->bulk_commit(w, lane);
    for (BulkStore& s : w.stores)
      if (s.lane == lane && s.group == ~uint64_t{0}) s.group = w.store_groups[lane];
    w.store_groups[lane]++;
  }
}

void bulk_wait(RegisterView& v, const MicroOp& op, uint32_t mask) {
  Warp& w = warp_of(v);
  if (RaceChecker* races = w.exec->races()) races->bulk_wait(w, mask, op.imm, op.extra);
  if (w.stores.empty()) return;
  // Group g (from 0) must be complete when committed - g > imm.
  auto due = [&](const BulkStore& s) {
    return (mask >> s.lane & 1) && s.group != ~uint64_t{0} &&
           w.store_groups[s.lane] - s.group > op.imm;
  };
  for (size_t i = 0; i < w.stores.size();) {
    if (!due(w.stores[i])) {
      i++;
      continue;
    }
    BulkStore s = std::move(w.stores[i]);
    w.stores.erase(w.stores.begin() + static_cast<long>(i));
    w.exec->perform_store(w, s);
  }
  Cta& c = *w.cta;
  c.store_lo = ~0u, c.store_hi = 0;
  for (const auto& x : c.warps)
    for (const BulkStore& s : x->stores)
      c.store_lo = std::min(c.store_lo, s.shared_lo),
      c.store_hi = std::max(c.store_hi, s.shared_hi);
}

}  // namespace ptxbench::emu::ops
