// Runtime, live: graphs built node by node, executable graphs, updates.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "cudart/lib/launch_attributes.h"
#include "cudart/lib/live/backend.h"
#include "cudart/lib/runtime_state.h"

using namespace ptxbench::cudart;
using namespace ptxbench::cudart::live;

namespace {

uint64_t number(const void* p) { return reinterpret_cast<uint64_t>(p); }
cudaGraphNode_t handle(const Node* n) {
  return reinterpret_cast<cudaGraphNode_t>(const_cast<Node*>(n));
}
cudaGraph_t handle(const Graph* g) { return reinterpret_cast<cudaGraph_t>(const_cast<Graph*>(g)); }

// A node of this very graph.
Node* node_in(const Graph& graph, cudaGraphNode_t wanted) {
  for (const auto& n : graph.nodes)
    if (handle(n.get()) == wanted) return n.get();
  return nullptr;
}

cudaError_t add_node(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t* needs,
                     size_t count, Operation op) {
  Lock lock;
  Graph* g = emulation().graph(graph);
  if (!out || !g || (count && !needs)) return set_last(cudaErrorInvalidValue);
  std::vector<Node*> nodes;
  for (size_t i = 0; i < count; ++i) {
    nodes.push_back(node_in(*g, needs[i]));
    if (!nodes.back()) return set_last(cudaErrorInvalidValue);
  }
  return *out = handle(g->add(std::move(op), std::move(nodes))), cudaSuccess;
}

// ------------------------------------------------------------------- parameters to operations
int to_operation(const cudaKernelNodeParams* p, Operation* out) {
  if (!p) return cudaErrorInvalidValue;
  LaunchCall call;
  call.kernel = emulation().kernel(p->func);
  const uint32_t grid[3] = {p->gridDim.x, p->gridDim.y, p->gridDim.z};
  const uint32_t block[3] = {p->blockDim.x, p->blockDim.y, p->blockDim.z};
  std::copy(grid, grid + 3, call.grid);
  std::copy(block, block + 3, call.block);
  call.dynamic_shared = p->sharedMemBytes;
  call.arguments = p->kernelParams;
  if (!p->kernelParams) read_packed(p->extra, &call);
  KernelOp op;
  if (const int status = emulation().prepare(call, &op)) return status;
  op.function = p->func;
  *out = std::move(op);
  return cudaSuccess;
}

int to_operation(const cudaMemcpy3DParms* p, Operation* out) {
  CopyCall call;
  if (const int status = copy_of(p, &call)) return status;
  *out = call;
  return cudaSuccess;
}

int to_operation(const cudaMemsetParams* p, Operation* out) {
  if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
    return cudaErrorInvalidValue;
  MemsetCall call;
  call.dst = number(p->dst);
  call.value = p->value;
  call.element_size = p->elementSize;
  call.width = p->width * p->elementSize;
  call.height = p->height;
  call.pitch = p->pitch;
  *out = call;
  return cudaSuccess;
}

int to_operation(const cudaHostNodeParams* p, Operation* out) {
  if (!p || !p->fn) return cudaErrorInvalidValue;
  *out = HostOp{p->fn, p->userData};
  return cudaSuccess;
}

int symbol_place(const void* symbol, size_t offset, size_t bytes, uint64_t* address) {
  uint64_t size = 0;
  if (!emulation().symbol(symbol, address, &size)) return cudaErrorInvalidSymbol;
  if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
  *address += offset;
  return cudaSuccess;
}

template <class Params>
cudaError_t add_from(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t* needs,
                     size_t count, const Params* params) {
  Operation op;
  if (const int status = to_operation(params, &op)) return set_last(status);
  return add_node(out, graph, needs, count, std::move(op));
}

// New parameters for a node, of the kind that it has.
int replace(Node* n, Operation op) {
  if (!n || n->op.index() != op.index()) return cudaErrorInvalidValue;
  if (const auto* old = std::get_if<KernelOp>(&n->op)) {  // attributes stay
    auto& fresh = std::get<KernelOp>(op);
    fresh.cooperative = old->cooperative;
    fresh.programmatic = old->programmatic;
    if (!fresh.explicit_cluster) {
      fresh.explicit_cluster = old->explicit_cluster;
      std::copy(old->cluster, old->cluster + 3, fresh.cluster);
    }
  }
  n->op = std::move(op);
  return cudaSuccess;
}

template <class Params>
cudaError_t set_params(cudaGraphNode_t node, const Params* params) {
  Lock lock;
  Operation op;
  if (const int status = to_operation(params, &op)) return set_last(status);
  return set_last(replace(emulation().node(node), std::move(op)));
}

// The executable graph's copy of a node.
Node* in_exec(cudaGraphExec_t exec, cudaGraphNode_t node) {
  GraphExec* e = emulation().exec(exec);
  if (!e) return nullptr;
  for (const auto& n : e->graph->nodes)
    if (handle(n->origin) == node) return n.get();
  return nullptr;
}

template <class Params>
cudaError_t set_exec_params(cudaGraphExec_t exec, cudaGraphNode_t node, const Params* params) {
  Lock lock;
  Operation op;
  if (const int status = to_operation(params, &op)) return set_last(status);
  return set_last(replace(in_exec(exec, node), std::move(op)));
}

template <class T>
T* operation_of(cudaGraphNode_t node) {
  Node* n = emulation().node(node);
  return n ? std::get_if<T>(&n->op) : nullptr;
}

// As the API returns lists: the number, or up to *count entries (the rest null).
template <class H>
cudaError_t give(const std::vector<H>& all, H* out, size_t* count) {
  if (!count) return set_last(cudaErrorInvalidValue);
  if (!out) return *count = all.size(), cudaSuccess;
  for (size_t i = 0; i < *count; ++i) out[i] = i < all.size() ? all[i] : nullptr;
  return *count = std::min(*count, all.size()), cudaSuccess;
}

cudaGraphNodeType type_of(const Node& n) {
  struct Type {
    cudaGraphNodeType operator()(const EmptyOp&) const { return cudaGraphNodeTypeEmpty; }
    cudaGraphNodeType operator()(const KernelOp&) const { return cudaGraphNodeTypeKernel; }
    cudaGraphNodeType operator()(const CopyCall&) const { return cudaGraphNodeTypeMemcpy; }
    cudaGraphNodeType operator()(const MemsetCall&) const { return cudaGraphNodeTypeMemset; }
    cudaGraphNodeType operator()(const HostOp&) const { return cudaGraphNodeTypeHost; }
    cudaGraphNodeType operator()(const EventOp& e) const {
      return e.wait ? cudaGraphNodeTypeWaitEvent : cudaGraphNodeTypeEventRecord;
    }
    cudaGraphNodeType operator()(const MemoryOp& m) const {
      return m.release ? cudaGraphNodeTypeMemFree : cudaGraphNodeTypeMemAlloc;
    }
    cudaGraphNodeType operator()(const ChildOp&) const { return cudaGraphNodeTypeGraph; }
  };
  return std::visit(Type{}, n.op);
}

cudaError_t instantiate(cudaGraphExec_t* out, cudaGraph_t graph) {
  Lock lock;
  Graph* g = emulation().graph(graph);
  if (!out || !g) return set_last(cudaErrorInvalidValue);
  GraphExec* made = nullptr;
  const int status = emulation().instantiate(g, &made);
  return *out = reinterpret_cast<cudaGraphExec_t>(made), set_last(status);
}

// An executable graph takes over the operations of a graph of the same shape.
int update(GraphExec& exec, const Graph& graph, cudaGraphExecUpdateResultInfo* info) {
  const auto fail = [&](cudaGraphExecUpdateResult why, const Node* n) {
    info->result = why;
    info->errorNode = handle(n);
    return kGraphUpdateFailure;
  };
  *info = {};
  info->result = cudaGraphExecUpdateSuccess;
  if (graph.nodes.size() != exec.graph->nodes.size())
    return fail(cudaGraphExecUpdateErrorTopologyChanged, nullptr);
  std::map<const Node*, size_t> index, own_index;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    index[graph.nodes[i].get()] = i;
    own_index[exec.graph->nodes[i].get()] = i;
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node &theirs = *graph.nodes[i], &own = *exec.graph->nodes[i];
    if (theirs.op.index() != own.op.index())
      return fail(cudaGraphExecUpdateErrorNodeTypeChanged, &theirs);
    std::vector<size_t> a, b;
    for (const Node* n : theirs.needs) a.push_back(index[n]);
    for (const Node* n : own.needs) b.push_back(own_index[n]);
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    if (a != b) return fail(cudaGraphExecUpdateErrorTopologyChanged, &theirs);
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) exec.graph->nodes[i]->op = graph.nodes[i]->op;
  return kSuccess;
}

cudaError_t change_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                         size_t count, bool add) {
  Lock lock;
  Graph* g = emulation().graph(graph);
  if (!g || (count && (!from || !to))) return set_last(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; ++i) {
    Node *a = node_in(*g, from[i]), *b = node_in(*g, to[i]);
    if (!a || !b || a == b) return set_last(cudaErrorInvalidValue);
    const auto at = std::find(b->needs.begin(), b->needs.end(), a);
    if ((at == b->needs.end()) != add) return set_last(cudaErrorInvalidValue);
    if (add)
      b->needs.push_back(a);
    else
      b->needs.erase(at);
  }
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* out, unsigned flags) {
  if (!out || flags) return set_last(cudaErrorInvalidValue);
  return *out = handle(emulation().create_graph()), cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) { return set_last(emulation().destroy_graph(g)); }
cudaError_t cudaGraphClone(cudaGraph_t* out, cudaGraph_t graph) {
  Lock lock;
  const Graph* g = emulation().graph(graph);
  if (!out || !g) return set_last(cudaErrorInvalidValue);
  return *out = handle(emulation().adopt(g->clone())), cudaSuccess;
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* out, cudaGraphNode_t node,
                                     cudaGraph_t clone) {
  Lock lock;
  const Graph* g = emulation().graph(clone);
  if (!out || !g) return set_last(cudaErrorInvalidValue);
  for (const auto& n : g->nodes)
    if (handle(n->origin) == node) return *out = handle(n.get()), cudaSuccess;
  return set_last(cudaErrorInvalidValue);
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* out, cudaGraph_t g,
                                   const cudaGraphNode_t* needs, size_t count,
                                   const cudaKernelNodeParams* p) {
  return add_from(out, g, needs, count, p);
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* out, cudaGraph_t g,
                                   const cudaGraphNode_t* needs, size_t count,
                                   const cudaMemcpy3DParms* p) {
  return add_from(out, g, needs, count, p);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* out, cudaGraph_t g,
                                     const cudaGraphNode_t* needs, size_t count, void* d,
                                     const void* s, size_t bytes, cudaMemcpyKind) {
  return add_node(out, g, needs, count, CopyCall::flat(number(d), number(s), bytes));
}
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* out, cudaGraph_t g,
                                           const cudaGraphNode_t* needs, size_t count,
                                           const void* symbol, const void* s, size_t bytes,
                                           size_t offset, cudaMemcpyKind) {
  uint64_t d = 0;
  if (const int status = symbol_place(symbol, offset, bytes, &d)) return set_last(status);
  return add_node(out, g, needs, count, CopyCall::flat(d, number(s), bytes));
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* out, cudaGraph_t g,
                                             const cudaGraphNode_t* needs, size_t count, void* d,
                                             const void* symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind) {
  uint64_t s = 0;
  if (const int status = symbol_place(symbol, offset, bytes, &s)) return set_last(status);
  return add_node(out, g, needs, count, CopyCall::flat(number(d), s, bytes));
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* out, cudaGraph_t g,
                                   const cudaGraphNode_t* needs, size_t count,
                                   const cudaMemsetParams* p) {
  return add_from(out, g, needs, count, p);
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* needs,
                                 size_t count, const cudaHostNodeParams* p) {
  return add_from(out, g, needs, count, p);
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* needs,
                                  size_t count) {
  return add_node(out, g, needs, count, EmptyOp{});
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* out, cudaGraph_t g,
                                       const cudaGraphNode_t* needs, size_t count,
                                       cudaGraph_t child) {
  Lock lock;
  const Graph* c = emulation().graph(child);
  if (!c || child == g) return set_last(cudaErrorInvalidValue);
  return add_node(out, g, needs, count, ChildOp{c->clone()});
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* out, cudaGraph_t g,
                                        const cudaGraphNode_t* needs, size_t count, cudaEvent_t e) {
  Lock lock;
  Event* event = emulation().event(e);
  if (!event) return set_last(cudaErrorInvalidValue);
  return add_node(out, g, needs, count, EventOp{event, false});
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* out, cudaGraph_t g,
                                      const cudaGraphNode_t* needs, size_t count, cudaEvent_t e) {
  Lock lock;
  Event* event = emulation().event(e);
  if (!event) return set_last(cudaErrorInvalidValue);
  return add_node(out, g, needs, count, EventOp{event, true});
}
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* out, cudaGraph_t g,
                                     const cudaGraphNode_t* needs, size_t count,
                                     cudaMemAllocNodeParams* p) {
  if (!p) return set_last(cudaErrorInvalidValue);
  uint64_t address = 0;
  if (const int status = emulation().allocate(p->bytesize, &address)) return set_last(status);
  p->dptr = reinterpret_cast<void*>(address);
  return add_node(out, g, needs, count, MemoryOp{address, p->bytesize, false});
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* out, cudaGraph_t g,
                                    const cudaGraphNode_t* needs, size_t count, void* p) {
  return add_node(out, g, needs, count, MemoryOp{number(p), 0, true});
}
cudaError_t cudaGraphAddNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* needs,
                             const cudaGraphEdgeData*, size_t count, cudaGraphNodeParams* p) {
  if (!p) return set_last(cudaErrorInvalidValue);
  switch (p->type) {
    case cudaGraphNodeTypeKernel: {
      const auto& k = p->kernel;
      cudaKernelNodeParams plain = {};
      plain.func = k.func;
      plain.gridDim = k.gridDim;
      plain.blockDim = k.blockDim;
      plain.sharedMemBytes = k.sharedMemBytes;
      plain.kernelParams = k.kernelParams;
      plain.extra = k.extra;
      return add_from(out, g, needs, count, &plain);
    }
    case cudaGraphNodeTypeMemcpy:
      return add_from(out, g, needs, count, &p->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: {
      const auto& m = p->memset;
      const cudaMemsetParams plain = {m.dst, m.pitch, m.value, m.elementSize, m.width, m.height};
      return add_from(out, g, needs, count, &plain);
    }
    case cudaGraphNodeTypeHost: {
      const cudaHostNodeParams plain = {p->host.fn, p->host.userData};
      return add_from(out, g, needs, count, &plain);
    }
    case cudaGraphNodeTypeEmpty:
      return add_node(out, g, needs, count, EmptyOp{});
    case cudaGraphNodeTypeGraph:
      return cudaGraphAddChildGraphNode(out, g, needs, count, p->graph.graph);
    case cudaGraphNodeTypeEventRecord:
      return cudaGraphAddEventRecordNode(out, g, needs, count, p->eventRecord.event);
    case cudaGraphNodeTypeWaitEvent:
      return cudaGraphAddEventWaitNode(out, g, needs, count, p->eventWait.event);
    default:
      return set_last(emulation().unsupported("cudaGraphAddNode of this node type"));
  }
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  Lock lock;
  const Node* n = emulation().node(node);
  if (!n) return set_last(cudaErrorInvalidValue);
  auto& nodes = n->graph->nodes;
  for (const auto& other : nodes) std::erase(other->needs, n);
  std::erase_if(nodes, [&](const auto& other) { return other.get() == n; });
  return cudaSuccess;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t g, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                     size_t count) {
  return change_edges(g, from, to, count, true);
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t g, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                        size_t count) {
  return change_edges(g, from, to, count, false);
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* out, size_t* count) {
  Lock lock;
  const Graph* g = emulation().graph(graph);
  if (!g) return set_last(cudaErrorInvalidValue);
  std::vector<cudaGraphNode_t> all;
  for (const auto& n : g->nodes) all.push_back(handle(n.get()));
  return give(all, out, count);
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* out, size_t* count) {
  Lock lock;
  const Graph* g = emulation().graph(graph);
  if (!g) return set_last(cudaErrorInvalidValue);
  std::vector<cudaGraphNode_t> all;
  for (const auto& n : g->nodes)
    if (n->needs.empty()) all.push_back(handle(n.get()));
  return give(all, out, count);
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* edges, size_t* count) {
  Lock lock;
  const Graph* g = emulation().graph(graph);
  if (!g || !count) return set_last(cudaErrorInvalidValue);
  std::vector<cudaGraphNode_t> starts, ends;
  for (const auto& n : g->nodes)
    for (const Node* need : n->needs) {
      starts.push_back(handle(need));
      ends.push_back(handle(n.get()));
    }
  size_t same = *count;
  if (edges) std::memset(edges, 0, std::min(same, starts.size()) * sizeof *edges);
  give(starts, from, &same);
  return give(ends, to, count);
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* out,
                                         cudaGraphEdgeData* edges, size_t* count) {
  Lock lock;
  const Node* n = emulation().node(node);
  if (!n || !count) return set_last(cudaErrorInvalidValue);
  std::vector<cudaGraphNode_t> all;
  for (const Node* need : n->needs) all.push_back(handle(need));
  if (edges) std::memset(edges, 0, std::min(*count, all.size()) * sizeof *edges);
  return give(all, out, count);
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* out,
                                           cudaGraphEdgeData* edges, size_t* count) {
  Lock lock;
  const Node* n = emulation().node(node);
  if (!n || !count) return set_last(cudaErrorInvalidValue);
  std::vector<cudaGraphNode_t> all;
  for (const auto& other : n->graph->nodes)
    if (std::find(other->needs.begin(), other->needs.end(), n) != other->needs.end())
      all.push_back(handle(other.get()));
  if (edges) std::memset(edges, 0, std::min(*count, all.size()) * sizeof *edges);
  return give(all, out, count);
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  Lock lock;
  const Node* n = emulation().node(node);
  if (!n || !type) return set_last(cudaErrorInvalidValue);
  return *type = type_of(*n), cudaSuccess;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* out) {
  Lock lock;
  auto* op = operation_of<KernelOp>(node);
  if (!op || !out) return set_last(cudaErrorInvalidValue);
  *out = {};
  out->func = const_cast<void*>(op->function);
  out->gridDim = {op->grid[0], op->grid[1], op->grid[2]};
  out->blockDim = {op->block[0], op->block[1], op->block[2]};
  out->sharedMemBytes = op->dynamic_shared;
  op->arguments.clear();
  for (const wire::ParamSlot& slot : op->kernel->info->params)
    op->arguments.push_back(op->params.data() + slot.offset);
  out->kernelParams = op->arguments.data();
  return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t n, const cudaKernelNodeParams* p) {
  return set_params(n, p);
}
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                            const cudaLaunchAttributeValue* value) {
  Lock lock;
  auto* op = operation_of<KernelOp>(node);
  if (!op || !value) return set_last(cudaErrorInvalidValue);
  CUlaunchAttribute attribute = {};
  attribute.id = static_cast<CUlaunchAttributeID>(id);
  std::memcpy(&attribute.value, value, sizeof *value);
  LaunchCall call;
  if (const int status = apply_attributes(&attribute, 1, &call)) return set_last(status);
  op->cooperative |= call.cooperative;
  op->programmatic |= call.programmatic_serialization;
  if (call.cluster[0]) {
    op->explicit_cluster = true;
    std::copy(call.cluster, call.cluster + 3, op->cluster);
  }
  return cudaSuccess;
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* out) {
  Lock lock;
  const auto* op = operation_of<MemsetCall>(node);
  if (!op || !out) return set_last(cudaErrorInvalidValue);
  *out = {reinterpret_cast<void*>(op->dst), op->pitch, op->value, op->element_size,
          op->width / op->element_size,     op->height};
  return cudaSuccess;
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t n, const cudaMemsetParams* p) {
  return set_params(n, p);
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* out) {
  Lock lock;
  const auto* op = operation_of<HostOp>(node);
  if (!op || !out) return set_last(cudaErrorInvalidValue);
  return *out = {op->function, op->data}, cudaSuccess;
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t n, const cudaHostNodeParams* p) {
  return set_params(n, p);
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t n, const cudaMemcpy3DParms* p) {
  return set_params(n, p);
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* d, const void* s, size_t n,
                                           cudaMemcpyKind) {
  Lock lock;
  return set_last(replace(emulation().node(node), CopyCall::flat(number(d), number(s), n)));
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* out) {
  Lock lock;
  const auto* op = operation_of<ChildOp>(node);
  if (!op || !out) return set_last(cudaErrorInvalidValue);
  return *out = handle(emulation().adopt(op->graph)), cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t g, unsigned long long) {
  return instantiate(out, g);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t g, unsigned long long) {
  return instantiate(out, g);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* out, cudaGraph_t g,
                                           cudaGraphInstantiateParams* p) {
  const cudaError_t error = instantiate(out, g);
  if (p) p->result_out = error ? cudaGraphInstantiateError : cudaGraphInstantiateSuccess;
  return error;
}
cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t* out, cudaGraph_t g,
                                                cudaGraphInstantiateParams* p) {
  return cudaGraphInstantiateWithParams(out, g, p);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) {
  return set_last(emulation().destroy_exec(e));
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  Lock lock;
  GraphExec* e = emulation().exec(exec);
  return set_last(e ? emulation().launch_graph(e, stream) : cudaErrorInvalidValue);
}
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t e, cudaStream_t s) {
  return cudaGraphLaunch(e, s);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t) {
  Lock lock;
  return set_last(emulation().exec(exec) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t e, cudaStream_t s) {
  return cudaGraphUpload(e, s);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  Lock lock;
  GraphExec* e = emulation().exec(exec);
  const Graph* g = emulation().graph(graph);
  if (!e || !g || !info) return set_last(cudaErrorInvalidValue);
  return set_last(update(*e, *g, info));
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t n,
                                             const cudaKernelNodeParams* p) {
  return set_exec_params(e, n, p);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t n,
                                             const cudaMemcpy3DParms* p) {
  return set_exec_params(e, n, p);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t e, cudaGraphNode_t node, void* d,
                                               const void* s, size_t n, cudaMemcpyKind) {
  Lock lock;
  return set_last(replace(in_exec(e, node), CopyCall::flat(number(d), number(s), n)));
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t n,
                                             const cudaMemsetParams* p) {
  return set_exec_params(e, n, p);
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t n,
                                           const cudaHostNodeParams* p) {
  return set_exec_params(e, n, p);
}
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t e, cudaGraphNode_t node, unsigned enabled) {
  Lock lock;
  Node* n = in_exec(e, node);
  if (!n) return set_last(cudaErrorInvalidValue);
  return n->enabled = enabled != 0, cudaSuccess;
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t e, cudaGraphNode_t node, unsigned* enabled) {
  Lock lock;
  const Node* n = in_exec(e, node);
  if (!n || !enabled) return set_last(cudaErrorInvalidValue);
  return *enabled = n->enabled, cudaSuccess;
}

}  // extern "C"
