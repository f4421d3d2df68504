#include "emu/race_clock.h"

namespace ptxbench::emu {
namespace {

bool contains(const Knowledge& all, const Knowledge& part) {
  auto at = all.begin();
  for (const KnownEpoch& e : part) {
    while (at != all.end() && at->agent < e.agent) ++at;
    if (at == all.end() || at->agent != e.agent || at->clock < e.clock) return false;
  }
  return true;
}

}  // namespace

SharedKnowledge merged(const SharedKnowledge& a, const SharedKnowledge& b) {
  if (a == b || !b) return a;
  if (!a) return b;
  if (contains(*a, *b)) return a;
  if (contains(*b, *a)) return b;
  auto out = std::make_shared<Knowledge>();
  out->reserve(a->size() + b->size());
  auto x = a->begin(), y = b->begin();
  while (x != a->end() || y != b->end()) {
    if (y == b->end() || (x != a->end() && x->agent < y->agent)) {
      out->push_back(*x++);
    } else if (x == a->end() || y->agent < x->agent) {
      out->push_back(*y++);
    } else {
      out->push_back({x->agent, std::max(x->clock, y->clock)});
      ++x, ++y;
    }
  }
  return out;
}

uint32_t epoch_of(const SharedKnowledge& known, uint64_t agent) {
  if (!known) return 0;
  const auto at = std::lower_bound(known->begin(), known->end(), agent,
                                   [](const KnownEpoch& e, uint64_t a) { return e.agent < a; });
  return at != known->end() && at->agent == agent ? at->clock : 0;
}

void VectorClock::join(const VectorClock& other) {
  if (own_.size() < other.own_.size()) own_.resize(other.own_.size());
  for (size_t i = 0; i < other.own_.size(); i++) own_[i] = std::max(own_[i], other.own_[i]);
  foreign_ = merged(foreign_, other.foreign_);
}

void VectorClock::join(const SharedKnowledge& published, uint32_t cluster) {
  if (!published || published == foreign_) return;
  const uint64_t first = uint64_t{cluster} << 32;
  auto at = std::lower_bound(published->begin(), published->end(), first,
                             [](const KnownEpoch& e, uint64_t a) { return e.agent < a; });
  for (; at != published->end() && at->agent >> 32 == cluster; ++at)
    raise(static_cast<uint32_t>(at->agent), at->clock);
  foreign_ = merged(foreign_, published);
}

SharedKnowledge VectorClock::publish(uint32_t cluster) const {
  auto mine = std::make_shared<Knowledge>();
  for (size_t i = 0; i < own_.size(); i++)
    if (own_[i]) mine->push_back({uint64_t{cluster} << 32 | i, own_[i]});
  return merged(foreign_, mine);
}

}  // namespace ptxbench::emu
