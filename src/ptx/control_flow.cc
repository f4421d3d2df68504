#include "ptx/control_flow.h"

#include <algorithm>

namespace ptxbench::ptx {
namespace {

bool branches(Op op) { return op == Op::bra || op == Op::brx_idx; }
bool leaves_function(Op op) { return op == Op::ret || op == Op::exit || op == Op::trap; }

// Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001), over a graph given by
// its reverse postorder; node numbers are positions in that order, 0 is the root.
std::vector<uint32_t> immediate_dominators(const std::vector<std::vector<uint32_t>>& predecessors) {
  std::vector<uint32_t> idom(predecessors.size(), kNone);
  if (idom.empty()) return idom;
  idom[0] = 0;
  auto common = [&](uint32_t a, uint32_t b) {
    while (a != b) (a > b ? a : b) = idom[std::max(a, b)];
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t node = 1; node < idom.size(); ++node) {
      uint32_t best = kNone;
      for (uint32_t p : predecessors[node])
        if (idom[p] != kNone) best = best == kNone ? p : common(best, p);
      if (best != idom[node]) idom[node] = best, changed = true;
    }
  }
  return idom;
}

// Reverse postorder of what `root` reaches, without recursion: chains of blocks can be long.
template <class Next>
std::vector<uint32_t> reverse_postorder(uint32_t root, size_t nodes, Next next) {
  std::vector<uint32_t> order;
  std::vector<bool> seen(nodes);
  std::vector<std::pair<uint32_t, size_t>> stack{{root, 0}};
  seen[root] = true;
  while (!stack.empty()) {
    auto& [node, at] = stack.back();
    const std::vector<uint32_t>& list = next(node);
    if (at == list.size()) {
      order.push_back(node);
      stack.pop_back();
      continue;
    }
    const uint32_t to = list[at++];
    if (!seen[to]) {
      seen[to] = true;
      stack.emplace_back(to, 0);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

void add_unique(std::vector<uint32_t>& list, uint32_t value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

}  // namespace

ControlFlow::ControlFlow(const Function& function, const Module* module)
    : function_(&function), module_(module) {
  collect();
  make_blocks();
  for (uint32_t b = 0; b < blocks_.size(); ++b) connect(b);
  order_blocks();
}

void ControlFlow::collect() {
  label_at_.assign(function_->labels.size(), 0);
  for (uint32_t i = 0; i < function_->body.size(); ++i) {
    const Statement& statement = function_->body[i];
    if (const auto* label = std::get_if<LabelMark>(&statement)) {
      label_at_[label->label] = static_cast<uint32_t>(instructions_.size());
    } else if (const auto* instruction = std::get_if<Instruction>(&statement)) {
      instructions_.push_back(instruction);
      statements_.push_back(i);
    }
  }
}

bool ControlFlow::ends_block(const Instruction& i) const {
  if (branches(i.op) || leaves_function(i.op)) return true;
  if (i.op != Op::call || module_ == nullptr || i.operands.size() < 2) return false;
  const Operand& callee = i.operands[1];
  return callee.kind == Operand::Kind::function && callee.index < module_->functions.size() &&
         module_->functions[callee.index].directives.noreturn;
}

void ControlFlow::make_blocks() {
  const auto n = static_cast<uint32_t>(instructions_.size());
  std::vector<bool> leader(n + 1);
  leader[0] = true;
  for (const Statement& statement : function_->body)
    if (const auto* label = std::get_if<LabelMark>(&statement))
      leader[label_at_[label->label]] = true;
  for (uint32_t i = 0; i < n; ++i)
    if (ends_block(*instructions_[i])) leader[i + 1] = true;
  block_of_.assign(n, 0);
  for (uint32_t i = 0; i < n; ++i) {
    if (leader[i]) blocks_.push_back({i, i, {}, {}, false});
    blocks_.back().last = i;
    block_of_[i] = static_cast<uint32_t>(blocks_.size() - 1);
  }
}

// Labels that a branch may go to.
void ControlFlow::targets_of(const Instruction& branch, std::vector<uint32_t>* out) const {
  for (const Operand& o : branch.operands) {
    if (o.kind != Operand::Kind::label && o.kind != Operand::Kind::string) continue;
    if (o.index >= function_->labels.size()) continue;
    if (branch.op == Op::bra) {
      out->push_back(o.index);
      continue;
    }
    const uint32_t at = function_->labels[o.index].statement;
    if (at >= function_->body.size()) continue;
    if (const auto* table = std::get_if<BranchTargets>(&function_->body[at]))
      out->insert(out->end(), table->targets.begin(), table->targets.end());
  }
  if (!out->empty()) return;
  for (uint32_t l = 0; l < function_->labels.size(); ++l) {
    const uint32_t at = function_->labels[l].statement;
    if (at < function_->body.size() && std::holds_alternative<LabelMark>(function_->body[at]))
      out->push_back(l);
  }
}

void ControlFlow::connect(uint32_t b) {
  const Instruction& last = *instructions_[blocks_[b].last];
  auto add = [&](uint32_t instruction) {
    if (instruction >= instructions_.size()) {
      blocks_[b].leaves = true;  // a label at the end of the body
      return;
    }
    add_unique(blocks_[b].successors, block_of_[instruction]);
  };
  if (branches(last.op)) {
    std::vector<uint32_t> labels;
    targets_of(last, &labels);
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    for (uint32_t label : labels) add(label_at_[label]);
  }
  if (leaves_function(last.op)) blocks_[b].leaves = true;
  if (!ends_block(last) || last.guard != kNone) add(blocks_[b].last + 1);
  for (uint32_t s : blocks_[b].successors) blocks_[s].predecessors.push_back(b);
}

void ControlFlow::order_blocks() {
  position_.assign(blocks_.size(), kNone);
  if (blocks_.empty()) return;
  order_ = reverse_postorder(0, blocks_.size(), [&](uint32_t b) -> const std::vector<uint32_t>& {
    return blocks_[b].successors;
  });
  for (uint32_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
}

std::vector<uint32_t> ControlFlow::dominators() const {
  std::vector<std::vector<uint32_t>> predecessors(order_.size());
  for (uint32_t i = 0; i < order_.size(); ++i)
    for (uint32_t p : blocks_[order_[i]].predecessors)
      if (reachable(p)) predecessors[i].push_back(position_[p]);
  const std::vector<uint32_t> by_position = immediate_dominators(predecessors);
  std::vector<uint32_t> out(blocks_.size(), kNone);
  for (uint32_t i = 1; i < order_.size(); ++i) out[order_[i]] = order_[by_position[i]];
  return out;
}

std::vector<uint32_t> ControlFlow::post_dominators() const {
  // The reversed graph, with one more node for "out of the function".
  const auto out_node = static_cast<uint32_t>(blocks_.size());
  std::vector<uint32_t> exits;
  for (uint32_t b : order_)
    if (blocks_[b].leaves) exits.push_back(b);
  const auto order = reverse_postorder(out_node, blocks_.size() + 1,
                                       [&](uint32_t b) -> const std::vector<uint32_t>& {
                                         return b == out_node ? exits : blocks_[b].predecessors;
                                       });
  std::vector<uint32_t> position(blocks_.size() + 1, kNone);
  for (uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  std::vector<std::vector<uint32_t>> predecessors(order.size());
  for (uint32_t i = 1; i < order.size(); ++i) {
    if (blocks_[order[i]].leaves) predecessors[i].push_back(0);
    for (uint32_t s : blocks_[order[i]].successors)
      if (position[s] != kNone) predecessors[i].push_back(position[s]);
  }
  const std::vector<uint32_t> by_position = immediate_dominators(predecessors);
  std::vector<uint32_t> result(blocks_.size(), kNone);
  for (uint32_t i = 1; i < order.size(); ++i)
    if (by_position[i] != kNone && by_position[i] != 0) result[order[i]] = order[by_position[i]];
  return result;
}

std::vector<uint32_t> ControlFlow::loop_depth() const {
  const std::vector<uint32_t> idom = dominators();
  // Depth in the dominator tree bounds the climb.
  auto dominates = [&](uint32_t a, uint32_t b) {
    while (b != kNone && position_[b] > position_[a]) b = idom[b];
    return a == b;
  };
  std::vector<uint32_t> depth(blocks_.size(), 0);
  for (uint32_t header : order_) {
    std::vector<uint32_t> work;
    std::vector<bool> inside(blocks_.size());
    inside[header] = true;
    for (uint32_t p : blocks_[header].predecessors)
      if (reachable(p) && dominates(header, p)) work.push_back(p);
    if (work.empty()) continue;
    ++depth[header];
    while (!work.empty()) {
      const uint32_t b = work.back();
      work.pop_back();
      if (inside[b]) continue;
      inside[b] = true;
      ++depth[b];
      for (uint32_t p : blocks_[b].predecessors)
        if (reachable(p) && !inside[p]) work.push_back(p);
    }
  }
  return depth;
}

// Ferrante, Ottenstein and Warren (1987): b depends on a if b post-dominates a successor of a but
// not a itself; found by climbing the post-dominator tree from each successor.
std::vector<std::vector<uint32_t>> ControlFlow::control_dependence() const {
  const std::vector<uint32_t> post = post_dominators();
  std::vector<std::vector<uint32_t>> out(blocks_.size());
  for (uint32_t a : order_) {
    if (blocks_[a].successors.size() + blocks_[a].leaves < 2) continue;
    for (uint32_t s : blocks_[a].successors)
      for (uint32_t b = s; b != kNone && b != post[a]; b = post[b]) {
        if (!out[b].empty() && out[b].back() == a) break;  // this branch came here already
        out[b].push_back(a);
      }
  }
  for (auto& list : out) std::sort(list.begin(), list.end());
  return out;
}

}  // namespace ptxbench::ptx
