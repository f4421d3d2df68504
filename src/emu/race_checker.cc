#include "emu/race_checker.h"

#include <fmt/format.h>

#include "emu/lane_access.h"
#include "emu/race_state.h"

namespace ptxbench::emu {

MemoryOrder memory_order(const ptx::Modifiers& m, MemoryOrder otherwise) {
  using ptx::Mod;
  MemoryOrder o = otherwise;
  if (m.has(Mod::volatile_) || m.has(Mod::mmio)) o = {Order::relaxed, SyncScope::gpu};
  if (m.has(Mod::relaxed)) o.order = Order::relaxed;
  if (m.has(Mod::acquire)) o.order = Order::acquire;
  if (m.has(Mod::release)) o.order = Order::release;
  if (m.has(Mod::acq_rel) || m.has(Mod::sc)) o.order = Order::acq_rel;
  if (o.order == Order::weak) return {};
  if (m.has(Mod::cta)) o.scope = SyncScope::cta;
  if (m.has(Mod::cluster)) o.scope = SyncScope::cluster;
  if (m.has(Mod::gpu) || m.has(Mod::sys)) o.scope = SyncScope::gpu;
  if (o.scope == SyncScope::weak) o.scope = SyncScope::gpu;
  return o;
}

struct RaceChecker::Place {
  const Cta* shared = nullptr;
  uint64_t address = 0;  // offset in its shared memory, or global
};

RaceChecker::~RaceChecker() = default;

void RaceChecker::start(Cluster& cluster) {
  warps_per_cta_ = static_cast<uint32_t>(cluster.ctas[0]->warps.size());
  warps_ = warps_per_cta_ * static_cast<uint32_t>(cluster.ctas.size());
  if (!cluster.races) cluster.races = std::make_shared<State>();
  State& s = *static_cast<State*>(cluster.races.get());
  s.cluster = static_cast<uint32_t>(cluster.index);
  s.warps.assign(warps_, {});
  for (uint32_t i = 0; i < warps_; i++) s.warps[i].known.clock.raise(i * kAgents + kSelf, 1);
  s.ctas.resize(cluster.ctas.size());
  for (size_t r = 0; r < cluster.ctas.size(); r++) {
    State::CtaState& c = s.ctas[r];
    c.granules.assign(cluster.ctas[r]->shared_bytes / kGranuleBytes + 1, {});
    c.history.clear_overflow();
    c.barriers.fill({});
  }
  s.cluster_barrier = {};
  s.mbarriers.clear();
  s.locations.clear();
}

RaceChecker::WarpState& RaceChecker::of(const Warp& w) const {
  return state(w).warps[w.cta->rank * warps_per_cta_ + w.index];
}

uint32_t RaceChecker::component(const Warp& w, int kind) const {
  return (w.cta->rank * warps_per_cta_ + w.index) * kAgents + static_cast<uint32_t>(kind);
}

TimedAccess RaceChecker::access(const Warp& w, SyncScope scope) const {
  const uint32_t self = component(w, kSelf);
  return {of(w).known.clock.at(self), state(w).cluster, static_cast<uint16_t>(self), 0,
          TimedAccess::make_site(w.pc - 1, scope)};
}

bool RaceChecker::knows(const Warp& w, const TimedAccess& before) const {
  const State& s = state(w);
  const VectorClock& clock = of(w).known.clock;
  if (before.cluster != s.cluster)
    return epoch_of(clock.foreign(), uint64_t{before.cluster} << 32 | before.component) >=
           before.clock;
  const uint32_t c = before.component;
  if (clock.at(c) >= before.clock) return true;
  if (c >= warps_ * kAgents) return s.mbarriers[c - warps_ * kAgents].dead;
  if (c % kAgents != kWgmma) return false;
  for (uint32_t i = 0; i < 4; i++)
    if (clock.at(c + i * kAgents - kWgmma + kWgmmaRows) < before.clock) return false;
  return true;
}

// Both strong, and each within the other's scope.
bool RaceChecker::compatible(const TimedAccess& a, const TimedAccess& b) const {
  const SyncScope weaker = std::min(a.scope(), b.scope());
  if (weaker == SyncScope::weak || weaker == SyncScope::gpu) return weaker == SyncScope::gpu;
  if (a.cluster != b.cluster) return false;
  const uint32_t per_cta = warps_per_cta_ * kAgents;
  return weaker == SyncScope::cluster || a.component / per_cta == b.component / per_cta;
}

void RaceChecker::touch(Warp& w, AccessHistory& shadow, Granule& g, const TimedAccess& now,
                        bool write, const Place& place) {
  shadow.access(
      g, now, write, [&](const TimedAccess& before) { return knows(w, before); },
      [&](const TimedAccess& before) { return compatible(now, before); },
      [&](const TimedAccess& before, bool was_write) {
        report(w, now, write, before, was_write, place);
      });
}

void RaceChecker::touch_shared(Warp& w, Cta& c, uint32_t offset, uint32_t bytes, TimedAccess now,
                               bool write) {
  State::CtaState& s = state(w).ctas[c.rank];
  for (uint32_t end = offset + bytes; offset < end;) {
    const uint32_t in = offset % kGranuleBytes, n = std::min(kGranuleBytes - in, end - offset);
    now.mask = static_cast<uint16_t>(((1u << n) - 1) << in);
    touch(w, s.history, s.granules[offset / kGranuleBytes], now, write, {&c, offset});
    offset += n;
  }
}

void RaceChecker::touch_global(Warp& w, uint64_t address, uint64_t bytes, TimedAccess now,
                               bool write) {
  for (uint64_t end = address + bytes; address < end;) {
    const uint64_t in = address % kGranuleBytes, n = std::min(kGranuleBytes - in, end - address);
    now.mask = static_cast<uint16_t>(((1u << n) - 1) << in);
    Granule* g = global_.at(address);
    if (g) touch(w, global_history_, *g, now, write, {nullptr, address});
    if (!g && !limit_reported_) {
      limit_reported_ = true;
      w.exec->report(w, "races-not-followed", plan::HazardClass::advice, 0,
                     fmt::format("races are followed in the first {} MiB of global memory that a "
                                 "launch touches; the rest is not looked at",
                                 GlobalGranules::kMaxPages * GlobalGranules::kPageBytes >> 20));
    }
    address += n;
  }
}

void RaceChecker::shared(Warp& w, Cta& c, const uint32_t* offset, uint32_t lanes, uint32_t bytes,
                         bool write, MemoryOrder order) {
  const TimedAccess now = access(w, order.scope);
  // Neighbouring lanes mostly touch neighbouring bytes.
  uint32_t from = 0, to = 0;
  for_each_lane(lanes, [&](int l) {
    if (offset[l] == to && to % kGranuleBytes) return void(to += bytes);
    if (offset[l] >= from && offset[l] + bytes <= to) return;
    if (to > from) touch_shared(w, c, from, to - from, now, write);
    from = offset[l], to = offset[l] + bytes;
  });
  touch_shared(w, c, from, to - from, now, write);
  if (order.order == Order::weak) return;
  for_each_lane(lanes, [&](int l) {
    synchronise(w, state(w).locations, uint64_t{c.rank} << kSharedRankShift | offset[l], order,
                !write, write);
  });
}

void RaceChecker::global(Warp& w, const uint64_t* address, uint32_t lanes, uint32_t bytes,
                         bool write, MemoryOrder order) {
  const TimedAccess now = access(w, order.scope);
  const Allocation* owner = launch_.memory->find(address[std::countr_zero(lanes)]);
  if (!write && owner && owner->read_only) return;
  uint64_t from = 0, to = 0;
  for_each_lane(lanes, [&](int l) {
    if (address[l] == to && to % kGranuleBytes) return void(to += bytes);
    if (address[l] >= from && address[l] + bytes <= to) return;
    if (to > from) touch_global(w, from, to - from, now, write);
    from = address[l], to = address[l] + bytes;
  });
  touch_global(w, from, to - from, now, write);
  if (order.order == Order::weak) return;
  for_each_lane(
      lanes, [&](int l) { synchronise(w, global_locations_, address[l], order, !write, write); });
}

void RaceChecker::atomic(Warp& w, Cta* c, uint64_t address, uint32_t bytes, MemoryOrder order) {
  const TimedAccess now = access(w, order.scope);
  if (c)
    touch_shared(w, *c, static_cast<uint32_t>(address), bytes, now, true);
  else
    touch_global(w, address, bytes, now, true);
  synchronise(w, c ? state(w).locations : global_locations_,
              c ? uint64_t{c->rank} << kSharedRankShift | address : address, order, true, true);
}

// ------------------------------------------------------------------------------------- reports

namespace {

std::string coordinates(const LaunchState& launch, uint64_t cluster, uint64_t rank) {
  const plan::Dim3 &grid = launch.grid, &shape = launch.cluster;
  const uint64_t nx = grid.x / shape.x, ny = grid.y / shape.y;
  return fmt::format("({},{},{})", cluster % nx * shape.x + rank % shape.x,
                     cluster / nx % ny * shape.y + rank / shape.x % shape.y,
                     cluster / nx / ny * shape.z + rank / shape.x / shape.y);
}

std::string source_of(const plan::Finding& f) {
  return f.other_line > 0
             ? fmt::format("{}:{} (PTX line {})", f.other_file, f.other_line, f.other_ptx_line)
             : fmt::format("PTX line {}", f.other_ptx_line);
}

}  // namespace

std::string RaceChecker::agent(const TimedAccess& a) const {
  const uint32_t warp = a.component / kAgents % warps_per_cta_;
  if (a.component >= warps_ * kAgents) return "an asynchronous copy into shared memory";
  switch (a.component % kAgents) {
    case kCopies:
      return fmt::format("a cp.async of warp {}", warp);
    case kBulkReads:
    case kBulkWrites:
      return fmt::format("a bulk store of warp {}", warp);
    case kWgmmaRows:
    case kWgmma:
      return fmt::format("a wgmma of warpgroup {}", warp / 4);
    default:
      return fmt::format("warp {}", warp);
  }
}

void RaceChecker::report(Warp& w, const TimedAccess& now, bool write, const TimedAccess& before,
                         bool was_write, const Place& place) {
  // Other checkers follow what arrives by a bulk load, and what wgmmas read of it.
  if (place.shared == w.cta && before.followed() && (was_write ? !write : now.followed())) return;
  uint64_t& times = pairs_[uint64_t{now.pc()} << 32 | before.pc()];
  if (times++) return;
  const uint32_t per_cta = warps_per_cta_ * kAgents;
  const bool is_warp = before.component < warps_ * kAgents;
  const bool same_cluster = before.cluster == state(w).cluster;
  const bool same_cta = same_cluster && (!is_warp || before.component / per_cta == w.cta->rank);
  const std::string symbol =
      place.shared ? w.exec->shared_symbol(*place.shared, static_cast<uint32_t>(place.address))
                   : launch_.memory->describe(place.address);
  plan::Finding f;
  locate_other(f, *launch_.kernel, before.pc());
  std::string who = agent(before);
  if (!same_cta && is_warp)
    who += " of CTA " + coordinates(launch_, before.cluster, before.component / per_cta);
  const bool weak = now.scope() == SyncScope::weak && before.scope() == SyncScope::weak;
  f.kind = "data-race";
  f.hazard = plan::HazardClass::latent;
  f.message = fmt::format(
      "{} {} {}, which {} {} at {}; nothing orders the two{}", agent(now),
      write ? "writes" : "reads", symbol, who, was_write ? "wrote" : "read", source_of(f),
      write && was_write && weak ? " (equal values count, too, by the ISA)" : "");
  const uint64_t id = uint64_t{before.cluster} << 32 | before.component;
  const auto& pending = of(w).pending;
  const bool flag_read = std::any_of(std::begin(pending), std::end(pending), [&](const auto& p) {
    return epoch_of(p, id) >= before.clock;
  });
  f.hint = flag_read
               ? "a flag that says so was read, but without .acquire, and no fence of its scope "
                 "follows (__threadfence() behind the atomic or the polling loop)"
           : same_cta ? "a barrier that both pass between the two accesses (__syncthreads, a named "
                        "barrier, an mbarrier), or waiting for the asynchronous operation"
           : same_cluster ? "a cluster barrier between the two accesses"
                          : "CTAs of one launch are not ordered: release (__threadfence and an "
                            "atomic) by one, acquire by the other, or two launches";
  f.address = place.address;
  f.symbol = symbol;
  const FindingSite site{now.pc(), w.cta->linear, w.cta->id, static_cast<int>(w.index), w.active};
  launch_.sink->add(std::move(f), site);
}

void RaceChecker::report_counts() {
  std::unordered_map<uint32_t, uint64_t> more;
  for (const auto& [pair, times] : pairs_) more[static_cast<uint32_t>(pair >> 32)] += times - 1;
  for (const auto& [pc, times] : more) launch_.sink->add_count("data-race", pc, times);
}

}  // namespace ptxbench::emu
