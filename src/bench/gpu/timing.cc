#include "bench/gpu/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/stopwatch.h"

namespace ptxbench::bench {
namespace {

using device::cuda::Timing;
using device::cuda::Worker;

constexpr uint32_t kBase = 0, kTimed = 1, kWarm = 2;  // sets of buffers

class WorkerContestant : public Contestant {
 public:
  WorkerContestant(std::unique_ptr<Worker> worker, plan::LaunchPlan plan, double launch_s)
      : worker_(std::move(worker)), plan_(std::move(plan)), launch_s_(launch_s) {}

  Result<void> upload(uint32_t set, std::span<const device::Binding> arguments) override {
    for (uint32_t i = 0; i < arguments.size(); ++i)
      PB_RETURN_IF_ERROR(worker_->upload(set, i, arguments[i].bytes, arguments[i].read_only));
    return {};
  }
  Result<void> clone(const device::cuda::Clone& clone) override { return worker_->clone(clone); }
  Result<bool> equal(const device::cuda::Clone& clone) override {
    PB_ASSIGN_OR_RETURN(const std::vector<uint64_t> differing, worker_->compare(clone));
    return std::all_of(differing.begin(), differing.end(), [](uint64_t n) { return n == 0; });
  }
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
        if (auto ran = run(*c, kWarm, Timing::none); !ran.ok()) return ran.error();
      }
  } while (watch.ms() < options_.warm_ms);
  return {};
}

Result<void> TimingDevice::time_pair(Timing timing) {
  const bool host = timing == Timing::end_to_end;
  std::vector<double>& firsts = host ? first_host_ms : first_ms;
  std::vector<double>& seconds = host ? second_host_ms : second_ms;
  const bool first_leads = firsts.size() % 2 == 0;
  for (const bool first : {first_leads, !first_leads}) {
    if (!first && second_ == nullptr) continue;
    PB_ASSIGN_OR_RETURN(const double ms, run(first ? first_ : *second_, kTimed, timing));
    (first ? firsts : seconds).push_back(ms);
    sample();
  }
  return {};
}

// A candidate may fault or hang only now: its doing, like any wrong result. Whatever else fails is
// the machine's or the library's.
Result<plan::RunResult> TimingDevice::replay(const plan::LaunchPlan&,
                                             std::span<const device::Binding> arguments,
                                             const plan::RunOptions&) {
  auto result = time_all(arguments);
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

// A set whose contents are those of the base, moved by a number of pieces that nobody can foresee.
device::cuda::Clone TimingDevice::moved(uint32_t set, std::span<const device::Binding> arguments) {
  device::cuda::Clone clone{set, kBase, {}};
  if (options_.pieces < 2) return clone;
  const uint64_t by = 1 + random_() % (options_.pieces - 1);
  for (uint32_t i = 0; i < arguments.size() && i < options_.piece_bytes.size(); ++i)
    clone.moves.push_back(by * options_.piece_bytes[i]);
  return clone;
}

// The first timed run of a library tries its algorithms: not one of those that count.
Result<void> TimingDevice::prepare(std::span<const device::Binding> arguments) {
  for (Contestant* c : {&first_, second_}) {
    if (c == nullptr) continue;
    PB_RETURN_IF_ERROR(c->upload(kBase, arguments));
    PB_RETURN_IF_ERROR(c->clone(moved(kWarm, arguments)));
    PB_ASSIGN_OR_RETURN(const double ms, run(*c, kWarm, Timing::kernel));
    static_cast<void>(ms);
  }
  return {};
}

Result<plan::RunResult> TimingDevice::time_all(std::span<const device::Binding> arguments) {
  PB_RETURN_IF_ERROR(prepare(arguments));
  plan::RunResult result;
  for (int launch = 0; launch < options_.launches; ++launch) {
    PB_RETURN_IF_ERROR(time_one(launch, arguments, result.findings));
    if (launch > 0) continue;
    for (uint32_t i = 0; i < arguments.size(); ++i)
      if (!arguments[i].read_only)
        PB_RETURN_IF_ERROR(first_.download(kBase, i, arguments[i].bytes));
  }
  for (Contestant* c : {&first_, second_})
    for (const uint32_t set : {kBase, kWarm})
      if (c != nullptr) PB_RETURN_IF_ERROR(c->release(set));
  return result;
}

// The first launch also runs the base, untimed, whose outputs all timed ones are compared with.
Result<void> TimingDevice::time_one(int launch, std::span<const device::Binding> arguments,
                                    std::vector<plan::Finding>& findings) {
  const int every = options_.end_to_end_every;
  const bool host = every > 0 && launch % every == every - 1;
  const device::cuda::Clone clone = moved(kTimed, arguments);
  for (Contestant* c : {&first_, second_}) {
    if (c != nullptr) PB_RETURN_IF_ERROR(c->clone(clone));
  }
  PB_RETURN_IF_ERROR(warm());
  PB_RETURN_IF_ERROR(time_pair(host ? Timing::end_to_end : Timing::kernel));
  if (launch == 0) {
    PB_ASSIGN_OR_RETURN(const double ms, run(first_, kBase, Timing::none));
    static_cast<void>(ms);
  }
  PB_ASSIGN_OR_RETURN(const std::vector<plan::Finding> found, first_.check(kTimed));
  for (const plan::Finding& f : found)
    if (launch == 0 || f.hazard == plan::HazardClass::fatal) findings.push_back(f);
  PB_ASSIGN_OR_RETURN(const bool same, first_.equal(clone));
  if (same)
    ++equal;
  else
    PB_RETURN_IF_ERROR(keep_outputs(clone, arguments));
  for (Contestant* c : {&first_, second_})
    if (c != nullptr) PB_RETURN_IF_ERROR(c->release(kTimed));
  return {};
}

Result<void> TimingDevice::keep_outputs(const device::cuda::Clone& clone,
                                        std::span<const device::Binding> arguments) {
  Outputs outputs;
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].read_only) continue;
    std::vector<uint8_t>& bytes = outputs[i];
    bytes.resize(arguments[i].bytes.size());
    PB_RETURN_IF_ERROR(first_.download(kTimed, i, bytes));
    if (i < clone.moves.size() && !bytes.empty())
      std::rotate(bytes.begin(),
                  bytes.begin() + static_cast<std::ptrdiff_t>(clone.moves[i] % bytes.size()),
                  bytes.end());
  }
  others.push_back(std::move(outputs));
  return {};
}

Result<plan::RunResult> FixedOutputs::replay(const plan::LaunchPlan&,
                                             std::span<const device::Binding> arguments,
                                             const plan::RunOptions&) {
  for (const auto& [i, bytes] : outputs_)
    std::copy(bytes.begin(), bytes.end(), arguments[i].bytes.begin());
  return plan::RunResult();
}

Result<plan::RunResult> ContestantDevice::replay(const plan::LaunchPlan&,
                                                 std::span<const device::Binding> arguments,
                                                 const plan::RunOptions&) {
  PB_RETURN_IF_ERROR(contestant_.upload(0, arguments));
  PB_ASSIGN_OR_RETURN(const double ms, contestant_.run(0, Timing::kernel));
  static_cast<void>(ms);
  for (uint32_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].read_only) PB_RETURN_IF_ERROR(contestant_.download(0, i, arguments[i].bytes));
  PB_RETURN_IF_ERROR(contestant_.release(0));
  return plan::RunResult();
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
