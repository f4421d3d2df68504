#pragma once
// The backend that executes nothing and writes everything down.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cudart/lib/backend.h"

namespace ptxbench::cudart {

class RecordBackend final : public Backend {
 public:
  // Opens the recording file; false if that fails.
  bool start(const wire::Request& request, uint64_t* addresses);
  void finish(wire::Finish how, const char* kind, const char* message);
  void touched(uint64_t address);

  const DeviceProfile& profile() const override { return profile_; }
  void** register_module(const void* fatbin) override;
  void unregister_module(void**) override {}
  void register_function(void** module, const void* host, const char* device_name) override;
  void register_symbol(void** module, const void* host, const char* device_name,
                       uint64_t bytes) override;
  void register_managed(void** module, void** host, const char* device_name,
                        uint64_t bytes) override;
  void init_module(void**) override {}
  Kernel* kernel(const void* host_or_handle) override;
  Kernel* kernel_named(const char* name) override;
  bool symbol(const void* host, uint64_t* address, uint64_t* bytes) override;
  int launch(const LaunchCall& call) override;
  int allocate(uint64_t bytes, uint64_t* address) override;
  int release(uint64_t address) override;
  bool is_device(uint64_t address) const override;
  bool is_host(uint64_t address) const override { return !is_device(address); }
  bool find(uint64_t address, uint64_t* base, uint64_t* bytes) const override;
  uint64_t allocated_bytes() const override { return scratch_bytes_; }
  void* allocate_host(uint64_t bytes) override;
  int release_host(void* memory) override;
  int register_host(void*, uint64_t) override { return kSuccess; }
  int unregister_host(void*) override { return kSuccess; }
  int memset(const MemsetCall& call) override;
  int copy(const CopyCall& call) override;
  int synchronize() override { return kSuccess; }
  int encode_tensor_map(const plan::TensorMapArgs& args, void* out) override;
  const void* create_stream() override;
  int unsupported(const char* what) override;
  int refuse(int status, const char* why) override;

 private:
  struct Allocation {
    uint64_t bytes = 0;
    wire::BufferKind kind = wire::BufferKind::scratch;
    const wire::ArgumentInfo* argument = nullptr;
    bool written = false;  // by a step of the plan
    bool freed = false;
  };
  struct Symbol {
    std::string name;
    uint64_t address = 0, bytes = 0;
  };

  uint64_t place(uint64_t bytes);
  Allocation* containing(uint64_t address, uint64_t* base = nullptr);
  void emit(wire::Kind kind, const wire::Writer& payload);
  void emit_buffer(wire::BufferKind kind, uint32_t argument, const std::string& name,
                   uint64_t address, uint64_t bytes);
  int check_target();
  int memset_row(uint64_t dst, uint32_t value, uint32_t element_size, uint64_t bytes);
  int copy_row(uint64_t dst, uint64_t src, uint64_t bytes);
  int read_back(uint64_t dst, uint64_t src, uint64_t bytes);
  int check_range(uint64_t address, uint64_t bytes, const char* what);
  uint32_t stream_number(const void* stream) const;

  const wire::Request* request_ = nullptr;
  DeviceProfile profile_ = kProfiles[1];
  int fd_ = -1;
  uint64_t written_ = 0;  // bytes of the recording
  uint64_t next_ = 0;     // next fake address
  uint64_t scratch_bytes_ = 0;
  uint32_t maps_ = 0;
  bool launched_ = false;
  std::map<uint64_t, Allocation> allocations_;
  std::map<const void*, Symbol> symbols_;
  std::map<std::string, uint64_t> symbol_addresses_;
  std::unordered_map<const void*, Kernel*> by_host_;
  std::map<std::string, std::unique_ptr<Kernel>> kernels_;
  std::vector<const void*> streams_;
  mutable std::recursive_mutex mutex_;
};

}  // namespace ptxbench::cudart
