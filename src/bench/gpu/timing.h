#pragma once
// Two programs timed against each other on one GPU, each in a process of its own, so that nothing
// but their work differs: the same inputs at new addresses for every launch, L2 evicted, shared
// memory full of NaN, A B B A by turns. Every timed output is kept for the comparison.

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "bench/performance.h"
#include "device/cuda/clocks.h"
#include "device/cuda_device.h"

namespace ptxbench::bench {

struct TimingOptions {
  int groups = 8;         // new inputs for each
  int launches = 4;       // of each program in a group; even, so that A B and B A are balanced
  double warm_ms = 30;    // of work before a group, so that clocks are where they settle
  double launch_s = 10;   // a launch that takes longer hangs
  bool emulated = false;  // also on an emulated driver: for tests, the times mean nothing
};

// One of the two. Sets are numbered; each holds all arguments.
class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual Result<void> upload(uint32_t set, std::span<const device::Binding> arguments) = 0;
  // A further set with the contents that `from` has now, at other addresses.
  virtual Result<void> clone(uint32_t set, uint32_t from) = 0;
  // Milliseconds of one run. Errors: "candidate" (its kernels fault), "timeout", the machine's.
  virtual Result<double> run(uint32_t set, device::cuda::Timing timing) = 0;
  virtual Result<std::vector<plan::Finding>> check(uint32_t set) = 0;
  virtual Result<void> download(uint32_t set, uint32_t argument, std::span<uint8_t> bytes) = 0;
  virtual Result<void> release(uint32_t set) = 0;
  virtual std::string description() = 0;
};

// Errors: those of the worker; "candidate" where the plan itself is refused.
Result<std::unique_ptr<Contestant>> make_contestant(const device::CudaOptions& options,
                                                    const plan::LaunchPlan& plan, double launch_s);
Result<std::unique_ptr<Contestant>> make_contestant(const device::CudaOptions& options,
                                                    const device::cuda::LoadLibrary& library,
                                                    double launch_s);

// A Device whose replay() is one group of timed launches: outputs of the first are handed back for
// the comparison, outputs that differ from it are kept in `others`.
class TimingDevice : public device::Device {
 public:
  TimingDevice(std::string name, Contestant& first, Contestant* second, TimingOptions options,
               const std::string& bus_id);
  std::string name() const override { return name_; }
  Result<plan::RunResult> replay(const plan::LaunchPlan& plan,
                                 std::span<const device::Binding> arguments,
                                 const plan::RunOptions& options) override;

  using Outputs = std::map<uint32_t, std::vector<uint8_t>>;  // by argument
  std::vector<double> first_ms, second_ms;                   // pairs
  std::vector<double> first_host_ms, second_host_ms;         // end to end
  std::vector<Outputs> others;                               // of the last group
  Outputs second_outputs;                                    // of the last group's first launch
  uint64_t equal = 0;                   // timed outputs equal, bit for bit, to the one handed back
  device::cuda::ClockSample low, high;  // over all samples; throttle reasons in high

 private:
  Result<plan::RunResult> time_group(std::span<const device::Binding> arguments);
  Result<double> run(Contestant& contestant, uint32_t set, device::cuda::Timing timing);
  Result<void> warm();
  Result<void> time_pair(uint32_t set, bool first_leads);
  void sample();

  std::string name_;
  Contestant& first_;
  Contestant* second_;
  const Contestant* failing_ = nullptr;  // whose run gave the last error
  TimingOptions options_;
  device::cuda::Clocks clocks_;
  bool warmed_ = false, sampled_ = false;
};

double median(std::vector<double> values);

struct RatioInterval {
  double ratio = 0, low = 0, high = 0;
};
// Ratio of medians, second / first, with its 95 % interval from 4000 resamplings of the pairs.
RatioInterval ratio_of_medians(const std::vector<double>& first, const std::vector<double>& second);

// The least time of a workload on the card: compulsory bytes at the memory's peak rate, or
// `flop` at the peak rate of its tensor type ("bf16.bf16.f32") at the highest clock. 0 where the
// card's rates are not known.
double roofline_ms(const device::cuda::DeviceInfo& info, double flop, const std::string& type,
                   double bytes);

}  // namespace ptxbench::bench
