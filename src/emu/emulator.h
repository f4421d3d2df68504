#pragma once
// An emulated device: memory, modules, launches. The entry point of this room.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "emu/device_runtime.h"
#include "emu/global_memory.h"
#include "emu/kernel.h"
#include "plan/launch_plan.h"
#include "plan/run_result.h"

namespace ptxbench::emu {

struct DeviceProfile {
  std::string name = "h200";
  int sm_count = 132;
  uint32_t max_shared_per_cta = 232448;
  uint32_t shared_per_sm = 233472, threads_per_sm = 2048, ctas_per_sm = 32;
};
Result<DeviceProfile> find_profile(const std::string& name);  // h100, h200

// A launch with everything resolved to this device's addresses.
struct LaunchRequest {
  std::string kernel;
  plan::Dim3 grid, block, cluster;
  bool explicit_cluster = false, cooperative = false;
  uint32_t dynamic_shared = 0;
  std::vector<uint8_t> params;  // the .param block
};

class Emulator {
 public:
  explicit Emulator(DeviceProfile profile = {}) : profile_(std::move(profile)) {}

  GlobalMemory& memory() { return memory_; }
  DeviceHeap& heap() { return heap_; }

  // Parses the text (cached in the process by content), allocates and initialises the module's
  // variables. Returns a module handle. Errors: "ptx-syntax", "unsupported".
  Result<uint32_t> load_module(const std::string& ptx, const std::string& hash);
  // Releases the module's variables; its handle is not used again.
  void unload_module(uint32_t module);
  // Device address of a module's variable; "unknown-symbol".
  Result<uint64_t> symbol(uint32_t module, const std::string& name) const;

  // Runs the kernel to its end and adds what happened to `result` (findings, families, stats;
  // status and message if it did not complete). The error is the harness's own: "unsupported",
  // "unknown-kernel", "launch" (sizes that no device has).
  Result<void> launch(uint32_t module, const LaunchRequest& request,
                      const plan::RunOptions& options, plan::RunResult* result);

  // Instructions that the last launch executed, each once; they live as long as the emulator.
  const std::vector<const ptx::Instruction*>& executed() const { return executed_; }
  // What the last launch read and wrote in global memory.
  const std::vector<Touched>& touched() const { return touched_; }

 private:
  struct Loaded {
    std::shared_ptr<const ptx::Module> module;
    std::vector<uint64_t> addresses;  // by Module::variables
    std::unordered_map<std::string, std::shared_ptr<Kernel>> kernels;
  };
  Result<void> initialise(Loaded& loaded);

  DeviceProfile profile_;
  GlobalMemory memory_;
  DeviceHeap heap_{memory_};
  std::vector<Loaded> modules_;
  std::vector<Touched> touched_;
  std::vector<const ptx::Instruction*> executed_;
  uint64_t grid_workspace_ = 0;  // of cooperative launches; allocated at the first
  uint64_t launches_ = 0, instructions_ = 0;
};

}  // namespace ptxbench::emu
