// What a cluster waits for when nothing in it can run.

#include <fmt/format.h>

#include <map>

#include "emu/executor.h"

namespace ptxbench::emu {
namespace {

std::string warp_list(uint64_t warps, size_t count) {
  std::string s;
  for (size_t i = 0; i < count && i < 64; i++)
    if (warps >> i & 1) s += fmt::format("{}{}", s.empty() ? "" : ",", i);
  return s.empty() ? "none" : s;
}

std::string describe_mbarrier(const Executor& e, const Cta& c, const Wait& wait,
                              std::string* guess) {
  auto it = c.mbarriers.find(wait.address);
  if (it == c.mbarriers.end()) return "an mbarrier that is gone";
  const Mbarrier& b = it->second;
  std::string s =
      fmt::format("mbarrier {} (phase parity {}): {} of {} arrivals pending",
                  e.shared_symbol(c, wait.address), b.parity(), b.pending(), b.expected());
  if (b.tx() < 0) s += fmt::format(", {} bytes of transactions missing", -b.tx());
  if (b.tx() > 0) s += fmt::format(", {} bytes more arrived than were expected", b.tx());
  if (b.pending() == 0 && b.tx() < 0)
    *guess = fmt::format(
        "expect_tx announced {} bytes more than the copies delivered: the transaction count does "
        "not "
        "match the box sizes of the copies on this barrier",
        -b.tx());
  else if (b.pending() == 0 && b.tx() > 0)
    *guess = fmt::format("the copies delivered {} bytes more than expect_tx announced", b.tx());
  else if (b.tx() > 0)
    *guess = "data arrived but nobody arrived with expect_tx: the producer's arrive is missing";
  else if (guess->empty())
    *guess =
        "an arrival on this barrier is missing: the thread that should arrive exited, waits "
        "itself, or the "
        "init count is too high";
  return s;
}

}  // namespace

void Executor::report_deadlock(Cluster& cluster) {
  std::string guess;
  // Warps that wait at the same instruction for the same thing are one line.
  struct Group {
    std::string what;
    std::map<uint32_t, uint64_t> warps;
    uint32_t pc;
    uint32_t lanes;
    const Cta* cta;
    int warp;
  };
  std::map<std::pair<uint32_t, std::string>, Group> groups;
  for (const auto& cta : cluster.ctas)
    for (const auto& wp : cta->warps) {
      const Warp& w = *wp;
      if (!w.live) continue;
      for (const Fragment& f : w.others) {
        std::string what;
        uint32_t pc = f.pc;
        switch (f.wait.kind) {
          case Wait::Kind::mbarrier:
            what = describe_mbarrier(*this, *cluster.ctas[f.wait.cta_rank], f.wait, &guess);
            break;
          case Wait::Kind::named_barrier: {
            const NamedBarrier& b = cta->barriers[f.wait.address];
            uint32_t wanted = b.counts_all ? cta->live_warps * 32 : b.expected;
            uint64_t live = 0;
            for (const auto& x : cta->warps) live |= uint64_t{x->live != 0} << (x->index & 63);
            what = fmt::format("barrier {}: {} of {} threads arrived (warps {}), absent: warps {}",
                               f.wait.address, b.arrived, wanted,
                               warp_list(b.warps, cta->warps.size()),
                               warp_list(live & ~b.warps, cta->warps.size()));
            if (guess.empty())
              guess = "warps that should take part in the barrier went another way or exited";
            pc--;
            break;
          }
          case Wait::Kind::cluster_barrier:
            what = fmt::format("cluster barrier: {} of {} threads arrived", cluster.barrier_arrived,
                               cluster.live_threads);
            pc--;
            break;
          case Wait::Kind::converge:
            what = fmt::format("lanes {:08x} of its own warp",
                               static_cast<uint32_t>(f.wait.value) & w.live & ~f.mask);
            if (guess.empty())
              guess = "the member mask names lanes that never execute this instruction";
            break;
          case Wait::Kind::registers:
            what = fmt::format("{} registers for setmaxnreg.inc; the CTA's pool has {}",
                               f.wait.value, cta->free_registers);
            guess = "the warps' setmaxnreg counts together exceed the registers of the CTA";
            break;
          case Wait::Kind::wgmma_partners:
            what = "the other warps of its warpgroup to issue the wgmma";
            break;
          case Wait::Kind::none:
            what = "nothing (runnable)";
            break;
        }
        Group& g = groups[{pc, what}];
        if (g.what.empty()) g = {what, {}, pc, f.mask, cta.get(), static_cast<int>(w.index)};
        g.warps[cta->rank] |= uint64_t{1} << (w.index & 63);
      }
    }
  std::string summary;
  // An mbarrier whose bytes do not balance says most about the cause, then any mbarrier. The first
  // is the finding; who waits for what besides is a consequence with a kind of its own.
  auto weight = [](const Group* g) {
    if (g->what.find("setmaxnreg") != std::string::npos) return 0;
    if (!g->what.starts_with("mbarrier")) return 2;
    return g->what.find(" bytes ") == std::string::npos ? 1 : 0;
  };
  std::vector<const Group*> order;
  for (auto& [key, g] : groups) order.push_back(&g);
  std::stable_sort(order.begin(), order.end(),
                   [&](const Group* a, const Group* b) { return weight(a) < weight(b); });
  for (const Group* g : order) {
    std::string who;
    for (auto& [rank, warps] : g->warps)
      who += fmt::format("{}{}warps {}", who.empty() ? "" : "; ",
                         cluster.ctas.size() > 1 ? fmt::format("CTA rank {} ", rank) : "",
                         warp_list(warps, 64));
    std::string message = fmt::format("{} wait for {}", who, g->what);
    summary += (summary.empty() ? "" : " | ") + message;
    bool cause = weight(g) == weight(order.front());
    report_at(*g->cta, g->warp, g->pc, cause ? "deadlock" : "deadlock-waiter",
              plan::HazardClass::fatal, g->lanes, message, cause ? guess : "");
  }
  launch_.halt(
      plan::RunStatus::deadlock, cluster.index,
      fmt::format("deadlock in CTA ({},{},{}): {}", cluster.ctas[0]->id[0], cluster.ctas[0]->id[1],
                  cluster.ctas[0]->id[2], guess.empty() ? summary : guess));
}

}  // namespace ptxbench::emu
