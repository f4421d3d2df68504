#include "ptx/uniformity.h"

#include <algorithm>
#include <bit>

#include "ptx/def_use.h"

namespace ptxbench::ptx {
namespace {

uint8_t level_of(Special special, uint8_t component) {
  switch (special) {
    case Special::tid:
      return component == 0 ? 0 : Uniformity::kWarp;
    case Special::laneid:
    case Special::lanemask_eq:
    case Special::lanemask_le:
    case Special::lanemask_lt:
    case Special::lanemask_ge:
    case Special::lanemask_gt:
      return 0;
    case Special::warpid:
    case Special::clock:
    case Special::clock64:
    case Special::globaltimer:
      return Uniformity::kWarp;
    default:
      return Uniformity::kUniform;
  }
}

uint8_t trailing_zeros(uint64_t value) {
  return value == 0 ? Uniformity::kUniform
                    : static_cast<uint8_t>(std::min(std::countr_zero(value), 31));
}

uint8_t capped(unsigned level) {
  return static_cast<uint8_t>(std::min<unsigned>(level, Uniformity::kUniform));
}

bool is_trivial_exit(const ControlFlow& flow, uint32_t block) {
  const BasicBlock& b = flow.blocks()[block];
  const Instruction& last = *flow.instructions()[b.last];
  return b.successors.empty() && b.last - b.first < 3 && last.guard == kNone;
}

bool less_or_not(const Modifiers& m) {  // true at constants: the border lies before C
  return m.has(Mod::lt) || m.has(Mod::ge) || m.has(Mod::lo) || m.has(Mod::hs);
}
bool greater_or_not(const Modifiers& m) {  // the border lies after C
  return m.has(Mod::gt) || m.has(Mod::le) || m.has(Mod::hi) || m.has(Mod::ls);
}

}  // namespace

Uniformity::Uniformity(const ControlFlow& flow) : flow_(flow) {
  blocks_.assign(flow.blocks().size(), kUniform);
  branches_ = blocks_;
  executed_.assign(flow.instructions().size(), kUniform);
  results_ = executed_;
  constexpr size_t kLargest = 50'000'000;
  if (flow.blocks().size() * flow.function().registers.size() <= kLargest) propagate();
}

Uniformity::Value Uniformity::of(const Operand& o, const State& state) const {
  switch (o.kind) {
    case Operand::Kind::reg:
      return state[o.index];
    case Operand::Kind::special: {
      const uint8_t level = level_of(static_cast<Special>(o.index), o.component);
      return {level, static_cast<Special>(o.index) == Special::tid && o.component == 0};
    }
    default: {
      Value all;
      if (o.kind == Operand::Kind::address && o.base == Operand::Base::reg) all = state[o.index];
      for (const Operand& e : o.elements) all.level = std::min(all.level, of(e, state).level);
      all.linear = false;
      return all;
    }
  }
}

// The result of an instruction from its sources.
Uniformity::Value Uniformity::result(const Instruction& i, const State& state) const {
  Value all;
  int linear = 0, other = 0;
  const Form* form = matching_form(i);
  const auto* constant = static_cast<const Operand*>(nullptr);
  const Operand* varying = nullptr;
  for (size_t n = 0; n < i.operands.size(); ++n) {
    const bool written = form && n < form->operands.size() &&
                         (form->operands[n].role == Role::destination ||
                          form->operands[n].role == Role::predicate_destination);
    if (written) continue;
    const Value v = of(i.operands[n], state);
    all.level = std::min(all.level, v.level);
    if (i.operands[n].kind == Operand::Kind::integer) constant = &i.operands[n];
    if (v.linear) varying = &i.operands[n];
    linear += v.linear, other += !v.linear && v.level < kWarpgroup;
  }
  const bool alone = linear == 1 && other == 0 && varying != nullptr;
  const uint8_t shift = varying ? of(*varying, state).level : 0;
  switch (i.op) {
    case Op::mov:
    case Op::cvt:
    case Op::cvta:
    case Op::add:
    case Op::sub:
    case Op::mad:
    case Op::or_:
      all.linear = linear > 0 && other == 0;
      break;
    case Op::shr:
      if (alone && constant) return {capped(shift + static_cast<unsigned>(constant->value)), true};
      break;
    case Op::div:
      if (alone && constant)
        return {capped(shift + trailing_zeros(constant->value)),
                std::has_single_bit(constant->value)};
      break;
    case Op::and_:
      if (alone && constant) return {capped(shift + trailing_zeros(constant->value)), false};
      break;
    case Op::setp:
      if (!alone || !constant) break;
      if (less_or_not(i.mods)) return {capped(shift + trailing_zeros(constant->value)), false};
      if (greater_or_not(i.mods))
        return {capped(shift + trailing_zeros(constant->value + 1)), false};
      break;
    case Op::shfl_sync:
      if (i.mods.has(Mod::idx) || i.mods.has(Mod::bfly)) return {std::max(all.level, kWarp), false};
      break;
    case Op::vote_sync:
    case Op::redux_sync:
    case Op::activemask:
      return {std::max(all.level, kWarp), false};
    case Op::match_sync:
      if (i.mods.has(Mod::all)) return {std::max(all.level, kWarp), false};
      break;
    case Op::bar:
    case Op::barrier:
      return {kUniform, false};
    case Op::elect_sync:
    case Op::atom:
      return {0, false};
    default:
      break;
  }
  return all;
}

void Uniformity::visit(uint32_t n, uint8_t control, State& state) {
  const Instruction& i = *flow_.instructions()[n];
  Value v = result(i, state);
  if (i.guard != kNone) control = std::min(control, state[i.guard].level);
  executed_[n] = control;
  if (control < v.level) v = {control, false};
  results_[n] = v.level;
  for_each_register(i, [&](uint32_t reg, bool write) {
    if (!write) return;
    // A guarded write leaves the old value in other threads.
    if (i.guard != kNone) v = {std::min(v.level, state[reg].level), v.linear && state[reg].linear};
    state[reg] = v;
  });
}

// Whether the block's branch sends threads on different ways.
bool Uniformity::splits(uint32_t block) const {
  const auto& list = flow_.blocks()[block].successors;
  return std::count_if(list.begin(), list.end(),
                       [&](uint32_t s) { return !is_trivial_exit(flow_, s); }) > 1;
}

void Uniformity::meet(State& state, const State& other) {
  for (size_t r = 0; r < state.size(); ++r) {
    state[r].level = std::min(state[r].level, other[r].level);
    state[r].linear &= other[r].linear;
  }
}

// The meet of what comes from all predecessors seen so far.
Uniformity::State Uniformity::entry_state(uint32_t block, const std::vector<State>& out) const {
  State in;
  for (uint32_t p : flow_.blocks()[block].predecessors) {
    if (out[p].empty()) continue;
    if (in.empty()) {
      in = out[p];
      continue;
    }
    meet(in, out[p]);
  }
  if (in.empty()) in.resize(std::max<size_t>(1, flow_.function().registers.size()));
  return in;
}

// Starts from "all agree" and lowers levels until nothing changes.
void Uniformity::propagate() {
  const auto dependence = flow_.control_dependence();
  std::vector<State> out(flow_.blocks().size());
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b : flow_.order()) {
      for (uint32_t a : dependence[b])
        if (a != b && splits(a)) blocks_[b] = std::min(blocks_[b], branches_[a]);
      State state = entry_state(b, out);
      const uint32_t last = flow_.blocks()[b].last;
      for (uint32_t n = flow_.blocks()[b].first; n < last; ++n) visit(n, blocks_[b], state);
      const Instruction& branch = *flow_.instructions()[last];
      visit(last, blocks_[b], state);
      uint8_t level = executed_[last];
      if (branch.op == Op::brx_idx && !branch.operands.empty())
        level = std::min(level, of(branch.operands[0], state).level);
      // Never above what was found before, so that this ends.
      if (!out[b].empty()) meet(state, out[b]);
      changed |= level < branches_[b] || state != out[b];
      branches_[b] = std::min(branches_[b], level);
      out[b] = std::move(state);
    }
  }
}

}  // namespace ptxbench::ptx
