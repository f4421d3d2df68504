#include "bench/gpu/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/stopwatch.h"

namespace ptxbench::bench {
namespace {

using device::cuda::Timing;
using device::cuda::Worker;

constexpr uint32_t kWarmSet = 1000;

class WorkerContestant : public Contestant {
 public:
  WorkerContestant(std::unique_ptr<Worker> worker, plan::LaunchPlan plan, double launch_s)
      : worker_(std::move(worker)), plan_(std::move(plan)), launch_s_(launch_s) {}

  Result<void> upload(uint32_t set, std::span<const device::Binding> arguments) override {
    for (uint32_t i = 0; i < arguments.size(); ++i)
      PB_RETURN_IF_ERROR(worker_->upload(set, i, arguments[i].bytes, arguments[i].read_only));
    return {};
  }
  Result<void> clone(uint32_t set, uint32_t from) override { return worker_->clone(set, from); }
  Result<double> run(uint32_t set, Timing timing) override {
    const bool timed = timing != Timing::none;
    PB_ASSIGN_OR_RETURN(const device::cuda::Ran ran,
                        worker_->run({set, timing, timed, timed}, launch_s_));
    if (ran.failure)
      return Error{device::cuda::is_fault(ran.failure.code) ? "candidate" : "gpu-fault",
                   ran.failure.what};
    return ran.ms;
  }
  Result<std::vector<plan::Finding>> check(uint32_t set) override {
    PB_ASSIGN_OR_RETURN(const device::cuda::Checked checked, worker_->check(set));
    return device::findings_of(checked, plan_);
  }
  Result<void> download(uint32_t set, uint32_t argument, std::span<uint8_t> bytes) override {
    return worker_->download(set, argument, bytes);
  }
  Result<void> release(uint32_t set) override { return worker_->release(set); }
  std::string description() override {
    auto described = worker_->describe();
    return described.ok() ? described->description : "";
  }

 private:
  std::unique_ptr<Worker> worker_;
  plan::LaunchPlan plan_;
  double launch_s_;
};

}  // namespace

Result<std::unique_ptr<Contestant>> make_contestant(const device::CudaOptions& options,
                                                    const plan::LaunchPlan& plan, double launch_s) {
  PB_ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, Worker::start(options.worker));
  PB_ASSIGN_OR_RETURN(const device::cuda::Loaded loaded, worker->load(plan, options.from_ptx));
  if (loaded.failure) return Error{"candidate", loaded.failure.what};
  return std::unique_ptr<Contestant>(new WorkerContestant(std::move(worker), plan, launch_s));
}

Result<std::unique_ptr<Contestant>> make_contestant(const device::CudaOptions& options,
                                                    const device::cuda::LoadLibrary& library,
                                                    double launch_s) {
  PB_ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, Worker::start(options.worker));
  PB_ASSIGN_OR_RETURN(const device::cuda::Loaded loaded, worker->load(library));
  static_cast<void>(loaded);
  return std::unique_ptr<Contestant>(
      new WorkerContestant(std::move(worker), plan::LaunchPlan(), launch_s));
}

TimingDevice::TimingDevice(std::string name, Contestant& first, Contestant* second,
                           TimingOptions options, const std::string& bus_id)
    : name_(std::move(name)), first_(first), second_(second), options_(options), clocks_(bus_id) {}

void TimingDevice::sample() {
  const device::cuda::ClockSample now = clocks_.sample();
  if (!sampled_) low = high = now;
  sampled_ = true;
  low.sm_mhz = std::min(low.sm_mhz, now.sm_mhz);
  high.sm_mhz = std::max(high.sm_mhz, now.sm_mhz);
  high.memory_mhz = std::max(high.memory_mhz, now.memory_mhz);
  high.watts = std::max(high.watts, now.watts);
  high.throttle_reasons |= now.throttle_reasons;
}

// Both programs by turns, on buffers that are never timed.
Result<void> TimingDevice::warm() {
  Stopwatch watch;
  do {
    for (Contestant* c : {&first_, second_})
      if (c != nullptr) {
        if (auto ran = run(*c, kWarmSet, Timing::none); !ran.ok()) return ran.error();
      }
  } while (watch.ms() < options_.warm_ms);
  return {};
}

Result<void> TimingDevice::time_pair(uint32_t set, bool first_leads) {
  for (const bool first : {first_leads, !first_leads}) {
    if (!first && second_ == nullptr) continue;
    Contestant& contestant = first ? first_ : *second_;
    PB_ASSIGN_OR_RETURN(const double ms, run(contestant, set, Timing::kernel));
    (first ? first_ms : second_ms).push_back(ms);
    sample();
  }
  return {};
}

// A candidate may fault or hang only now: its doing, like any wrong result. Whatever else fails is
// the machine's or the library's.
Result<plan::RunResult> TimingDevice::replay(const plan::LaunchPlan&,
                                             std::span<const device::Binding> arguments,
                                             const plan::RunOptions&) {
  auto result = time_group(arguments);
  if (result.ok() || failing_ != &first_) return result;
  const Error& error = result.error();
  plan::RunResult stopped;
  stopped.message = error.message;
  if (error.kind == "timeout") {
    stopped.status = plan::RunStatus::wall_budget;
  } else if (error.kind == "candidate") {
    stopped.status = plan::RunStatus::fault;
    plan::Finding fault;
    fault.kind = "memory-fault";
    fault.message = error.message;
    stopped.findings.push_back(std::move(fault));
  } else {
    return result;
  }
  return stopped;
}

Result<double> TimingDevice::run(Contestant& contestant, uint32_t set, Timing timing) {
  auto ms = contestant.run(set, timing);
  if (!ms.ok()) failing_ = &contestant;
  return ms;
}

Result<plan::RunResult> TimingDevice::time_group(std::span<const device::Binding> arguments) {
  const auto launches = static_cast<uint32_t>(options_.launches);
  const uint32_t sets = launches + 1;  // one more for the time end to end
  std::vector<Contestant*> both = {&first_};
  if (second_ != nullptr) both.push_back(second_);
  for (Contestant* c : both) {
    PB_RETURN_IF_ERROR(c->upload(0, arguments));
    if (!warmed_) PB_RETURN_IF_ERROR(c->clone(kWarmSet, 0));
    for (uint32_t set = 1; set < sets; ++set) PB_RETURN_IF_ERROR(c->clone(set, 0));
  }
  // The first timed run of a library tries its algorithms: not one of those that count.
  if (!warmed_) {
    for (Contestant* c : both) {
      PB_ASSIGN_OR_RETURN(const double ms, run(*c, kWarmSet, Timing::kernel));
      static_cast<void>(ms);
    }
  }
  warmed_ = true;
  PB_RETURN_IF_ERROR(warm());
  for (uint32_t set = 0; set < launches; ++set) PB_RETURN_IF_ERROR(time_pair(set, set % 2 == 0));
  for (Contestant* c : both) {
    PB_ASSIGN_OR_RETURN(const double ms, run(*c, launches, Timing::end_to_end));
    (c == &first_ ? first_host_ms : second_host_ms).push_back(ms);
  }

  plan::RunResult result;
  others.clear();
  Outputs handed_back;
  for (uint32_t set = 0; set < sets; ++set) {
    PB_ASSIGN_OR_RETURN(const std::vector<plan::Finding> findings, first_.check(set));
    for (const plan::Finding& f : findings)
      if (set == 0 || f.hazard == plan::HazardClass::fatal) result.findings.push_back(f);
    Outputs outputs;
    for (uint32_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].read_only) continue;
      outputs[i].resize(arguments[i].bytes.size());
      PB_RETURN_IF_ERROR(first_.download(set, i, outputs[i]));
    }
    if (set == 0) {
      for (const auto& [i, bytes] : outputs)
        std::copy(bytes.begin(), bytes.end(), arguments[i].bytes.begin());
      handed_back = std::move(outputs);
    } else if (outputs == handed_back) {
      ++equal;
    } else {
      others.push_back(std::move(outputs));
    }
  }
  if (second_ != nullptr)
    for (const auto& [i, bytes] : handed_back) {
      second_outputs[i].resize(bytes.size());
      PB_RETURN_IF_ERROR(second_->download(0, i, second_outputs[i]));
    }
  for (Contestant* c : both)
    for (uint32_t set = 0; set < sets; ++set) PB_RETURN_IF_ERROR(c->release(set));
  return result;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half),
                   values.end());
  const double upper = values[half];
  if (values.size() % 2 == 1) return upper;
  return (upper +
          *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half))) /
         2;
}

RatioInterval ratio_of_medians(const std::vector<double>& first,
                               const std::vector<double>& second) {
  RatioInterval out;
  const size_t pairs = std::min(first.size(), second.size());
  if (pairs == 0) return out;
  out.ratio = median(second) / median(first);
  constexpr size_t kResamplings = 4000;
  std::mt19937_64 random(20261130);
  std::vector<double> ratios, a(pairs), b(pairs);
  for (size_t r = 0; r < kResamplings; ++r) {
    for (size_t i = 0; i < pairs; ++i) {
      const size_t pick = random() % pairs;
      a[i] = first[pick], b[i] = second[pick];
    }
    ratios.push_back(median(b) / median(a));
  }
  std::sort(ratios.begin(), ratios.end());
  out.low = ratios[kResamplings * 25 / 1000];
  out.high = ratios[kResamplings * 975 / 1000 - 1];
  return out;
}

double roofline_ms(const device::cuda::DeviceInfo& info, double flop, const std::string& type,
                   double bytes) {
  // Dense FLOP per SM and clock of the tensor cores of sm_90 ("NVIDIA H100 Tensor Core GPU
  // Architecture", table of peak rates): 1024 bf16 multiply-adds on four tensor cores, twice.
  double per_clock = 0;
  if (info.cc_major == 9) {
    if (type.starts_with("bf16") || type.starts_with("f16")) per_clock = 4096;
    if (type.starts_with("e4m3") || type.starts_with("e5m2")) per_clock = 8192;
    if (type.starts_with("tf32")) per_clock = 2048;
  }
  const double rate = per_clock * info.sm_count * info.clock_khz * 1e3;
  // Two transfers per clock and line.
  const double bandwidth = 2.0 * info.memory_clock_khz * 1e3 * info.bus_bits / 8;
  double ms = 0;
  if (rate > 0) ms = std::max(ms, 1e3 * flop / rate);
  if (bandwidth > 0) ms = std::max(ms, 1e3 * bytes / bandwidth);
  return ms;
}

}  // namespace ptxbench::bench
