// Graphs: nodes with what they depend on; an executable graph is a frozen copy in order.
#include <algorithm>

#include "cudart/lib/live/backend.h"

namespace ptxbench::cudart::live {

Node* Graph::add(Operation op, std::vector<Node*> needs) {
  nodes.push_back(std::make_unique<Node>());
  Node* n = nodes.back().get();
  n->op = std::move(op);
  n->needs = std::move(needs);
  n->graph = this;
  return n;
}

std::shared_ptr<Graph> Graph::clone() const {
  auto copy = std::make_shared<Graph>();
  std::map<const Node*, Node*> twin;
  for (const auto& n : nodes) {
    Node* made = copy->add(n->op, {});
    made->origin = n.get();
    made->enabled = n->enabled;
    twin[n.get()] = made;
    if (auto* child = std::get_if<ChildOp>(&made->op)) child->graph = child->graph->clone();
  }
  for (const auto& n : nodes)
    for (const Node* need : n->needs)
      if (const auto found = twin.find(need); found != twin.end())
        twin[n.get()]->needs.push_back(found->second);
  return copy;
}

bool Graph::order(std::vector<Node*>* out) const {
  std::map<const Node*, size_t> missing;
  std::map<const Node*, std::vector<Node*>> dependents;
  for (const auto& n : nodes) {
    missing[n.get()] = n->needs.size();
    for (const Node* need : n->needs) dependents[need].push_back(n.get());
  }
  std::vector<Node*> ready;
  for (const auto& n : nodes)
    if (n->needs.empty()) ready.push_back(n.get());
  for (size_t i = 0; i < ready.size(); ++i)
    for (Node* next : dependents[ready[i]])
      if (--missing[next] == 0) ready.push_back(next);
  *out = std::move(ready);
  return out->size() == nodes.size();
}

Graph* LiveBackend::adopt(std::shared_ptr<Graph> graph) {
  std::lock_guard lock(mutex_);
  Graph* handle = graph.get();
  graphs_[handle] = std::move(graph);
  return handle;
}

Graph* LiveBackend::create_graph() { return adopt(std::make_shared<Graph>()); }

std::shared_ptr<Graph> LiveBackend::shared_graph(const void* handle) {
  const auto found = graphs_.find(handle);
  return found == graphs_.end() ? nullptr : found->second;
}

Graph* LiveBackend::graph(const void* handle) { return shared_graph(handle).get(); }

Node* LiveBackend::node(const void* handle) {
  for (const auto& [unused, g] : graphs_)
    for (const auto& n : g->nodes)
      if (n.get() == handle) return n.get();
  return nullptr;
}

GraphExec* LiveBackend::exec(const void* handle) {
  const auto found = execs_.find(handle);
  return found == execs_.end() ? nullptr : found->second.get();
}

int LiveBackend::destroy_graph(const void* handle) {
  std::lock_guard lock(mutex_);
  return graphs_.erase(handle) ? kSuccess : kInvalidValue;
}

int LiveBackend::instantiate(Graph* g, GraphExec** out) {
  std::lock_guard lock(mutex_);
  auto made = std::make_unique<GraphExec>();
  made->graph = g->clone();
  if (!made->graph->order(&made->order)) return refuse(kInvalidValue, "the graph has a cycle");
  *out = made.get();
  execs_[made.get()] = std::move(made);
  return kSuccess;
}

int LiveBackend::destroy_exec(const void* handle) {
  std::lock_guard lock(mutex_);
  return execs_.erase(handle) ? kSuccess : kInvalidValue;
}

int LiveBackend::launch_graph(GraphExec* e, const void* handle) {
  std::lock_guard lock(mutex_);
  if (sticky_) return sticky_;
  Stream* s = stream(handle);
  if (!s) return kInvalidHandle;
  if (s->capture) return submit(handle, ChildOp{e->graph->clone()});
  // A host node may destroy the graph that runs.
  const std::shared_ptr<Graph> alive = e->graph;
  const std::vector<Node*> order = e->order;
  for (const Node* n : order) {
    if (!n->enabled) continue;
    const int status = perform(n->op);
    if (status && !sticky_) return status;
    if (sticky_) return kSuccess;  // as with a kernel: what comes after the launch fails
  }
  return kSuccess;
}

}  // namespace ptxbench::cudart::live
