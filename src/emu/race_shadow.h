#pragma once
// Who accessed which bytes last, for the race checker: a granule for each 16 bytes, with the
// accesses that a later one may conflict with. Masks make it exact to the byte.

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emu/memory_order.h"

namespace ptxbench::emu {

constexpr uint32_t kGranuleBytes = 16;

struct TimedAccess {
  uint32_t clock = 0, cluster = 0;  // epoch of its agent
  uint16_t component = 0;
  uint16_t mask = 0;  // bytes of the granule; 0: no access
  uint32_t site = 0;  // pc, SyncScope (weak: conflicts whatever the other is) and `followed`

  static constexpr uint32_t kFollowed = 1u << 31;
  static uint32_t make_site(uint32_t pc, SyncScope scope, bool followed = false) {
    return pc | static_cast<uint32_t>(scope) << 28 | (followed ? kFollowed : 0);
  }
  uint32_t pc() const { return site & ((1u << 28) - 1); }
  SyncScope scope() const { return static_cast<SyncScope>(site >> 28 & 3); }
  // Read or written by an asynchronous operation whose early or late neighbours other checkers
  // report.
  bool followed() const { return site & kFollowed; }
  bool same_agent(const TimedAccess& o) const {
    return component == o.component && cluster == o.cluster;
  }
};

struct Granule {
  TimedAccess write, read;
  uint32_t more = 0;  // further ones: index into the AccessHistory's overflow lists, from 1
};

class AccessHistory {
 public:
  // `most`: accesses of a granule that are kept; beyond, the oldest are forgotten.
  explicit AccessHistory(size_t most) : most_(most) {}

  // Checks `now` against what is known of the granule and remembers it. ordered(before): `before`
  // happens before `now`. conflict(before, was_write): they conflict and are not ordered.
  // compatible(before): both are strong and of scopes that include each other.
  template <class Ordered, class Compatible, class Conflict>
  void access(Granule& g, const TimedAccess& now, bool write, const Ordered& ordered,
              const Compatible& compatible, const Conflict& conflict) {
    if (repeats(g, now, write)) return;
    each(g, true, [&](TimedAccess& e) {
      const uint16_t common = e.mask & now.mask;
      if (!common) return;
      const bool fine = e.same_agent(now) || ordered(e);
      if (!fine && compatible(e)) return;
      if (!fine) conflict(e, true);
      if (write) e.mask = static_cast<uint16_t>(e.mask & ~now.mask);
    });
    if (write) {
      each(g, false, [&](TimedAccess& e) {
        if (!(e.mask & now.mask)) return;
        const bool fine = e.same_agent(now) || ordered(e);
        if (!fine && compatible(e)) return;
        if (!fine) conflict(e, false);
        e.mask = static_cast<uint16_t>(e.mask & ~now.mask);
      });
      return add(g, true, now);
    }
    bool counted = false;
    each(g, false, [&](TimedAccess& e) {
      if (e.same_agent(now) && e.clock == now.clock && e.site == now.site) {
        e.mask |= now.mask;
        counted = true;
      } else if (!(e.mask & ~now.mask) && (e.same_agent(now) || ordered(e)) &&
                 e.scope() == now.scope()) {
        e.mask = 0;  // whoever is ordered behind `now` is ordered behind it
      }
    });
    if (!counted) add(g, false, now);
  }

  void clear_overflow() {
    for (size_t i = 0; i < used_; i++) overflow_[i].list[0].clear(), overflow_[i].list[1].clear();
    used_ = 0;
  }

 private:
  struct Overflow {
    std::vector<TimedAccess> list[2];  // reads, writes
    uint32_t next = 0;                 // to be forgotten
  };

  static bool covers(const TimedAccess& e, const TimedAccess& now) {
    return e.same_agent(now) && e.clock == now.clock && e.scope() == now.scope() &&
           !(now.mask & ~e.mask);
  }
  static bool repeats(const Granule& g, const TimedAccess& now, bool write) {
    return write ? covers(g.write, now) && !g.read.mask && !g.more : covers(g.read, now);
  }

  template <class F>
  void each(Granule& g, bool writes, const F& f) {
    TimedAccess& first = writes ? g.write : g.read;
    if (first.mask) f(first);
    if (!g.more) return;
    for (TimedAccess& e : overflow_[g.more - 1].list[writes])
      if (e.mask) f(e);
  }

  void add(Granule& g, bool writes, const TimedAccess& now) {
    TimedAccess& first = writes ? g.write : g.read;
    if (!first.mask) return void(first = now);
    if (!g.more) {
      if (used_ == overflow_.size()) overflow_.emplace_back();
      g.more = static_cast<uint32_t>(++used_);
    }
    Overflow& o = overflow_[g.more - 1];
    std::vector<TimedAccess>& list = o.list[writes];
    for (TimedAccess& e : list)
      if (!e.mask) return void(e = now);
    if (list.size() < most_) return list.push_back(now);
    list[o.next++ % most_] = now;
  }

  size_t most_, used_ = 0;
  std::vector<Overflow> overflow_;
};

// Granules of global memory, made where they are touched.
class GlobalGranules {
 public:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr size_t kMaxPages = size_t{1} << 17;  // half a GiB of memory followed

  // Null: more memory was touched than is followed.
  Granule* at(uint64_t address) {
    const uint64_t page = address / kPageBytes;
    if (page != last_page_ || !last_) {
      auto it = pages_.find(page);
      if (it == pages_.end()) {
        if (pages_.size() >= kMaxPages) return nullptr;
        it = pages_.emplace(page, std::make_unique<Page>()).first;
      }
      last_page_ = page, last_ = it->second.get();
    }
    return &last_->granules[address % kPageBytes / kGranuleBytes];
  }
  void forget(uint64_t address, uint64_t bytes) {
    for (uint64_t a = address / kGranuleBytes; a * kGranuleBytes < address + bytes; a++)
      if (pages_.count(a * kGranuleBytes / kPageBytes)) *at(a * kGranuleBytes) = {};
  }

 private:
  struct Page {
    Granule granules[kPageBytes / kGranuleBytes];
  };
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  uint64_t last_page_ = 0;
  Page* last_ = nullptr;
};

}  // namespace ptxbench::emu
