#include "emu/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "emu/costs.h"
#include "emu/ops.h"
#include "emu/race_checker.h"

namespace ptxbench::emu {
namespace {

uint8_t* aligned_bytes(size_t n) {
  return static_cast<uint8_t*>(std::aligned_alloc(64, std::max<size_t>((n + 63) / 64 * 64, 64)));
}

// A slice ends a warp's turn so that warps of a CTA advance together and spinning ends.
constexpr int kSlice = 4096;
// Instructions without visible progress after which another cluster may run (software grid
// barriers).
constexpr uint64_t kSpinningCluster = 200'000;
// The same in a cooperative launch, whose clusters are resident all together anyway.
constexpr uint64_t kSpinningCooperative = 8'192;

}  // namespace

void LaunchState::halt(plan::RunStatus why, uint64_t cluster_index, std::string text) {
  std::lock_guard lock(mutex);
  if (!stop || cluster_index < message_cluster) {
    status = static_cast<int>(why);
    message = std::move(text);
    message_cluster = cluster_index;
  }
  stop = true;
}

Executor::Executor(LaunchState& launch) : launch_(launch) {
  const Kernel& k = *launch.kernel;
  counts_.resize(k.code.size());
  constants_ = aligned_bytes(k.constants.size());
  std::memcpy(constants_, k.constants.data(), k.constants.size());
  const std::string& schedule = launch.options->schedule;
  random_schedule_ = schedule.starts_with("random:");
  if (random_schedule_) schedule_seed_ = std::strtoull(schedule.c_str() + 7, nullptr, 10);
  tracks_proxies_ = !k.bulks.empty() || !k.wgmmas.empty() || k.stores_async;
}

Executor::~Executor() { std::free(constants_); }

// ----------------------------------------------------------------------------------------------
// reports

void Executor::report_at(const Cta& cta, int warp, uint32_t pc, const char* kind,
                         plan::HazardClass hazard, uint32_t lanes, std::string message,
                         std::string hint, uint64_t address, std::string symbol) {
  FindingSite site{pc, cta.linear, cta.id, warp, lanes};
  launch_.sink->add(kind, hazard, site, std::move(message), std::move(hint), address,
                    std::move(symbol));
}

void Executor::report(Warp& w, const char* kind, plan::HazardClass hazard, uint32_t lanes,
                      std::string message, std::string hint, uint64_t address, std::string symbol) {
  report_at(*w.cta, static_cast<int>(w.index), w.pc - 1, kind, hazard, lanes, std::move(message),
            std::move(hint), address, std::move(symbol));
}

void Executor::fault(Warp& w, const char* kind, uint32_t lanes, std::string message,
                     std::string hint, uint64_t address, std::string symbol) {
  std::string text = message;
  report(w, kind, plan::HazardClass::fatal, lanes, std::move(message), std::move(hint), address,
         std::move(symbol));
  launch_.halt(plan::RunStatus::fault, w.cta->cluster->index, std::move(text));
  w.yield = true;
}

// ------------------------------------------------------------------------------------- making
// clusters

std::unique_ptr<Cluster> Executor::make_cluster(uint64_t index) {
  const plan::Dim3& grid = launch_.grid;
  const plan::Dim3& shape = launch_.cluster;
  uint32_t count = static_cast<uint32_t>(shape.count());
  std::unique_ptr<Cluster> c;
  if (pool_.empty()) {
    c = std::make_unique<Cluster>();
  } else {
    c = std::move(pool_.back());
    pool_.pop_back();
  }
  c->index = index;
  c->loads.clear();
  c->random.seed(schedule_seed_ * 1'000'003 + index);  // the same on any number of threads
  c->barrier_phase = 0, c->barrier_arrived = 0, c->progress = 0;
  c->inits = 0;
  c->barrier_inits = {}, c->barrier_last_inits = {};
  c->ctas.resize(count);
  uint64_t nx = grid.x / shape.x, ny = grid.y / shape.y;
  uint64_t cx = index % nx, cy = index / nx % ny, cz = index / nx / ny;
  uint32_t threads = static_cast<uint32_t>(launch_.block.count());
  c->live_threads = threads * count;
  uint32_t shared =
      kReservedShared + (launch_.dynamic_shared
                             ? launch_.kernel->dynamic_shared_offset + launch_.dynamic_shared
                             : launch_.kernel->static_shared);
  for (uint32_t r = 0; r < count; r++) {
    if (!c->ctas[r]) c->ctas[r] = std::make_unique<Cta>();
    Cta& cta = *c->ctas[r];
    cta.cluster = c.get();
    cta.rank = r;
    cta.id = {static_cast<uint32_t>(cx * shape.x + r % shape.x),
              static_cast<uint32_t>(cy * shape.y + r / shape.x % shape.y),
              static_cast<uint32_t>(cz * shape.z + r / shape.x / shape.y)};
    cta.linear = cta.id[0] + uint64_t{grid.x} * (cta.id[1] + uint64_t{grid.y} * cta.id[2]);
    cta.shared_bytes = shared;
    uint32_t padded = (shared + 1023) / 1024 * 1024 + 1024;
    // Shared memory of a fresh CTA holds whatever was there: a NaN pattern makes its use visible.
    cta.shared.assign(padded, 0xff);
    cta.shadow.assign(padded, 0);
    cta.unclean.assign(padded / 1024, 1024);
    if (tracks_proxies_) {
      cta.generic_writes.assign(padded / 16, 0);
      cta.generic_kib.assign(padded / 1024, 0);
      cta.arrivals.assign(padded / 16, 0);
      cta.arrival_kib.assign(padded / 1024, 0);
    }
    cta.sequence = 1;
    cta.live_threads = threads;
    cta.barriers.fill({});
    cta.mbarriers.clear();
    cta.barrier_live.assign(1, false);
    cta.store_lo = cta.wgmma_lo = ~0u, cta.store_hi = cta.wgmma_hi = 0;
    cta.cluster_released.clear();
    cta.exited = false;
    uint32_t warps = (threads + 31) / 32;
    cta.live_warps = warps;
    constexpr uint32_t kRegisterFile = 65536;
    const uint32_t share = std::min(256u, kRegisterFile / (warps * 32)) / 8 * 8;
    cta.free_registers = 0;
    cta.warpgroups.assign((warps + 3) / 4, {});
    cta.warps.resize(warps);
    for (uint32_t i = 0; i < warps; i++) {
      if (!cta.warps[i]) cta.warps[i] = std::make_unique<Warp>();
      init_warp(*cta.warps[i], cta, i);
      cta.warps[i]->max_registers = share;
    }
  }
  if (races()) races()->start(*c);
  return c;
}

void Executor::init_warp(Warp& w, Cta& cta, uint32_t index) {
  const FunctionCode& entry = launch_.kernel->functions[0];
  w.consts = constants_;
  w.pc = entry.entry_pc;
  uint32_t threads = static_cast<uint32_t>(launch_.block.count());
  uint32_t lanes = std::min(32u, threads - index * 32);
  w.live = w.active = lanes == 32 ? ~0u : (1u << lanes) - 1;
  w.switch_pc = ~0u;
  w.yield = w.blocked = false;
  w.wait = {};
  w.index = index;
  w.spins = 0;
  w.cta = &cta;
  w.exec = this;
  w.others.clear();
  w.frames.assign(1, {});
  w.local_bytes = entry.local_bytes;
  w.local.assign(size_t{32} * w.local_bytes, 0xff);
  if (w.register_capacity < entry.register_bytes) {
    std::free(w.register_file);
    w.register_file = aligned_bytes(entry.register_bytes);
    w.register_capacity = entry.register_bytes;
  }
  std::memset(w.register_file, 0, entry.register_bytes);
  w.predicate_file.assign(entry.predicates, 0);
  w.predicate_file[0] = ~0u;
  w.cluster_phase = 0;
  w.stores.clear();
  w.store_groups.fill(0);
  w.cp_async.clear();
  w.cp_groups = 0;
  w.fence_seq = w.sync_seq = w.sync_seq_at_fence = 0;
  w.matrix_dirty = true;
  w.wgmma_issued = 0;
  w.wgmma_groups.clear();
  w.instructions = 0;
  w.barrier_ticket = 0;
  w.observed.clear();
  w.known_inits = {};
  w.maps_acquired.clear();
  w.clock = 0;
  w.multiplies = false, w.copies = Beside::unknown;
  w.rotate = w.pause = w.converge_done = false;
  set_frame(w, 0);
}

Warp::~Warp() { std::free(register_file); }

void Executor::set_frame(Warp& w, uint32_t frame) {
  w.frame = frame;
  w.regs = w.register_file + w.frames[frame].register_base;
  w.preds = w.predicate_file.data() + w.frames[frame].predicate_base;
}

// --------------------------------------------------------------------------------------------
// fragments

bool Executor::satisfied(const Cta& cta, const Wait& wait) const {
  switch (wait.kind) {
    case Wait::Kind::none:
      return true;
    case Wait::Kind::mbarrier: {
      const Cta& owner = *cta.cluster->ctas[wait.cta_rank];
      auto it = owner.mbarriers.find(wait.address);
      if (it == owner.mbarriers.end()) return true;  // invalidated meanwhile: the retry reports it
      return wait.parity_wait ? it->second.test_parity(static_cast<uint32_t>(wait.value))
                              : it->second.test_token(wait.value);
    }
    case Wait::Kind::named_barrier:
      return cta.barriers[wait.address].generation != wait.value;
    case Wait::Kind::cluster_barrier:
      return cta.cluster->barrier_phase != wait.value;
    case Wait::Kind::registers:
      return cta.free_registers >= wait.value;
    case Wait::Kind::wgmma_partners: {
      const Warpgroup& g = cta.warpgroups[wait.address];
      if (wait.value < g.first) return true;
      size_t i = wait.value - g.first;
      return i < g.ops.size() && g.ops[i].issued == 0xf;
    }
    case Wait::Kind::converge:
      return false;  // needs the warp; see below
  }
  return false;
}

bool Executor::satisfied(const Warp& w, const Fragment& f) const {
  if (f.wait.kind == Wait::Kind::converge) {
    uint32_t wanted = static_cast<uint32_t>(f.wait.value) & w.live;
    return (f.mask & wanted) == wanted;
  }
  return satisfied(*w.cta, f.wait);
}

// Makes the runnable fragment with the lowest pc the current one (w.active == 0: there is no
// current one).
bool Executor::pick_fragment(Warp& w) {
  if (w.active) w.others.push_back({w.pc, w.active, w.frame, w.wait});
  w.active = 0;
  w.wait = {};
  w.switch_pc = ~0u;
  auto& f = w.others;
  for (Fragment& x : f)
    if (x.wait.kind != Wait::Kind::none && x.wait.kind != Wait::Kind::converge &&
        satisfied(*w.cta, x.wait)) {
      woke(w, x.wait);
      x.wait = {};
    }
  // Fragments at the same pc and frame in the same state are one.
  for (size_t i = 0; i < f.size(); i++)
    for (size_t j = i + 1; j < f.size();) {
      bool same = f[i].pc == f[j].pc && f[i].frame == f[j].frame &&
                  f[i].wait.kind == f[j].wait.kind &&
                  (f[i].wait.kind == Wait::Kind::none || f[i].wait.kind == Wait::Kind::converge);
      if (!same) {
        j++;
        continue;
      }
      f[i].mask |= f[j].mask;
      f.erase(f.begin() + static_cast<long>(j));
    }
  size_t best = f.size();
  uint32_t second = ~0u;
  for (size_t i = 0; i < f.size(); i++) {
    if (!satisfied(w, f[i])) continue;
    if (best == f.size() || f[i].pc < f[best].pc) {
      if (best < f.size()) second = std::min(second, f[best].pc);
      best = i;
    } else {
      second = std::min(second, f[i].pc);
    }
  }
  if (best == f.size()) return false;
  Fragment chosen = f[best];
  f.erase(f.begin() + static_cast<long>(best));
  w.pc = chosen.pc;
  w.active = chosen.mask;
  w.converge_done = chosen.wait.kind == Wait::Kind::converge;
  set_frame(w, chosen.frame);
  w.switch_pc = second;
  return true;
}

// A wait is over: the warp knows what those who ended it knew.
void Executor::woke(Warp& w, const Wait& wait) {
  if (wait.kind == Wait::Kind::named_barrier) {
    join(w.observed, w.cta->barriers[wait.address].last_released);
    w.known_inits.join(w.cta->barriers[wait.address].last_inits);
  }
  if (wait.kind == Wait::Kind::cluster_barrier) {
    join(w.observed, w.cta->cluster_released);
    w.known_inits.join(w.cta->cluster->barrier_last_inits);
  }
  if (RaceChecker* races = w.exec->races()) races->woke(w, wait);
  synchronised(w);
}

void Executor::rotate(Warp& w) {
  w.spins = 0;
  w.rotate = true;
  w.yield = true;
}

void Executor::block(Warp& w, const Wait& wait, bool retry) {
  w.wait = wait;
  w.yield = true;
  if (!retry) return;
  w.pc--;
  w.blocked = true;
}

namespace {

// Lanes that exit while others of their warp wait at a barrier count as arrived from now on: the
// lowest live lane answers for all that are gone.
void count_exited(Warp& w, uint32_t live_before) {
  const auto gone = [](uint32_t live) { return 32 - static_cast<uint32_t>(std::popcount(live)); };
  for (const Fragment& f : w.others) {
    if (f.wait.kind != Wait::Kind::named_barrier || !(f.mask & w.live & (~w.live + 1))) continue;
    NamedBarrier& b = w.cta->barriers[f.wait.address];
    if (b.generation != f.wait.value) continue;
    const bool answered = f.mask & live_before & (~live_before + 1);
    b.arrived += gone(w.live) - (answered ? gone(live_before) : 0);
    if (b.arrived >= (b.counts_all ? w.cta->live_warps * 32 : b.expected)) b.complete();
  }
}

}  // namespace

void Executor::exit_lanes(Warp& w, uint32_t lanes) {
  const uint32_t live_before = w.live;
  w.live &= ~lanes;
  w.active &= ~lanes;
  Cta& c = *w.cta;
  uint32_t n = static_cast<uint32_t>(std::popcount(lanes));
  c.live_threads -= n;
  c.cluster->live_threads -= n;
  c.cluster->progress++;
  if (!w.active) w.yield = true;
  if (races()) races()->exit(w);
  if (w.live) return count_exited(w, live_before);
  finish_stores(w);
  while (!w.cp_async.empty()) {
    perform_cp_async(w, w.cp_async.front());
    w.cp_async.pop_front();
  }
  if (w.wgmma_issued) perform_wgmmas(w, w.wgmma_issued, true);
  c.live_warps--;
  // Barriers that wait for all threads, and the cluster barrier, no longer count this warp.
  for (NamedBarrier& b : c.barriers)
    if (b.arrived && b.counts_all && b.arrived >= c.live_warps * 32) b.complete();
  Cluster& cl = *c.cluster;
  if (cl.barrier_arrived && cl.barrier_arrived >= cl.live_threads) cl.complete_barrier();
  if (c.live_warps == 0) c.exited = true;
}

// True if the instruction may execute now; otherwise the fragment has been parked.
bool Executor::converged(Warp& w, const MicroOp& op, uint32_t pc) {
  bool forced = std::exchange(w.converge_done, false);  // see force_convergence
  if (w.others.empty() || forced) return true;
  uint32_t wanted = w.live;
  if (op.flags & kMemberMask) {
    const uint32_t* members = source<uint32_t>(w, launch_.kernel->info[pc].member_mask);
    wanted = members[std::countr_zero(w.active)] & w.live;
  }
  if ((w.active & wanted) == wanted) return true;
  w.wait = {Wait::Kind::converge, 0, 0, wanted, false};
  w.yield = true;
  return false;
}

// -------------------------------------------------------------------------------------------
// running

bool Executor::run_warp(Warp& w, int budget) {
  if (!w.active && !pick_fragment(w)) return false;
  const MicroOp* code = launch_.kernel->code.data();
  SiteCount* counts = counts_.data();
  int start = budget;
  while (budget > 0) {
    if (w.pc >= w.switch_pc) [[unlikely]] {
      if (!pick_fragment(w)) break;
    }
    const uint32_t pc = w.pc;
    const MicroOp& op = code[pc];
    if (op.flags & (kAligned | kMemberMask | kTouchesMatrix)) [[unlikely]] {
      if ((op.flags & (kAligned | kMemberMask)) && !converged(w, op, pc)) {
        w.yield = false;
        if (!pick_fragment(w)) break;
        continue;
      }
      if (op.flags & kTouchesMatrix) matrix_access(w, op, pc);
    }
    uint32_t guard = w.preds[op.guard];
    uint32_t mask = w.active & (op.guard_negated ? ~guard : guard);
    w.pc = pc + 1;
    budget--;
    if (!mask) continue;
    SiteCount& count = counts[pc];
    count.warps++;
    count.threads += static_cast<uint32_t>(std::popcount(mask));
    op.handler(w, op, mask);
    if (w.yield) [[unlikely]] {
      w.yield = false;
      if (w.blocked) {
        w.blocked = false;
        count.warps--;
        count.threads -= static_cast<uint32_t>(std::popcount(mask));
        if (costs_) costs_->blocked(pc);
      }
      if (launch_.stop) break;
      if (w.pause) {
        w.pause = false;
        break;
      }
      if (w.rotate) {
        // The others get a stint; the spinning fragment waits its turn behind them.
        w.rotate = false;
        Fragment spinning{w.pc, w.active, w.frame, {}};
        w.active = 0;
        bool other = pick_fragment(w);
        w.others.push_back(spinning);
        if (!other) {
          if (!pick_fragment(w)) break;
        }
        w.switch_pc = ~0u;
        budget = std::min(budget, 512);
        continue;
      }
      if (!pick_fragment(w)) break;
    }
  }
  // Put the fragment back so that the next turn looks at all of them.
  if (w.active && w.wait.kind == Wait::Kind::none && !w.others.empty()) {
    w.others.push_back({w.pc, w.active, w.frame, {}});
    w.active = 0;
  }
  auto why = static_cast<plan::RunStatus>(launch_.status.load());
  if (launch_.stop && !budget_reported_ &&
      (why == plan::RunStatus::wall_budget || why == plan::RunStatus::step_budget)) {
    budget_reported_ = true;
    uint32_t pc = w.active ? w.pc : w.others.empty() ? 0 : w.others.back().pc;
    report_at(*w.cta, static_cast<int>(w.index), pc, "still-running", plan::HazardClass::advice,
              w.active, "the kernel had not ended when its budget was used up; this warp was here",
              "a loop that never ends?");
  }
  uint64_t executed = static_cast<uint64_t>(start - budget);
  w.instructions += executed;
  account(executed);
  return executed > 0;
}

void Executor::account(uint64_t instructions) {
  since_account_ += instructions;
  if (since_account_ < 1'000'000) return;
  uint64_t total = launch_.instructions += since_account_;
  since_account_ = 0;
  uint64_t limit = launch_.step_limit;
  if (limit && total > limit)
    launch_.halt(plan::RunStatus::step_budget, ~uint64_t{0} - 1,
                 fmt::format("more than {} warp instructions were executed", limit));
}

// An .aligned instruction that only a part of the warp can reach: the hardware's behaviour is
// undefined; it is executed by those who came and reported.
bool Executor::force_convergence(Cluster& c) {
  for (auto& cta : c.ctas)
    for (auto& wp : cta->warps) {
      Warp& w = *wp;
      for (Fragment& f : w.others) {
        if (f.wait.kind != Wait::Kind::converge) continue;
        uint16_t flags = launch_.kernel->code[f.pc].flags;
        if (!(flags & kAligned)) continue;
        report_at(
            *cta, static_cast<int>(w.index), f.pc, "aligned-divergence", plan::HazardClass::latent,
            f.mask,
            fmt::format(
                "an .aligned instruction is executed by lanes {:08x} while lanes {:08x} of the "
                "warp are elsewhere",
                f.mask, w.live & ~f.mask),
            "all threads of the warp must execute this instruction together; reconverge with "
            "__syncwarp() before it");
        f.wait.value = f.mask;
        return true;
      }
    }
  return false;
}

Executor::Outcome Executor::run_cluster(Cluster& c) {
  uint64_t progress = c.progress, spinning = 0;
  const uint64_t patience = launch_.grid_workspace ? kSpinningCooperative : kSpinningCluster;
  std::vector<Warp*> order;
  while (!launch_.stop) {
    bool ran = false;
    order.clear();
    for (auto& cta : c.ctas)
      for (auto& w : cta->warps)
        if (w->live) order.push_back(w.get());
    if (order.empty()) return Outcome::done;
    if (random_schedule_) std::shuffle(order.begin(), order.end(), c.random);
    for (Warp* w : order) {
      uint64_t before = w->instructions;
      ran |= run_warp(*w, random_schedule_ ? 1 + static_cast<int>(c.random() % kSlice) : kSlice);
      spinning += w->instructions - before;
      if (launch_.stop) return Outcome::done;
    }
    if (c.progress != progress) progress = c.progress, spinning = 0;
    if (ran) {
      if (spinning < patience) continue;
      // Polling (test_wait loops, volatile flags) is running too: complete what is in flight, then
      // let other CTAs have a turn.
      spinning = 0;
      if (!c.loads.empty()) {
        perform_load(c, 0);
        continue;
      }
      return Outcome::rotate;
    }
    if (!c.loads.empty()) {
      perform_load(c, 0);
      continue;
    }
    if (force_wgmma(c) || force_convergence(c)) continue;
    return Outcome::deadlock;
  }
  return Outcome::done;
}

// Of `limit` clusters out of `total`, the one that runs as number `taken`. Kernels whose CTAs wait
// for others get the first ones, as they would start; else they are spread over the grid, by a
// stride that shares no period with it.
uint64_t Executor::grid_index(uint64_t taken, uint64_t limit, uint64_t total) const {
  if (limit == total || launch_.kernel->communicates) return taken;
  const uint64_t stride = total / limit;
  return taken * stride + (taken * 0x9E3779B97F4A7C15u >> 32) % stride;
}

void Executor::run() {
  const uint64_t clusters = launch_.grid.count() / std::max<uint64_t>(launch_.cluster.count(), 1);
  const uint64_t total =
      launch_.cluster_limit ? std::min(launch_.cluster_limit, clusters) : clusters;
  const uint64_t enough = launch_.options->costs.instructions;
  std::vector<std::unique_ptr<Cluster>> live;
  size_t turn = 0;
  bool want_more = true;
  while (!launch_.stop) {
    if (want_more && live.size() < launch_.resident_clusters) {
      uint64_t next = launch_.next_cluster.fetch_add(1);
      if (next < total) {
        live.push_back(make_cluster(grid_index(next, total, clusters)));
        turn = live.size() - 1;
      }
    }
    if (live.empty()) break;
    want_more = false;
    turn %= live.size();
    Outcome o = run_cluster(*live[turn]);
    if (o == Outcome::done) {
      if (!launch_.stop) report_unfinished_loads(*live[turn]);
      launch_.done_clusters++;
      if (costs_) costs_->end(*live[turn]);
      pool_.push_back(std::move(live[turn]));
      live.erase(live.begin() + static_cast<long>(turn));
      want_more = live.empty() && !(enough && launch_.instructions + since_account_ >= enough);
    } else if (o == Outcome::deadlock) {
      report_deadlock(*live[turn]);
    } else {
      want_more = true;
      turn++;
    }
  }
  launch_.instructions += since_account_;
  since_account_ = 0;
}

}  // namespace ptxbench::emu
