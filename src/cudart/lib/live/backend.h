#pragma once
// The backend that emulates at once: kernels run through src/emu in this process, when they are
// launched. Streams keep their order because nothing is ever left undone.

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "cudart/emulation_report.h"
#include "cudart/lib/backend.h"
#include "cudart/lib/live/objects.h"
#include "emu/emulator.h"

struct cudaMemcpy3DParms;

namespace ptxbench::cudart::live {

struct Module;

struct LiveKernel : Kernel {
  Module* module = nullptr;
  wire::KernelInfo own_info;
  std::string own_name;
};

struct Variable {
  uint64_t address = 0, bytes = 0;
};

struct Module {
  const void* fatbin = nullptr;  // registered by host code; null: loaded by a call
  bool loaded = false;
  int status = kSuccess;  // why it could not be loaded
  uint32_t handle = 0;    // the emulator's
  std::string target;
  std::map<std::string, std::unique_ptr<LiveKernel>> kernels;
  std::map<std::string, Variable> variables;
  std::map<void**, std::string> managed;  // host variables that hold an address
};

// A recursive mutex that can be left altogether for a while.
class ApiMutex {
 public:
  void lock() { mutex_.lock(), ++depth_; }
  void unlock() { --depth_, mutex_.unlock(); }
  int leave() {
    const int depth = depth_;
    for (int i = 0; i < depth; ++i) unlock();
    return depth;
  }
  void enter(int depth) {
    for (int i = 0; i < depth; ++i) lock();
  }

 private:
  std::recursive_mutex mutex_;
  int depth_ = 0;
};

class LiveBackend final : public Backend {
 public:
  LiveBackend();

  const DeviceProfile& profile() const override { return profile_; }
  void** register_module(const void* fatbin) override;
  void unregister_module(void** module) override;
  void register_function(void** module, const void* host, const char* device_name) override;
  void register_symbol(void** module, const void* host, const char* device_name,
                       uint64_t bytes) override;
  void register_managed(void** module, void** host, const char* device_name,
                        uint64_t bytes) override;
  void init_module(void** module) override;
  Kernel* kernel(const void* host_or_handle) override;
  Kernel* kernel_named(const char* name) override;
  bool symbol(const void* host, uint64_t* address, uint64_t* bytes) override;
  int launch(const LaunchCall& call) override;
  int allocate(uint64_t bytes, uint64_t* address) override;
  int release(uint64_t address) override;
  bool is_device(uint64_t address) const override;
  bool is_host(uint64_t address) const override;
  bool find(uint64_t address, uint64_t* base, uint64_t* bytes) const override;
  uint64_t allocated_bytes() const override;
  void* allocate_host(uint64_t bytes) override;
  int release_host(void* memory) override;
  int register_host(void* memory, uint64_t bytes) override;
  int unregister_host(void* memory) override;
  int memset(const MemsetCall& call) override;
  int copy(const CopyCall& call) override;
  int synchronize() override;
  int encode_tensor_map(const plan::TensorMapArgs& args, void* out) override;
  const void* create_stream() override;
  int unsupported(const char* what) override;
  int refuse(int status, const char* why) override;

  // ---------------------------------------------------------------- beyond the seam: modules.cc
  // A fat binary (with or without its wrapper), PTX text or a cubin in memory; the texts end where
  // they say. On failure *why is for people.
  int load_module(const void* image, Module** out, std::string* why);
  int load_module_bytes(std::span<const uint8_t> bytes, Module** out, std::string* why);
  int unload_module(Module* module);
  bool is_module(const void* handle) const { return owned_modules_.count(handle) > 0; }
  bool ensure_loaded(Module& module);
  LiveKernel* kernel_in(Module& module, const std::string& name);
  Variable* variable_in(Module& module, const std::string& name);

  // ---------------------------------------------------------------- memory.cc
  int allocate_managed(uint64_t bytes, uint64_t* address);
  int set_heap_size(uint64_t bytes);
  uint64_t heap_size() { return emulator_.heap().size(); }
  uint64_t emulated_bytes() { return emulator_.memory().owned_bytes(); }
  int memory_type(uint64_t address);  // cudaMemoryType
  // Where an address leads: host bytes behind it, null if the range is not inside one allocation.
  // Host addresses that belong to no device memory are their own.
  uint8_t* bytes_at(uint64_t address, uint64_t bytes, bool write, bool* device);
  const emu::Allocation* allocation(uint64_t address) const;

  // ---------------------------------------------------------------- streams.cc
  // Performs an operation, or adds it to the graph that the stream captures.
  int submit(const void* stream, Operation op);
  int perform(const Operation& op);
  int prepare(const LaunchCall& call, KernelOp* out);
  Stream* stream(const void* handle);  // null: not a stream
  int destroy_stream(const void* handle);
  Event* event(const void* handle);
  Event* create_event(unsigned flags);
  int destroy_event(const void* handle);
  int record_event(Event* event, const void* stream);
  int wait_event(const void* stream, Event* event);
  int synchronize_stream(const void* stream);
  // Calls that must not happen while some capture of this thread (or any thread) is under way.
  int unsafe_in_capture();
  int status() const { return sticky_; }

  // ---------------------------------------------------------------- capture.cc
  int begin_capture(const void* stream, int mode, Graph* into, std::vector<Node*> needs);
  int end_capture(const void* stream, Graph** out);

  // ---------------------------------------------------------------- graphs.cc
  Graph* create_graph();
  Graph* adopt(std::shared_ptr<Graph> graph);
  Graph* graph(const void* handle);
  std::shared_ptr<Graph> shared_graph(const void* handle);
  Node* node(const void* handle);
  GraphExec* exec(const void* handle);
  int destroy_graph(const void* handle);
  int instantiate(Graph* graph, GraphExec** out);
  int destroy_exec(const void* handle);
  int launch_graph(GraphExec* exec, const void* stream);

  ApiMutex& mutex() { return mutex_; }
  EmulationReport& report() { return report_; }

 private:
  friend void print_at_exit();
  int load_into(Module& module, std::span<const uint8_t> bytes, std::string* why);
  int execute(const KernelOp& op);
  int execute(const CopyCall& call);
  int execute(const MemsetCall& call);
  int execute(const HostOp& op);
  int settle(const KernelOp& op, const plan::RunResult& result);

  DeviceProfile profile_;
  plan::RunOptions options_;
  emu::Emulator emulator_;
  EmulationReport report_;
  int sticky_ = kSuccess;
  uint64_t next_id_ = 1;

  std::vector<std::unique_ptr<Module>> registered_;
  std::map<const void*, std::unique_ptr<Module>> owned_modules_;
  struct HostName {
    Module* module = nullptr;
    std::string name;
  };
  std::unordered_map<const void*, HostName> host_functions_, host_symbols_;
  std::unordered_map<const void*, Kernel*> kernel_of_host_;
  std::set<const void*> kernel_handles_;
  std::set<uint64_t> user_allocations_, host_allocations_;

  Stream legacy_;
  std::map<const void*, std::unique_ptr<Stream>> streams_;
  std::map<const void*, std::unique_ptr<Event>> events_;
  std::vector<std::weak_ptr<Capture>> captures_;
  std::map<const void*, std::shared_ptr<Graph>> graphs_;
  std::map<const void*, std::unique_ptr<GraphExec>> execs_;
  mutable ApiMutex mutex_;
};

// The process's one; the same object as ptxbench_backend().
LiveBackend& emulation();

// A box copy as the runtime describes it (runtime_memory.cc).
int copy_of(const cudaMemcpy3DParms* p, CopyCall* out);

class Lock {
 public:
  Lock() { emulation().mutex().lock(); }
  ~Lock() { emulation().mutex().unlock(); }
  Lock(const Lock&) = delete;
};

}  // namespace ptxbench::cudart::live
