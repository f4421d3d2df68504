#pragma once
// Vector clocks of the race checker (race_checker.h).
//
// Everything that accesses memory on its own is an agent with a clock: each warp, its copies, its
// bulk copies, its wgmmas, and each mbarrier (for what completes on it). Agents of a cluster have
// dense numbers (components). A warp's VectorClock says of each agent up to which of its epochs
// everything is ordered before the warp's next access; what it knows of other clusters is rare and
// kept apart, shared between those that know the same.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace ptxbench::emu {

struct KnownEpoch {
  uint64_t agent = 0;  // cluster << 32 | component
  uint32_t clock = 0;
};
using Knowledge = std::vector<KnownEpoch>;  // by agent, ascending
using SharedKnowledge = std::shared_ptr<const Knowledge>;

// The later epoch of each agent; one of the arguments where it has everything. Null: nothing known.
SharedKnowledge merged(const SharedKnowledge& a, const SharedKnowledge& b);
// 0: nothing known of the agent.
uint32_t epoch_of(const SharedKnowledge& known, uint64_t agent);

class VectorClock {
 public:
  uint32_t at(uint32_t component) const { return component < own_.size() ? own_[component] : 0; }
  const SharedKnowledge& foreign() const { return foreign_; }
  bool empty() const { return own_.empty() && !foreign_; }
  void raise(uint32_t component, uint32_t clock) {
    if (component >= own_.size()) own_.resize(component + 1);
    own_[component] = std::max(own_[component], clock);
  }
  void join(const VectorClock& other);
  // What another warp has published, perhaps one of the own cluster.
  void join(const SharedKnowledge& published, uint32_t cluster);
  // Everything known, in a form that any cluster can join.
  SharedKnowledge publish(uint32_t cluster) const;

 private:
  std::vector<uint32_t> own_;  // by component of the own cluster
  SharedKnowledge foreign_;
};

}  // namespace ptxbench::emu
