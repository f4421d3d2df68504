#pragma once
// The judging process's end of a GPU worker: starts `ptxbench-gpu`, talks to it, kills it when it
// does not answer in time. One worker is one CUDA context; a candidate's fault ends it, never this
// process.

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "device/cuda/wire.h"
#include "plan/launch_plan.h"

namespace ptxbench::device::cuda {

struct WorkerOptions {
  std::filesystem::path program;  // empty: <build>/bin/ptxbench-gpu
  std::string driver;             // empty: the machine's libcuda.so.1
  int device = 0;
  double start_s = 60;  // to open the device
};

class Worker {
 public:
  // Errors: "no-driver", "no-device", "not-found" (no such program), "infrastructure".
  static Result<std::unique_ptr<Worker>> start(const WorkerOptions& options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const DeviceInfo& info() const { return info_; }

  // Assembles and places everything. What the candidate did wrong is in Loaded::failure.
  // `want_images`: the machine code comes back, too.
  Result<Loaded> load(const plan::LaunchPlan& plan, bool from_ptx, bool want_images = false);
  Result<Loaded> load(const LoadLibrary& library);
  // What the program is by now; of a library, the algorithm chosen.
  Result<Loaded> describe();
  Result<void> upload(uint32_t set, uint32_t argument, std::span<const uint8_t> bytes,
                      bool read_only);
  Result<void> fill(uint32_t set, uint32_t argument, uint64_t bytes, uint16_t pattern);
  // Further buffers with the contents that `from` has now, moved as Clone says.
  Result<void> clone(const Clone& clone);
  // Bytes by argument in which outputs of `clone.set` differ from those of `clone.from`.
  Result<std::vector<uint64_t>> compare(const Clone& clone);
  // Error "timeout" when `seconds` passed: the worker is dead then. Error "gpu-lost" when the
  // worker died by itself.
  Result<Ran> run(const Run& run, double seconds);
  Result<Checked> check(uint32_t set);
  Result<void> download(uint32_t set, uint32_t argument, std::span<uint8_t> bytes);
  Result<void> release(uint32_t set);
  Result<SelfTest> self_test();
  void kill();

 private:
  Worker() = default;
  Result<void> spawn(const WorkerOptions& options);
  Result<uint8_t*> arena(uint64_t bytes);
  Result<std::vector<uint8_t>> receive(double seconds);
  template <class Out, class In>
  Result<Out> ask(Op op, const In& in, double seconds = 300);

  pid_t child_ = -1;
  int socket_ = -1, arena_ = -1;
  uint8_t* mapped_ = nullptr;
  uint64_t mapped_bytes_ = 0;
  DeviceInfo info_;
};

// Whether the code is what a kernel can do to its context, rather than the machine's trouble.
bool is_fault(int32_t code);

}  // namespace ptxbench::device::cuda
