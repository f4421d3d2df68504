#pragma once
// What the handles of the live runtime stand for: streams, events, graphs and the operations that
// streams perform and graphs hold.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <variant>
#include <vector>

#include "cudart/lib/backend.h"

namespace ptxbench::cudart::live {

using Clock = std::chrono::steady_clock;

struct Event;
struct Graph;
struct Node;
struct Stream;

struct KernelOp {
  Kernel* kernel = nullptr;
  const void* function = nullptr;  // as the caller named it
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, cluster[3] = {1, 1, 1};
  bool explicit_cluster = false, cooperative = false, programmatic = false;
  uint32_t dynamic_shared = 0;
  std::vector<uint8_t> params;   // the .param block
  std::vector<void*> arguments;  // into params, made when host code asks for them
};
struct HostOp {
  void (*function)(void*) = nullptr;
  void* data = nullptr;
};
struct EventOp {
  Event* event = nullptr;
  bool wait = false;  // else record
};
// Memory that a graph allocates exists from the node's creation to the end of the process's use of
// the graph; the nodes only stand for it.
struct MemoryOp {
  uint64_t address = 0, bytes = 0;
  bool release = false;
};
struct ChildOp {
  std::shared_ptr<Graph> graph;
};
struct EmptyOp {};

using Operation =
    std::variant<EmptyOp, KernelOp, CopyCall, MemsetCall, HostOp, EventOp, MemoryOp, ChildOp>;

struct Node {
  Operation op;
  std::vector<Node*> needs;
  Graph* graph = nullptr;
  Node* origin = nullptr;  // in the graph that this one's graph was cloned from
  bool enabled = true;
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;  // in order of creation

  Node* add(Operation op, std::vector<Node*> needs);
  std::shared_ptr<Graph> clone() const;
  // Every node after those it needs, otherwise in order of creation; false: there is a cycle.
  bool order(std::vector<Node*>* out) const;
};

struct GraphExec {
  std::shared_ptr<Graph> graph;  // a clone
  std::vector<Node*> order;
};

// A stream capture that is under way.
struct Capture {
  Graph* graph = nullptr;
  bool owns_graph = true;
  int mode = 0;  // cudaStreamCaptureMode
  uint64_t id = 0;
  Stream* origin = nullptr;
  std::vector<Stream*> streams;  // origin and those that joined
  std::thread::id thread;
  bool invalid = false;
};

struct Stream {
  uint64_t id = 0;
  unsigned flags = 0;
  int priority = 0;
  std::shared_ptr<Capture> capture;
  std::vector<Node*> frontier;  // what the next captured operation depends on
};

struct Event {
  unsigned flags = 0;
  bool recorded = false;
  Clock::time_point at;
  std::shared_ptr<Capture> capture;  // recorded last in a capture
  std::vector<Node*> frontier;
};

}  // namespace ptxbench::cudart::live
