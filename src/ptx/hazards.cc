// Two kinds of analysis. Most hazards are one bit of "something is outstanding", set and cleared by
// instructions and carried forward through the graph by union (StateFlow): a bit that stands where
// it must not means that some path leads there without the instruction that clears it. Others ask
// whether anything that could help is reachable at all, which makes them certain (Reach). Agreement
// of threads comes from Uniformity.
#include "ptx/hazards.h"

#include <algorithm>
#include <functional>
#include <map>

#include "ptx/control_flow.h"
#include "ptx/def_use.h"
#include "ptx/parser.h"
#include "ptx/source_map.h"
#include "ptx/uniformity.h"

namespace ptxbench::ptx {
namespace {

bool is_wgmma(Op op) { return op == Op::wgmma_mma_async || op == Op::wgmma_mma_async_sp; }
bool is_bulk_copy(Op op) { return op == Op::cp_async_bulk || op == Op::cp_async_bulk_tensor; }
bool is_bulk_reduce(Op op) {
  return op == Op::cp_reduce_async_bulk || op == Op::cp_reduce_async_bulk_tensor;
}
bool is_bulk_store(const Instruction& i) {
  return (is_bulk_copy(i.op) || is_bulk_reduce(i.op)) && i.mods.has(Mod::bulk_group);
}
bool is_bulk_load(const Instruction& i) {
  return is_bulk_copy(i.op) && i.mods.has(Mod::mbarrier_complete_tx_bytes);
}
bool is_mbarrier_wait(Op op) { return op == Op::mbarrier_try_wait || op == Op::mbarrier_test_wait; }
bool is_tcgen05_mma(Op op) {
  return op == Op::tcgen05_mma || op == Op::tcgen05_mma_sp || op == Op::tcgen05_mma_ws ||
         op == Op::tcgen05_mma_ws_sp;
}
bool is_barrier(Op op) {
  return op == Op::bar || op == Op::barrier || op == Op::bar_warp_sync ||
         op == Op::barrier_cluster_wait;
}
bool is_shared(Space space) { return space == Space::shared || space == Space::shared_cta; }
bool writes_shared(const Instruction& i) {
  return i.op == Op::stmatrix ||
         ((i.op == Op::st || i.op == Op::red || i.op == Op::atom) && is_shared(i.mods.space()));
}
bool is_async_fence(const Instruction& i) {
  return i.op == Op::fence && i.mods.has(Mod::proxy) && i.mods.has(Mod::async);
}

const Operand* integer_operand(const Instruction& i, size_t n) {
  return n < i.operands.size() && i.operands[n].kind == Operand::Kind::integer ? &i.operands[n]
                                                                               : nullptr;
}

// Calls of functions with a body: the callee may do what the caller seems to lack.
bool calls_code(const Instruction& i, const Module& module) {
  if (i.op != Op::call || i.operands.size() < 2) return false;
  const Operand& callee = i.operands[1];
  return callee.kind != Operand::Kind::function || callee.index >= module.functions.size() ||
         !module.functions[callee.index].is_declaration;
}

class Finder {
 public:
  Finder(const Module& module, const Function& function)
      : module_(module), flow_(function, &module) {
    for (uint32_t b : flow_.order())
      for (uint32_t n = flow_.blocks()[b].first; n <= flow_.blocks()[b].last; ++n) {
        live_.push_back(n);
        has_calls_ |= calls_code(at(n), module);
      }
    std::sort(live_.begin(), live_.end());
  }

  std::vector<StaticHazard> run() {
    if (flow_.blocks().empty()) return {};
    follow_states();
    follow_accumulators();
    if (!has_calls_) search_what_follows();
    check_agreement();
    check_numbers();
    std::vector<StaticHazard> out;
    for (auto& [kind, hazard] : found_) out.push_back(std::move(hazard));
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.line < b.line; });
    return out;
  }

 private:
  const Instruction& at(uint32_t n) const { return *flow_.instructions()[n]; }

  void report(const char* kind, uint32_t n) {
    StaticHazard& h = found_[kind];
    if (!h.kind.empty()) {
      ++h.sites;
      return;
    }
    h.kind = kind;
    const auto known = std::find_if(hazard_kinds().begin(), hazard_kinds().end(),
                                    [&](const HazardKind& k) { return h.kind == k.kind; });
    h.certain = known->certain;
    h.message = known->message;
    h.function = flow_.function().name;
    h.line = at(n).line;
    h.ptx = print(at(n), flow_.function(), module_);
    if (h.ptx.size() > 100) h.ptx.replace(97, std::string::npos, "...");
    h.source = to_string(source_chain(module_, at(n)));
  }

  // ------------------------------------------------------------------ outstanding work, by path
  enum State : uint32_t {
    kUnfenced = 1,       // no wgmma.fence since entry
    kUncommitted = 2,    // wgmma since the last commit
    kUnwaited = 4,       // wgmma since the last wait for all
    kDirty = 8,          // ordinary writes to shared memory since the last fence.proxy.async
    kInitUnfenced = 16,  // mbarrier.init that the async proxy may not see yet
    kInitUnsynced = 32,  // mbarrier.init that other threads may not see yet
  };

  uint32_t after(uint32_t state, const Instruction& i) const {
    if (calls_code(i, module_)) return 0;
    if (i.op == Op::wgmma_fence) state &= ~kUnfenced;
    if (is_wgmma(i.op)) state |= kUncommitted | kUnwaited;
    if (i.op == Op::wgmma_commit_group) state &= ~kUncommitted;
    if (i.op == Op::wgmma_wait_group)
      if (const Operand* left = integer_operand(i, 0); left && left->value == 0)
        state &= ~kUnwaited;
    if (writes_shared(i)) state |= kDirty;
    if (is_async_fence(i)) state &= ~(kDirty | kInitUnfenced);
    if (i.op == Op::mbarrier_init) state |= kInitUnfenced | kInitUnsynced;
    if (i.op == Op::fence && i.mods.has(Mod::mbarrier_init)) state &= ~kInitUnfenced;
    if (is_barrier(i.op)) state &= ~kInitUnsynced;
    return state;
  }

  void judge(uint32_t state, uint32_t n) {
    const Instruction& i = at(n);
    if (is_wgmma(i.op) && (state & kUnfenced)) report("wgmma-without-fence", n);
    if (i.op == Op::wgmma_wait_group && (state & kUncommitted)) report("wgmma-not-committed", n);
    if (is_wgmma(i.op) && (state & kDirty)) report("shared-write-not-fenced", n);
    if (is_bulk_store(i) && is_shared(source_space(i)) && (state & kDirty))
      report("shared-write-not-fenced", n);
    if (is_bulk_load(i) && (state & kInitUnfenced)) report("mbarrier-init-not-fenced", n);
    if (is_mbarrier_wait(i.op) && (state & kInitUnsynced))
      report("mbarrier-init-not-synchronised", n);
    const bool leaves = i.op == Op::ret || i.op == Op::exit;
    if (flow_.function().is_entry && leaves && (state & kUnwaited)) report("wgmma-not-waited", n);
  }

  static Space source_space(const Instruction& i) {
    return i.mods->spaces.size() > 1 ? i.mods->spaces[1] : Space::generic;
  }

  void follow_states() {
    std::vector<uint32_t> in(flow_.blocks().size(), 0);
    if (flow_.function().is_entry) in[0] = kUnfenced;
    auto through = [&](uint32_t b, const std::function<void(uint32_t, uint32_t)>& each) {
      uint32_t state = in[b];
      for (uint32_t n = flow_.blocks()[b].first; n <= flow_.blocks()[b].last; ++n) {
        if (each) each(state, n);
        state = after(state, at(n));
      }
      return state;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t b : flow_.order()) {
        const uint32_t out = through(b, {});
        for (uint32_t s : flow_.blocks()[b].successors) {
          changed |= (out & ~in[s]) != 0;
          in[s] |= out;
        }
      }
    }
    for (uint32_t b : flow_.order())
      through(b, [&](uint32_t state, uint32_t n) { judge(state, n); });
  }

  // ---------------------------------------------------------------------- accumulators in flight
  // Registers that a wgmma writes, until any wgmma.wait_group; copies of them are in flight too,
  // because compilers copy accumulators between wgmmas and the assembler removes the copies.
  using Registers = std::vector<bool>;

  static void add_accumulators(const Instruction& i, Registers& pending) {
    if (i.operands.empty()) return;
    for (const Operand& e : i.operands[0].elements)
      if (e.kind == Operand::Kind::reg) pending[e.index] = true;
  }

  // Returns whether `i` reads what is in flight.
  bool pass(const Instruction& i, Registers& pending) const {
    if (i.op == Op::wgmma_wait_group || calls_code(i, module_)) {
      pending.assign(pending.size(), false);
      return false;
    }
    if (is_wgmma(i.op)) {
      add_accumulators(i, pending);
      return false;
    }
    bool reads = false;
    for_each_register(i, [&](uint32_t r, bool write) { reads |= !write && pending[r]; });
    const bool copy = i.op == Op::mov;
    for_each_register(i, [&](uint32_t r, bool write) {
      if (write && i.guard == kNone) pending[r] = copy && reads;
    });
    return reads && !copy;
  }

  void follow_accumulators() {
    if (std::none_of(live_.begin(), live_.end(), [&](uint32_t n) { return is_wgmma(at(n).op); }))
      return;
    const size_t registers = flow_.function().registers.size();
    std::vector<Registers> in(flow_.blocks().size(), Registers(registers));
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t b : flow_.order()) {
        Registers state = in[b];
        for (uint32_t n = flow_.blocks()[b].first; n <= flow_.blocks()[b].last; ++n)
          pass(at(n), state);
        for (uint32_t s : flow_.blocks()[b].successors)
          for (size_t r = 0; r < registers; ++r)
            if (state[r] && !in[s][r]) in[s][r] = true, changed = true;
      }
    }
    for (uint32_t b : flow_.order()) {
      Registers state = in[b];
      for (uint32_t n = flow_.blocks()[b].first; n <= flow_.blocks()[b].last; ++n)
        if (pass(at(n), state)) report("wgmma-read-early", n);
    }
  }

  // ----------------------------------------------------------------- what can follow, what exists
  bool exists(const std::function<bool(const Instruction&)>& helps) const {
    return std::any_of(live_.begin(), live_.end(), [&](uint32_t n) { return helps(at(n)); });
  }

  bool can_follow(uint32_t n, const std::function<bool(const Instruction&)>& helps) const {
    const uint32_t start = flow_.block_of(n);
    for (uint32_t later = n + 1; later <= flow_.blocks()[start].last; ++later)
      if (helps(at(later))) return true;
    std::vector<bool> seen(flow_.blocks().size());
    std::vector<uint32_t> work = flow_.blocks()[start].successors;
    while (!work.empty()) {
      const uint32_t b = work.back();
      work.pop_back();
      if (seen[b]) continue;
      seen[b] = true;
      for (uint32_t later = flow_.blocks()[b].first; later <= flow_.blocks()[b].last; ++later)
        if (helps(at(later))) return true;
      const auto& next = flow_.blocks()[b].successors;
      work.insert(work.end(), next.begin(), next.end());
    }
    return false;
  }

  void needs(const char* kind, uint32_t n, const std::function<bool(const Instruction&)>& helps) {
    if (!can_follow(n, helps)) report(kind, n);
  }

  static auto is(Op op) {
    return [op](const Instruction& i) { return i.op == op; };
  }

  void search_what_follows() {
    const bool waits = exists([](const Instruction& i) { return is_mbarrier_wait(i.op); });
    const bool deallocates = exists(is(Op::tcgen05_dealloc));
    const bool commits = exists(is(Op::tcgen05_commit));
    // A device function's caller may do the rest.
    if (!flow_.function().is_entry) return;
    for (uint32_t n : live_) {
      const Instruction& i = at(n);
      if (is_bulk_store(i)) {
        needs("bulk-store-not-committed", n, is(Op::cp_async_bulk_commit_group));
        needs("bulk-store-not-waited", n, is(Op::cp_async_bulk_wait_group));
      }
      if (i.op == Op::cp_async)
        needs("cp-async-not-waited", n, [](const Instruction& later) {
          return later.op == Op::cp_async_wait_all || later.op == Op::cp_async_wait_group ||
                 later.op == Op::cp_async_mbarrier_arrive;
        });
      if (is_bulk_load(i) && !waits) report("bulk-load-not-waited", n);
      if (i.op == Op::tcgen05_alloc && !deallocates) report("tcgen05-not-deallocated", n);
      if (is_tcgen05_mma(i.op) && !commits) report("tcgen05-mma-not-committed", n);
      if (i.op == Op::tcgen05_ld)
        needs("tcgen05-ld-not-waited", n, [](const Instruction& later) {
          return later.op == Op::tcgen05_wait && later.mods.has(Mod::ld_);
        });
      if (i.op == Op::tcgen05_st)
        needs("tcgen05-st-not-waited", n, [](const Instruction& later) {
          return later.op == Op::tcgen05_wait && later.mods.has(Mod::st_);
        });
    }
  }

  // ------------------------------------------------------------------------ agreement of threads
  void check_agreement() {
    auto level_needed = [](const Instruction& i) -> uint8_t {
      const bool warpgroup = is_wgmma(i.op) || i.op == Op::wgmma_fence ||
                             i.op == Op::wgmma_commit_group || i.op == Op::wgmma_wait_group ||
                             i.op == Op::setmaxnreg;
      if (warpgroup) return Uniformity::kWarpgroup;
      return i.mods.has(Mod::aligned) || i.op == Op::bar ? Uniformity::kWarp : 0;
    };
    if (std::none_of(live_.begin(), live_.end(),
                     [&](uint32_t n) { return level_needed(at(n)) > 0; }))
      return;
    const Uniformity uniformity(flow_);
    for (uint32_t n : live_) {
      const uint8_t needed = level_needed(at(n));
      if (uniformity.of_instruction(n) >= needed) continue;
      report(at(n).op == Op::setmaxnreg ? "setmaxnreg-diverged" : "aligned-diverged", n);
    }
  }

  // ------------------------------------------------------------------------------------- numbers
  void check_numbers() {
    std::map<uint64_t, uint64_t> counts;  // barrier id -> threads; 0 = the whole CTA
    for (uint32_t n : live_) {
      const Instruction& i = at(n);
      if (i.op == Op::setmaxnreg)
        if (const Operand* count = integer_operand(i, 0))
          if (count->value % 8 != 0 || count->value < 24 || count->value > 256)
            report("setmaxnreg-count", n);
      if (i.op != Op::bar && i.op != Op::barrier) continue;
      const size_t first = i.mods.has(Mod::red) ? 1 : 0;
      const Operand* id = integer_operand(i, first);
      if (!id) continue;
      if (id->value > 15) report("barrier-id", n);
      const bool has_count = i.operands.size() > first + (i.mods.has(Mod::red) ? 2u : 1u);
      const Operand* count = has_count ? integer_operand(i, first + 1) : nullptr;
      if (has_count && !count) continue;
      if (count && count->value % 32 != 0) report("barrier-count", n);
      auto [it, fresh] = counts.try_emplace(id->value, count ? count->value : 0);
      if (!fresh && it->second != (count ? count->value : 0)) report("barrier-counts-differ", n);
    }
  }

  const Module& module_;
  ControlFlow flow_;
  std::vector<uint32_t> live_;  // instructions that can run
  bool has_calls_ = false;
  std::map<std::string, StaticHazard> found_;
};

}  // namespace

const std::vector<HazardKind>& hazard_kinds() {
  static const std::vector<HazardKind> kinds = {
      {"wgmma-without-fence", false, "a path leads to this wgmma without any wgmma.fence"},
      {"wgmma-not-committed", false,
       "a path leads to this wait with wgmmas that no wgmma.commit_group closed: it does not wait "
       "for them"},
      {"wgmma-not-waited", false,
       "a path leaves the kernel with wgmmas that no wgmma.wait_group 0 has waited for"},
      {"wgmma-read-early", false,
       "an accumulator is read on a path without any wgmma.wait_group since its wgmma"},
      {"shared-write-not-fenced", false,
       "ordinary writes to shared memory reach this asynchronous read on a path without "
       "fence.proxy.async: it may read old bytes"},
      {"mbarrier-init-not-fenced", false,
       "a path leads from mbarrier.init to this copy without fence.mbarrier_init or "
       "fence.proxy.async: the copy may not see the barrier"},
      {"mbarrier-init-not-synchronised", false,
       "a path leads from mbarrier.init to this wait without a barrier: other threads may see the "
       "mbarrier before it exists"},
      {"bulk-store-not-committed", true,
       "no cp.async.bulk.commit_group can follow this store: nothing can wait for it"},
      {"bulk-store-not-waited", true,
       "no cp.async.bulk.wait_group can follow this store: shared memory may be gone before it is "
       "read"},
      {"bulk-load-not-waited", true,
       "the kernel never waits on an mbarrier: the data may not be there"},
      {"cp-async-not-waited", true,
       "no cp.async.wait_group, wait_all or mbarrier arrival can follow this copy"},
      {"tcgen05-not-deallocated", true,
       "tensor memory is allocated and never freed: the next kernel on this SM waits for ever"},
      {"tcgen05-mma-not-committed", true,
       "no tcgen05.commit in the kernel: nothing can wait for this product"},
      {"tcgen05-ld-not-waited", true,
       "no tcgen05.wait::ld can follow this load: its registers are not valid"},
      {"tcgen05-st-not-waited", true,
       "no tcgen05.wait::st can follow this store: its data may not be there"},
      {"setmaxnreg-count", true, "setmaxnreg takes multiples of 8 from 24 to 256"},
      {"setmaxnreg-diverged", false,
       "warps of a warpgroup may disagree about reaching this setmaxnreg"},
      {"aligned-diverged", false,
       "threads of a warp (of a warpgroup for wgmma) may disagree about reaching this .aligned "
       "instruction"},
      {"barrier-id", true, "barriers are numbered 0 to 15"},
      {"barrier-count", true, "a barrier's thread count is a multiple of 32"},
      {"barrier-counts-differ", false,
       "this barrier is also used with another number of threads: arrivals of one use can release "
       "the other"},
  };
  return kinds;
}

std::vector<StaticHazard> static_hazards(const Module& module) {
  std::vector<StaticHazard> out;
  for (const Function& function : module.functions) {
    if (function.is_declaration) continue;
    for (StaticHazard& hazard : Finder(module, function).run()) out.push_back(std::move(hazard));
  }
  return out;
}

}  // namespace ptxbench::ptx
