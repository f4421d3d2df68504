// The GPU path without a GPU: the fp64 kernel on the emulator, timing with programs of a few lines,
// and a whole evaluation against the project's emulated driver.
#include <gtest/gtest.h>

#include <deque>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "bench/gpu/evaluate_gpu.h"
#include "bench/gpu/measure.h"
#include "bench/gpu/reference.h"
#include "bench/op/operation.h"
#include "gemm_data.h"

namespace ptxbench::bench {
namespace {

namespace fs = std::filesystem;
using device::cuda::Timing;

std::vector<double> fp64(const std::vector<Tensor>& inputs, int64_t m, int64_t n, int64_t k) {
  const auto words = [](const Tensor& t) {
    return std::span<const uint16_t>(reinterpret_cast<const uint16_t*>(t.bytes.data()),
                                     t.bytes.size() / 2);
  };
  std::vector<double> c(static_cast<size_t>(m * n), NAN);
  auto done = gemm_fp64(words(inputs[0]), words(inputs[1]), m, n, k, 2,
                        [&](int64_t first, int64_t, std::span<const double> block) {
                          std::copy(block.begin(), block.end(), c.begin() + first * n);
                        });
  EXPECT_TRUE(done.ok()) << done.error().to_string();
  return c;
}

TEST(GpuReference, EqualsTheCpusAtRaggedSizes) {
  const int64_t m = 70, n = 96, k = 100;
  const AxisValues axes = {{"M", m}, {"N", n}, {"K", k}};
  const auto inputs = make_inputs(gemm_definition(), axes, Seed{1, 2}, 1).take();
  const std::vector<double> expected = fp64(inputs, m, n, k);
  auto emulator = device::make_emu_device("h200");
  std::vector<double> actual;
  {
    const ReferenceOnDevice on_device(*emulator);
    actual = fp64(inputs, m, n, k);
  }
  EXPECT_EQ(ReferenceOnDevice::current(), nullptr);
  double scale = 0;
  for (const double x : expected) scale = std::max(scale, std::abs(x));
  ASSERT_GT(scale, 1);
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], 1e-13 * scale) << i;
}

// All blocks of a reference, as one list of values and one of noise for each output.
struct Blocks {
  std::vector<std::vector<double>> values, noise;
};

Blocks reference_of(const Task& task, const AxisValues& axes) {
  const Operation* operation = operation_of(task.definition).take();
  const auto inputs =
      operation->inputs(task.definition, axes, Seed{3, 4}, 2, Distribution::mixed).take();
  Blocks blocks;
  blocks.values.resize(task.definition.outputs.size());
  blocks.noise.resize(task.definition.outputs.size());
  int64_t next[3] = {};
  auto done =
      operation->reference({task.definition, axes, inputs}, 2, [&](const ReferenceBlock& block) {
        EXPECT_EQ(block.first_row, next[block.output]) << "blocks arrive in order";
        next[block.output] += block.count;
        auto append = [](std::vector<double>& to, std::span<const double> from) {
          to.insert(to.end(), from.begin(), from.end());
        };
        append(blocks.values[block.output], block.values);
        append(blocks.noise[block.output], block.noise);
      });
  EXPECT_TRUE(done.ok()) << done.error().to_string();
  return blocks;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected,
                 double relative) {
  ASSERT_EQ(actual.size(), expected.size());
  double scale = 0;
  for (const double x : expected) scale = std::max(scale, std::abs(x));
  ASSERT_GT(scale, 0);
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], relative * (std::abs(expected[i]) + 1e-6 * scale)) << i;
}

// Backward inputs contain a forward pass: it runs on the device, too.
TEST(GpuReference, AttentionEqualsTheCpusAtRaggedSizes) {
  const TaskSuite suite = TaskSuite::open(fs::path(PTXBENCH_SOURCE_DIR) / "tasks").take();
  auto emulator = device::make_emu_device("h200");
  for (const char* name :
       {"mha_with_lse_d64", "mha_with_lse_d96_causal", "mha_bwd_d64", "mha_bwd_d96_causal"}) {
    SCOPED_TRACE(name);
    const Task task = suite.load(name).take();
    const AxisValues axes =
        resolve_axes(task.definition, nullptr, {{"B", 1}, {"H", 2}, {"S", 75}}).take();
    const Blocks expected = reference_of(task, axes);
    const ReferenceOnDevice on_device(*emulator);
    const Blocks actual = reference_of(task, axes);
    for (size_t i = 0; i < expected.values.size(); ++i) {
      SCOPED_TRACE(i);
      expect_near(actual.values[i], expected.values[i], 1e-9);
      expect_near(actual.noise[i], expected.noise[i], 1e-9);
    }
  }
}

TEST(GpuReference, Fp8EqualsTheCpus) {
  const TaskSuite suite = TaskSuite::open(fs::path(PTXBENCH_SOURCE_DIR) / "tasks").take();
  auto emulator = device::make_emu_device("h200");
  int tried = 0;
  for (const std::string& name : suite.names()) {
    const Task task = suite.load(name).take();
    const bool gemm = task.definition.op_type == "fp8_gemm";
    if (!gemm && task.definition.op_type != "fp8_mha") continue;
    // The first of each kind is enough.
    const bool new_kind =
        gemm ? name.find("k512") != std::string::npos : name.find("d64") != std::string::npos;
    if (!new_kind) continue;
    SCOPED_TRACE(name);
    ++tried;
    const AxisValues axes =
        gemm ? resolve_axes(task.definition, nullptr, {{"m", 70}, {"n", 192}, {"k", 256}}).take()
             : resolve_axes(task.definition, nullptr, {{"B", 1}, {"H", 2}, {"L", 75}}).take();
    const Blocks expected = reference_of(task, axes);
    const ReferenceOnDevice on_device(*emulator);
    const Blocks actual = reference_of(task, axes);
    for (size_t i = 0; i < expected.values.size(); ++i) {
      SCOPED_TRACE(i);
      expect_near(actual.values[i], expected.values[i], 1e-9);
      expect_near(actual.noise[i], expected.noise[i], 1e-9);
    }
  }
  EXPECT_EQ(tried, 4) << "two recipes of the GEMM, attention full and causal";
}

// Answers from a script; remembers what it was asked.
class Scripted : public Contestant {
 public:
  Scripted(std::string name, std::vector<std::string>* log) : name_(std::move(name)), log_(log) {}
  Result<void> upload(uint32_t set, std::span<const device::Binding> arguments) override {
    inputs[set] = arguments[0].bytes[0];
    return {};
  }
  Result<void> clone(const device::cuda::Clone& clone) override {
    inputs[clone.set] =
        static_cast<uint8_t>(inputs.at(clone.from) + (clone.moves.empty() ? 0 : clone.moves[0]));
    if (clone.set == 1) moves.push_back(clone.moves.empty() ? 0 : clone.moves[0]);
    return {};
  }
  Result<bool> equal(const device::cuda::Clone&) override { return ++compared != odd_launch; }
  Result<double> run(uint32_t set, Timing timing) override {
    if (set == 1) EXPECT_EQ(ran.count(set), 0u) << "a set is timed once";
    if (set == 1 && ++timed == fails_at) return Error{fails_with, "it went wrong"};
    if (timing != Timing::none) ran.insert(set);
    if (timing == Timing::kernel && set == 1) log_->push_back(name_);
    return timing == Timing::kernel ? ms : 10 * ms;
  }
  Result<std::vector<plan::Finding>> check(uint32_t) override { return findings; }
  Result<void> download(uint32_t set, uint32_t, std::span<uint8_t> bytes) override {
    bytes[0] = inputs[set];
    return {};
  }
  Result<void> release(uint32_t set) override {
    ran.erase(set);
    return {};
  }
  std::string description() override { return name_; }

  double ms = 1;
  int fails_at = 99, odd_launch = 99, timed = 0, compared = 0;
  std::vector<uint64_t> moves;  // of the sets that were timed
  std::string fails_with;
  std::map<uint32_t, uint8_t> inputs;
  std::set<uint32_t> ran;
  std::vector<plan::Finding> findings;

 private:
  std::string name_;
  std::vector<std::string>* log_;
};

TEST(GpuTiming, TakesTurnsOnMovedContentsAndKeepsOutputsThatDiffer) {
  std::vector<std::string> log;
  Scripted a("a", &log), b("b", &log);
  b.ms = 3;
  a.odd_launch = 2;
  TimingOptions options;
  options.warm_ms = 0;
  options.launches = 6;
  options.end_to_end_every = 3;
  options.pieces = 100;
  options.piece_bytes = {1, 1};
  TimingDevice timing("test", a, &b, options, "");
  std::vector<uint8_t> in = {5}, out = {0};
  const device::Binding bindings[] = {{in, true, true}, {out, false, false}};
  ASSERT_TRUE(timing.replay({}, bindings, {}).ok());
  EXPECT_EQ(log, (std::vector<std::string>{"a", "b", "b", "a", "a", "b", "b", "a"}));
  EXPECT_EQ(timing.first_ms, std::vector<double>(4, 1.0));
  EXPECT_EQ(timing.second_ms, std::vector<double>(4, 3.0));
  EXPECT_EQ(timing.first_host_ms, std::vector<double>(2, 10.0));
  EXPECT_EQ(timing.second_host_ms, std::vector<double>(2, 30.0));
  EXPECT_EQ(out[0], 5) << "the outputs of contents that were not moved";
  EXPECT_EQ(timing.equal, 5u);
  ASSERT_EQ(timing.others.size(), 1u);
  ASSERT_EQ(a.moves.size(), 6u);
  EXPECT_EQ(a.moves, b.moves) << "both programs get the same contents";
  for (const uint64_t move : a.moves) EXPECT_GE(move, 1u);
  EXPECT_EQ(timing.others[0].at(1)[0], static_cast<uint8_t>(5 + a.moves[1]));
  EXPECT_EQ(a.inputs.size(), 3u) << "one timed set, used again and again";
}

TEST(GpuTiming, ABaselineIsComparedAlone) {
  std::vector<std::string> log;
  Scripted a("a", &log);
  ContestantDevice device("test", a);
  std::vector<uint8_t> in = {7}, out = {0};
  const device::Binding bindings[] = {{in, true, true}, {out, false, false}};
  ASSERT_TRUE(device.replay({}, bindings, {}).ok());
  EXPECT_EQ(out[0], 7);
}

TEST(GpuTiming, FatalFindingsOfAnyLaunchAreHandedOn) {
  std::vector<std::string> log;
  Scripted a("a", &log);
  plan::Finding f;
  f.kind = "out-of-bounds";
  a.findings.push_back(f);
  TimingOptions options;
  options.warm_ms = 0;
  options.launches = 5;
  TimingDevice timing("test", a, nullptr, options, "");
  std::vector<uint8_t> in = {5}, out = {0};
  const device::Binding bindings[] = {{in, true, true}, {out, false, false}};
  auto run = timing.replay({}, bindings, {});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->findings.size(), 5u);
  EXPECT_TRUE(timing.second_ms.empty());
}

TEST(GpuTiming, FaultsOfTheCandidateAreItsOwnAllOthersAreErrors) {
  struct Row {
    bool candidate;
    const char* kind;
    bool is_error;
    plan::RunStatus status;
  };
  for (const Row& row :
       {Row{true, "candidate", false, plan::RunStatus::fault},
        Row{true, "timeout", false, plan::RunStatus::wall_budget}, Row{true, "gpu-lost", true, {}},
        Row{false, "timeout", true, {}}, Row{false, "candidate", true, {}}}) {
    SCOPED_TRACE(row.kind);
    std::vector<std::string> log;
    Scripted a("a", &log), b("b", &log);
    Scripted& failing = row.candidate ? a : b;
    failing.fails_at = 3;
    failing.fails_with = row.kind;
    TimingOptions options;
    options.warm_ms = 0;
    options.launches = 4;
    TimingDevice timing("test", a, &b, options, "");
    std::vector<uint8_t> in = {5}, out = {0};
    const device::Binding bindings[] = {{in, true, true}, {out, false, false}};
    auto run = timing.replay({}, bindings, {});
    ASSERT_EQ(!run.ok(), row.is_error);
    if (run.ok()) {
      EXPECT_EQ(run->status, row.status);
      EXPECT_EQ(run->message, "it went wrong");
    }
  }
}

TEST(GpuTiming, RatioAndItsInterval) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  std::vector<double> a, b;
  for (int i = 0; i < 40; ++i) a.push_back(1 + 0.01 * (i % 5)), b.push_back(2 + 0.02 * (i % 7));
  const RatioInterval r = ratio_of_medians(a, b);
  EXPECT_DOUBLE_EQ(r.ratio, 2.06 / 1.02);
  EXPECT_LT(r.low, r.ratio + 1e-12);
  EXPECT_GT(r.high, r.ratio - 1e-12);
  EXPECT_GT(r.low, 1.9);
  EXPECT_LT(r.high, 2.15);
  EXPECT_EQ(ratio_of_medians({}, {}).ratio, 0);
}

TEST(GpuTiming, RooflineOfAnH200) {
  device::cuda::DeviceInfo h200;
  h200.cc_major = 9;
  h200.sm_count = 132;
  h200.clock_khz = 1980000;
  h200.memory_clock_khz = 3201000;
  h200.bus_bits = 6144;
  // 1070 TFLOP/s of bf16 at 1.98 GHz, twice that of e4m3; 4.917 TB/s.
  EXPECT_NEAR(roofline_ms(h200, 1.0705e12, "bf16.bf16.f32", 1e6), 1.0, 0.001);
  EXPECT_NEAR(roofline_ms(h200, 2.1411e12, "e4m3.e4m3.f32", 1e6), 1.0, 0.001);
  EXPECT_NEAR(roofline_ms(h200, 1e9, "bf16.bf16.f32", 4.917e9), 1.0, 0.001);
  EXPECT_EQ(roofline_ms({}, 1e12, "bf16.bf16.f32", 1e9), 0);
}

TEST(GpuVerdict, LevelsAndReasonsOfTimes) {
  Performance p;
  p.candidate_ms = 1;
  p.baseline_ms = 1.02;
  p.speedup = 1.02;
  p.floor_ms = 0.7;
  p.launches = p.verified = 40;
  const auto judged = [](const Performance& performance) {
    Verdict v;
    judge_performance(performance, v);
    return std::pair(v.level, v.reason);
  };
  EXPECT_EQ(judged(p), std::pair(Level::frontier, std::string("frontier")));
  p.speedup = 0.98;
  EXPECT_EQ(judged(p), std::pair(Level::strategy, std::string("below-frontier")));
  p.speedup = 3;
  p.implausible = true;
  EXPECT_EQ(judged(p), std::pair(Level::strategy, std::string("implausible")));
  p.verified = 39;
  EXPECT_EQ(judged(p), std::pair(Level::strategy, std::string("not-verified")));
  p = Performance();
  p.candidate_ms = 1;
  EXPECT_EQ(judged(p), std::pair(Level::strategy, std::string("no-baseline")));
}

TEST(GpuVerdict, CausesNameSpillsWavesAndPower) {
  plan::LaunchPlan plan;
  plan::Launch launch;
  launch.kernel = "k";
  launch.grid.x = 140;
  plan.steps.push_back(launch);
  device::cuda::DeviceInfo info;
  info.sm_count = 132;
  device::cuda::KernelInfo kernel;
  kernel.name = "k";
  kernel.local_bytes = 16;
  kernel.resident_ctas = 1;
  const auto found = causes(Verdict(), plan, info, {kernel}, 0x4);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], "k: 16 bytes of local memory a thread (spills)");
  EXPECT_EQ(found[1], "k: 140 CTAs fill 53 % of 2 waves of 132");
  EXPECT_EQ(found[2], "the card was at its power limit");
}

class OnEmulatedDriver : public ::testing::Test {
 protected:
  OnEmulatedDriver() {
    request_.task = TaskSuite::open(fs::path(PTXBENCH_SOURCE_DIR) / "tasks")
                        .take()
                        .load("gemm_n7168_k5120")
                        .take();
    request_.axes = {{"M", 70}, {"N", 128}, {"K", 128}};
    request_.held_out = false;
    request_.threads = 2;
    gpu_.device.worker.driver = std::string(PTXBENCH_BUILD_DIR) + "/lib/emulate/libcuda.so.1";
    gpu_.device.launch_s = 60;
    gpu_.timing.launch_s = 60;
    gpu_.timing.emulated = true;
    gpu_.timing.launches = 3;
    gpu_.timing.end_to_end_every = 3;
    gpu_.timing.warm_ms = 0;
  }
  void extract(const std::string& source) {
    request_.extraction = extract_file((fs::path(PTXBENCH_SOURCE_DIR) / source).string()).take();
    ASSERT_TRUE(request_.extraction.ok);
  }
  // Source to plan, as on the machine that records.
  void as_plan() {
    auto emulator = device::make_emu_device("h200");
    auto recording = compile_and_record(request_, real_services(*emulator));
    ASSERT_TRUE(recording.ok()) << recording.error().to_string();
    ASSERT_FALSE(recording->verdict);
    request_.extraction.candidate.kind = Candidate::Kind::plan;
    request_.extraction.candidate.plan = recording->plan;
  }
  EvalRequest request_;
  GpuRequest gpu_;
};

TEST_F(OnEmulatedDriver, AnHonestPlanIsTimedAndEveryOutputVerified) {
  extract("examples/candidates/gemm_bf16.md");
  as_plan();
  auto v = evaluate_on_gpu(request_, gpu_);
  ASSERT_TRUE(v.ok()) << v.error().to_string();
  EXPECT_EQ(v->level, Level::strategy) << v->message;
  EXPECT_EQ(v->reason, "no-baseline") << v->message;
  EXPECT_EQ(v->label, "Correct");
  EXPECT_EQ(v->evidence.level, "executed");
  EXPECT_EQ(v->device.rfind("cuda-emulated:0", 0), 0u);
  ASSERT_TRUE(v->performance);
  EXPECT_EQ(v->performance->launches, 3u);  // the last one end to end
  EXPECT_EQ(v->performance->verified, 3u);
  EXPECT_GT(v->performance->candidate_ms, 0);
  EXPECT_GT(v->performance->floor_ms, 0);
  bool counts_equal = false, emulated = false;
  for (const std::string& note : v->notes) {
    counts_equal |= note == "executed instructions of 4 families equal the emulator's";
    emulated |= note == "on the emulator: level 5, not-timed, Correct";
  }
  EXPECT_TRUE(counts_equal) << ::testing::PrintToString(v->notes);
  EXPECT_TRUE(emulated) << ::testing::PrintToString(v->notes);
}

TEST_F(OnEmulatedDriver, WhatTheEmulatorFindsLowersTheLevelNotTheLabel) {
  extract("examples/candidates/missing_proxy_fence.cu");
  as_plan();
  auto v = evaluate_on_gpu(request_, gpu_);
  ASSERT_TRUE(v.ok()) << v.error().to_string();
  EXPECT_EQ(v->level, Level::execution);
  EXPECT_EQ(v->reason, "latent-protocol-breach");
  EXPECT_EQ(v->message.rfind("on the emulator: ", 0), 0u);
  EXPECT_EQ(v->label, "Correct");
  EXPECT_FALSE(v->performance);
}

TEST_F(OnEmulatedDriver, WrongValuesAreNotTimed) {
  extract("examples/candidates/k_tail_dropped.cu");
  as_plan();
  gpu_.emulate = false;
  auto v = evaluate_on_gpu(request_, gpu_);
  ASSERT_TRUE(v.ok()) << v.error().to_string();
  EXPECT_EQ(v->level, Level::numerics);
  EXPECT_EQ(v->label, "Numerical error");
  EXPECT_FALSE(v->performance);
}

TEST_F(OnEmulatedDriver, NoDriverIsOneClearLine) {
  extract("examples/candidates/gemm_bf16.md");
  gpu_.device.worker.driver = "/nowhere/libcuda.so.1";
  auto v = evaluate_on_gpu(request_, gpu_);
  ASSERT_FALSE(v.ok());
  EXPECT_EQ(v.error().kind, "no-driver");
  EXPECT_EQ(v.error().message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace ptxbench::bench
