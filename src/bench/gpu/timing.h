#pragma once
// Two programs timed against each other on one GPU, each in a process of its own, so that nothing
// but their work differs: new contents at new addresses for every launch, L2 evicted, shared memory
// full of NaN, A B B A by turns. Contents are new because pieces of the tensors that do not know of
// each other (rows, heads) are moved on by a random number; right outputs move with them.

#include <map>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "base/result.h"
#include "bench/performance.h"
#include "device/cuda/clocks.h"
#include "device/cuda_device.h"

namespace ptxbench::bench {

struct TimingOptions {
  int launches = 25;         // of each program
  int end_to_end_every = 5;  // the last of so many is timed by the host's clock; 0: none
  double warm_ms = 30;       // of work before a pair, so that clocks are where they settle
  double launch_s = 10;      // a launch that takes longer hangs
  bool emulated = false;     // also on an emulated driver: for tests, the times mean nothing
  // Which contents can be moved: the number of pieces, and by argument the bytes of one (0: this
  // one stays). No pieces: all launches have the same contents.
  uint64_t pieces = 0;
  std::vector<uint64_t> piece_bytes;
};

// One of the two. Sets are numbered; each holds all arguments.
class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual Result<void> upload(uint32_t set, std::span<const device::Binding> arguments) = 0;
  // A further set with the contents that another has now, moved, at other addresses.
  virtual Result<void> clone(const device::cuda::Clone& clone) = 0;
  // Whether outputs of `clone.set` are those of `clone.from`, moved, bit for bit.
  virtual Result<bool> equal(const device::cuda::Clone& clone) = 0;
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

// A Device whose replay() is all timed launches. Handed back is the output of an untimed run on the
// contents as they are; timed outputs that are not that one, moved, are kept in `others`.
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
  std::vector<Outputs> others;                               // moved back
  uint64_t equal = 0;                   // timed outputs equal, bit for bit, to the one handed back
  device::cuda::ClockSample low, high;  // over all samples; throttle reasons in high

 private:
  Result<plan::RunResult> time_all(std::span<const device::Binding> arguments);
  Result<void> prepare(std::span<const device::Binding> arguments);
  Result<void> warm();
  Result<void> time_one(int launch, std::span<const device::Binding> arguments,
                        std::vector<plan::Finding>& findings);
  Result<void> time_pair(device::cuda::Timing timing);
  Result<void> keep_outputs(const device::cuda::Clone& clone,
                            std::span<const device::Binding> arguments);
  Result<double> run(Contestant& contestant, uint32_t set, device::cuda::Timing timing);
  device::cuda::Clone moved(uint32_t set, std::span<const device::Binding> arguments);
  void sample();

  std::string name_;
  Contestant& first_;
  Contestant* second_;
  const Contestant* failing_ = nullptr;  // whose run gave the last error
  TimingOptions options_;
  device::cuda::Clocks clocks_;
  bool sampled_ = false;
  std::mt19937_64 random_{std::random_device{}()};
};

// Hands back outputs that came about elsewhere.
class FixedOutputs : public device::Device {
 public:
  FixedOutputs(std::string name, const TimingDevice::Outputs& outputs)
      : name_(std::move(name)), outputs_(outputs) {}
  std::string name() const override { return name_; }
  Result<plan::RunResult> replay(const plan::LaunchPlan& plan,
                                 std::span<const device::Binding> arguments,
                                 const plan::RunOptions& options) override;

 private:
  std::string name_;
  const TimingDevice::Outputs& outputs_;
};

// One contestant alone, untimed: whether a baseline computes what the task asks for.
class ContestantDevice : public device::Device {
 public:
  ContestantDevice(std::string name, Contestant& contestant)
      : name_(std::move(name)), contestant_(contestant) {}
  std::string name() const override { return name_; }
  Result<plan::RunResult> replay(const plan::LaunchPlan& plan,
                                 std::span<const device::Binding> arguments,
                                 const plan::RunOptions& options) override;

 private:
  std::string name_;
  Contestant& contestant_;
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
