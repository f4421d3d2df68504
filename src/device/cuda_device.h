#pragma once
// A real GPU as a Device. Every replay runs in a worker process of its own (device/cuda/): a
// candidate that faults, hangs or corrupts its context takes nothing along. Buffers lie between
// guard zones at addresses that are new in each replay, inputs are hashed, shared memory holds NaN
// beforehand, module variables start as loaded.

#include <memory>

#include "device/cuda/worker_process.h"
#include "device/device.h"

namespace ptxbench::device {

struct CudaOptions {
  cuda::WorkerOptions worker;
  // Assemble the plan's PTX on the card even where the plan has machine code: for plans whose
  // machine code came from elsewhere and need not belong to their PTX.
  bool from_ptx = true;
  bool count_instructions = true;  // a second replay, of the instrumented plan
  int repeats = 2;                 // replays of the same inputs, outputs compared bit for bit
  double launch_s = 10;            // a replay that takes longer hangs
  // Workers stay, each with its plan loaded, and no guards are looked at: for this project's own
  // kernels.
  bool keep_workers = false;
};

class CudaDevice : public Device {
 public:
  // Opens the device once, runs a self-test. Errors: "no-driver", "no-device", "gpu-lost",
  // "wrong-architecture".
  static Result<std::unique_ptr<CudaDevice>> open(CudaOptions options);

  std::string name() const override;  // "cuda:0 NVIDIA H200"
  // Error "unsupported" for a plan of another architecture and for ghost replays; "out-of-memory",
  // "gpu-lost", "infrastructure" as they come. Of the options, `wall_budget_s` and `ghost` count.
  Result<plan::RunResult> replay(const plan::LaunchPlan& plan, std::span<const Binding> arguments,
                                 const plan::RunOptions& options) override;

  const cuda::DeviceInfo& info() const { return info_; }
  const CudaOptions& options() const { return options_; }
  double empty_launch_ms() const { return empty_launch_ms_; }
  const std::vector<cuda::KernelInfo>& kernels() const { return kernels_; }  // of the last replay
  // The machine code of the last replay, by module; without counting, and where the driver does not
  // give it, empty.
  const std::vector<std::vector<uint8_t>>& images() const { return images_; }
  uint32_t differing_maps() const { return differing_maps_; }            // likewise
  const std::string& map_difference() const { return map_difference_; }  // of the first

 private:
  explicit CudaDevice(CudaOptions options) : options_(std::move(options)) {}
  Result<void> self_test();
  Result<plan::RunResult> run_once(const plan::LaunchPlan& plan, std::span<const Binding> arguments,
                                   double seconds, bool from_ptx, int repeats);
  Result<void> count(const plan::LaunchPlan& plan, std::span<const Binding> arguments,
                     double seconds, plan::RunResult* result);
  Result<void> stopped(const cuda::Failure& failure, const plan::LaunchPlan& plan,
                       plan::RunResult* result);

  struct Kept {
    std::vector<uint8_t> plan;
    std::unique_ptr<cuda::Worker> worker;
  };
  Result<cuda::Worker*> kept_worker(const plan::LaunchPlan& plan);
  Result<plan::RunResult> replay_kept(const plan::LaunchPlan& plan,
                                      std::span<const Binding> arguments, double seconds);

  CudaOptions options_;
  std::vector<Kept> kept_;
  cuda::DeviceInfo info_;
  double empty_launch_ms_ = 0;
  std::vector<cuda::KernelInfo> kernels_;
  std::vector<std::vector<uint8_t>> images_;
  uint32_t differing_maps_ = 0;
  std::string map_difference_;
  std::vector<std::vector<uint8_t>> results_;  // of the last replay, by argument
};

// What the worker's checks after a replay mean, as findings.
std::vector<plan::Finding> findings_of(const cuda::Checked& checked, const plan::LaunchPlan& plan);

}  // namespace ptxbench::device
