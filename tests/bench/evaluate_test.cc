// The pipeline with a device, compiler and recorder made of a few lines: every way a trial can end.
#include "bench/evaluate.h"

#include <gtest/gtest.h>

#include "bench/judge.h"
#include "gemm_data.h"

namespace ptxbench::bench {
namespace {

plan::Finding finding(const char* kind, plan::HazardClass hazard) {
  plan::Finding f;
  f.kind = kind;
  f.hazard = hazard;
  f.message = "something happened";
  f.file = "/build/answer.cu";
  f.line = 2;
  return f;
}

// Multiplies for real, then misbehaves as told.
class FakeDevice : public device::Device {
 public:
  std::string name() const override { return "fake"; }
  Result<plan::RunResult> replay(const plan::LaunchPlan&, std::span<const device::Binding> bindings,
                                 const plan::RunOptions& options) override {
    seen_options = options;
    EXPECT_EQ(bindings.size(), 3u);
    EXPECT_TRUE(bindings[0].read_only && bindings[1].read_only && !bindings[2].read_only);
    EXPECT_FALSE(bindings[2].initialized);
    if (writes) {
      Gemm g{static_cast<int>(bindings[0].bytes.size() / 512), 64, 256, words(bindings[0]),
             words(bindings[1])};
      std::vector<uint16_t> c = honest(g);
      if (change) change(c, bindings);
      if (obeys_ghost && options.ghost != plan::Ghost::none) std::fill(c.begin(), c.end(), 0);
      std::memcpy(bindings[2].bytes.data(), c.data(), 2 * c.size());
    }
    return result;
  }
  static std::vector<uint16_t> words(const device::Binding& b) {
    std::vector<uint16_t> w(b.bytes.size() / 2);
    std::memcpy(w.data(), b.bytes.data(), b.bytes.size());
    return w;
  }
  bool writes = true, obeys_ghost = true;
  std::function<void(std::vector<uint16_t>&, std::span<const device::Binding>)> change;
  plan::RunResult result;
  plan::RunOptions seen_options;
};

class Evaluate : public ::testing::Test {
 protected:
  Evaluate() {
    request_.estimate = false;  // tests of its own: causes_test.cc
    request_.task = TaskSuite::open(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tasks")
                        .take()
                        .load("gemm_n7168_k5120")
                        .take();
    request_.axes = {{"M", 64}, {"N", 64}, {"K", 256}};
    request_.sm_count = 3;
    request_.extraction = extract_markdown(
        "```cuda\n__global__ void k();\nbad_line();\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(run, k);\n```\n",
        "answer.md");
    // Enough FLOP for the largest held-out size too.
    device_.result.families = {{"wgmma.mma_async", 4, 64, 2048, 2.0 * 192 * 64 * 256},
                               {"cp.async.bulk.tensor.load", 2, 8, 8}};
    device_.result.kernels.resize(1);
    device_.result.kernels[0].tensor_flop = 2.0 * 192 * 64 * 256;
    device_.result.kernels[0].tensor_flop_by_type = {{"bf16.bf16.f32", 2.0 * 192 * 64 * 256}};
    compiled_.ok = true;
    compiled_.stages = {{"compile.device", 5, true}};
    recorded_.ok = true;
  }
  Result<Verdict> run() {
    Services services;
    services.device = &device_;
    services.compile =
        [&](const toolchain::CompileRequest& r) -> Result<toolchain::CompiledCandidate> {
      EXPECT_NE(r.source.find("bad_line"), std::string::npos);
      EXPECT_EQ(r.file_name, "answer.cu");
      return compiled_;
    };
    services.record = [&](const cudart::RecordRequest& r) -> Result<cudart::RecordOutcome> {
      EXPECT_EQ(r.arguments.size(), 3u);
      EXPECT_EQ(r.sm_count, 3);
      EXPECT_TRUE(r.arguments[2].is_output);
      EXPECT_TRUE(r.arguments[0].host_bytes.empty());  // host code never sees floating inputs
      EXPECT_EQ(r.arguments[1].shape, (std::vector<int64_t>{64, 256}));
      return recorded_;
    };
    return evaluate(request_, services);
  }
  void expect(int level, const char* reason, const char* label, const char* status) {
    auto verdict = run();
    ASSERT_TRUE(verdict.ok()) << verdict.error().to_string();
    EXPECT_EQ(static_cast<int>(verdict->level), level);
    EXPECT_EQ(verdict->reason, reason);
    EXPECT_EQ(verdict->label, label);
    EXPECT_EQ(verdict->status, status);
    EXPECT_FALSE(verdict->message.empty());
    const nlohmann::json json = to_json(*verdict);
    EXPECT_EQ(json["level"], level);
    EXPECT_EQ(json["reason"], reason);
    EXPECT_NE(verdict->feedback.find(reason), std::string::npos);
    last_ = *verdict;
  }
  EvalRequest request_;
  FakeDevice device_;
  toolchain::CompiledCandidate compiled_;
  cudart::RecordOutcome recorded_;
  Verdict last_;
};

TEST_F(Evaluate, HonestKernelReachesLevelFive) {
  expect(5, "not-timed", "Correct", "PASSED");
  EXPECT_EQ(last_.tag, "H");
  EXPECT_EQ(last_.evidence.level, "executed");
  EXPECT_EQ(last_.seed.size(), 32u);
  EXPECT_EQ(last_.correctness->verified, 64u * 64);
  EXPECT_EQ(last_.stages[1].name, "compile.device");
  EXPECT_TRUE(last_.stages[1].cached);
  const std::string first_seed = last_.seed;
  expect(5, "not-timed", "Correct", "PASSED");
  EXPECT_NE(last_.seed, first_seed);  // drawn anew
}
TEST_F(Evaluate, SeedReplays) {
  request_.seed = Seed{5, 6};
  expect(5, "not-timed", "Correct", "PASSED");
  const Correctness first = *last_.correctness;
  expect(5, "not-timed", "Correct", "PASSED");
  EXPECT_EQ(last_.seed, "00000000000000050000000000000006");
  EXPECT_EQ(last_.correctness->rel_frobenius, first.rel_frobenius);
}
TEST_F(Evaluate, ExtractionFailure) {
  request_.extraction = extract_markdown("no code", "answer.md");
  expect(0, "no-code", "Extraction error", "COMPILE_ERROR");
}
TEST_F(Evaluate, CompileFailureQuotesTheLine) {
  compiled_.ok = false;
  compiled_.failure_reason = "does-not-compile";
  compiled_.diagnostics = {
      {toolchain::Diagnostic::Severity::error, "nvcc", "answer.cu", 2, 1, "", "undeclared"}};
  expect(1, "does-not-compile", "Compilation error", "COMPILE_ERROR");
  EXPECT_NE(last_.feedback.find("bad_line();"), std::string::npos);
}
TEST_F(Evaluate, RecordFailures) {
  recorded_.ok = false;
  recorded_.message = "why";
  struct Row {
    const char* recorded;
    int level;
    const char *reason, *label, *status;
  };
  for (const Row& row :
       {Row{"entry-point-missing", 1, "entry-point-missing", "Runtime error", "RUNTIME_ERROR"},
        Row{"wrong-arguments", 1, "wrong-arguments", "Runtime error", "RUNTIME_ERROR"},
        Row{"host-nondeterministic", 1, "host-nondeterministic", "Other error", "RUNTIME_ERROR"},
        Row{"result-readback", 1, "banned-call", "Other error", "RUNTIME_ERROR"},
        Row{"host-timeout", 2, "timeout", "Kernel Execution Timeout", "TIMEOUT"},
        Row{"host-crash", 2, "host-crash", "Runtime error", "RUNTIME_ERROR"},
        Row{"launch-refused", 2, "launch-refused", "Runtime error", "RUNTIME_ERROR"},
        Row{"no-launch", 2, "no-output", "Numerical error", "INCORRECT_NUMERICAL"}}) {
    recorded_.reason = row.recorded;
    expect(row.level, row.reason, row.label, row.status);
  }
  recorded_.reason = "unsupported-runtime-call";
  EXPECT_FALSE(run().ok());  // ours, not the candidate's
}
TEST_F(Evaluate, StoppedRuns) {
  device_.result.status = plan::RunStatus::deadlock;
  device_.result.message = "all warps wait";
  expect(2, "deadlock", "Kernel Execution Timeout", "TIMEOUT");
  device_.result.status = plan::RunStatus::wall_budget;
  expect(2, "timeout", "Kernel Execution Timeout", "TIMEOUT");
  device_.result.status = plan::RunStatus::fault;
  device_.result.findings = {finding("out-of-bounds", plan::HazardClass::fatal)};
  expect(2, "memory-fault", "Runtime error", "RUNTIME_ERROR");
  EXPECT_NE(last_.message.find("answer.cu:2"), std::string::npos);
  device_.result.status = plan::RunStatus::unsupported;
  device_.result.message = "tcgen05.mma";
  auto verdict = run();
  ASSERT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.error().kind, "unsupported");
}
// The headline names the candidate's own line, once.
TEST_F(Evaluate, HeadlinePlaces) {
  plan::Finding f = finding("out-of-bounds", plan::HazardClass::fatal);
  f.file = "/toolkit/include/cuda_bf16.hpp";
  f.line = 700;
  f.inlined_at = {
      {"/toolkit/include/other.h", 3}, {"/build/answer.cu", 2}, {"/build/answer.cu", 9}};
  device_.result.status = plan::RunStatus::fault;
  device_.result.findings = {f};
  expect(2, "memory-fault", "Runtime error", "RUNTIME_ERROR");
  EXPECT_EQ(last_.message, "something happened at answer.cu:2");
  device_.result.findings[0].inlined_at.clear();
  expect(2, "memory-fault", "Runtime error", "RUNTIME_ERROR");
  EXPECT_EQ(last_.message, "something happened at cuda_bf16.hpp:700");
  f = finding("device-assert", plan::HazardClass::fatal);
  f.message = "assertion `x` failed at /build/answer.cu:2";
  device_.result.findings = {f};
  expect(2, "trap", "Runtime error", "RUNTIME_ERROR");
  EXPECT_EQ(last_.message, f.message);
  f.message = "assertion `x` failed at other_answer.cu:2";
  device_.result.findings = {f};
  expect(2, "trap", "Runtime error", "RUNTIME_ERROR");
  EXPECT_EQ(last_.message, f.message + " at answer.cu:2");
}
TEST_F(Evaluate, SmCountThatHostCodeWasTold) {
  expect(5, "not-timed", "Correct", "PASSED");
  EXPECT_EQ(to_json(last_)["sm_count"], 3);
  last_.sm_count = 0;
  EXPECT_TRUE(to_json(last_)["sm_count"].is_null());
}
TEST_F(Evaluate, NothingWrittenIsNoOutput) {
  device_.writes = false;
  expect(2, "no-output", "Numerical error", "INCORRECT_NUMERICAL");
}
TEST_F(Evaluate, FatalFindingOutweighsRightValues) {
  device_.result.findings = {finding("async-early-read", plan::HazardClass::fatal)};
  expect(2, "race", "Correct", "PASSED");
}
TEST_F(Evaluate, LatentFindingChangesOnlyTheStrictLevel) {
  device_.result.findings = {finding("missing-proxy-fence", plan::HazardClass::latent)};
  expect(2, "latent-protocol-breach", "Correct", "PASSED");
  EXPECT_NE(last_.message.find("another chip"), std::string::npos);
}
TEST_F(Evaluate, RepairedHazardIsANoteOnly) {
  device_.result.findings = {finding("missing-wgmma-fence", plan::HazardClass::repaired)};
  expect(5, "not-timed", "Correct", "PASSED");
  ASSERT_EQ(last_.notes.size(), 1u);
}
TEST_F(Evaluate, WrongValues) {
  device_.change = [](std::vector<uint16_t>& c, auto) { c[100] = 0x4700; };
  expect(3, "numerics", "Numerical error", "INCORRECT_NUMERICAL");
}
// The published rule accepts small errors on small values; the error against fp64 does not.
TEST_F(Evaluate, PublishedRuleDisagrees) {
  request_.seed = Seed{5, 6};  // a rare element is an ulp off already, and two are above 1e-2
  device_.change = [](std::vector<uint16_t>& c, auto) {
    for (uint16_t& x : c) x ^= 1;  // up to half a percent off
  };
  expect(3, "numerics", "Correct", "PASSED");
  ASSERT_FALSE(last_.notes.empty());
}
TEST_F(Evaluate, ChangedInputIsAFault) {
  device_.change = [](std::vector<uint16_t>&, std::span<const device::Binding> b) {
    b[0].bytes[0] ^= 1;
  };
  auto verdict = run();
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(verdict->level, Level::execution);
  EXPECT_EQ(verdict->reason, "memory-fault");
}
TEST_F(Evaluate, InstructionEvidence) {
  auto& families = device_.result.families;
  const auto all = families;
  families = {{"fma", 4, 64, 2048}};
  expect(4, "instructions-absent", "Correct", "PASSED");
  EXPECT_EQ(last_.tag, "G");
  EXPECT_EQ(last_.evidence.level, "none");
  families = all;
  families[0].warps = families[0].threads = 0;
  expect(4, "instructions-not-executed", "Correct", "PASSED");
  families = all;
  families[0].tensor_flop = 0.8 * 2.0 * 64 * 64 * 256;
  expect(4, "insufficient-flop", "Correct", "PASSED");
  families[0].tensor_flop = 1;
  families.push_back({"mma", 1, 512, 512 * 32, 2.0 * 64 * 64 * 256});  // mma.sync did it all
  expect(4, "insufficient-flop", "Correct", "PASSED");
  families = all;
  device_.result.kernels[0].tensor_flop_by_type = {{"f16.f16.f16", 1e6}};
  expect(4, "wrong-compute-type", "Correct", "PASSED");
}
TEST_F(Evaluate, InstructionsForShow) {
  device_.obeys_ghost = false;
  expect(4, "instructions-unused", "Correct", "PASSED");
}

TEST_F(Evaluate, HeldOutSizeDecidesToo) {
  device_.change = [](std::vector<uint16_t>& c, std::span<const device::Binding>) {
    if (c.size() != 64 * 64) std::reverse(c.begin(), c.end());
  };
  expect(3, "numerics", "Correct", "PASSED");
  request_.held_out = false;
  expect(5, "not-timed", "Correct", "PASSED");
}

TEST_F(Evaluate, OptionsReachTheDevice) {
  request_.threads = 2;
  request_.async = plan::AsyncMode::eager;
  request_.tensor = plan::TensorMode::f32;
  request_.schedule = "random:3";
  request_.timeout_s = 7;
  expect(5, "not-timed", "Correct", "PASSED");
  EXPECT_EQ(device_.seen_options.threads, 2);
  EXPECT_EQ(device_.seen_options.async, plan::AsyncMode::eager);
  EXPECT_EQ(device_.seen_options.tensor, plan::TensorMode::f32);
  EXPECT_EQ(device_.seen_options.schedule, "random:3");
  EXPECT_EQ(device_.seen_options.wall_budget_s, 7);
}
// The reader is told where a ruler is untested and where the arithmetic is not the silicon's.
TEST_F(Evaluate, Caveats) {
  expect(5, "not-timed", "Correct", "PASSED");
  EXPECT_TRUE(last_.notes.empty());
  request_.tensor = plan::TensorMode::f32;
  expect(5, "not-timed", "Correct", "PASSED");
  ASSERT_EQ(last_.notes.size(), 1u);
  EXPECT_NE(last_.notes[0].find("mode f32"), std::string::npos);
  EXPECT_EQ(to_json(last_)["mode"]["tensor"], "f32");
  request_.tensor = plan::TensorMode::hw;
  for (auto [state, words] : {std::pair{AdmissionState::none, "has not been admitted"},
                              {AdmissionState::changed, "was changed after"},
                              {AdmissionState::rejected, "not admitted"}}) {
    request_.task.admission = state;
    expect(5, "not-timed", "Correct", "PASSED");
    ASSERT_EQ(last_.notes.size(), 1u);
    EXPECT_NE(last_.notes[0].find(words), std::string::npos) << last_.notes[0];
    EXPECT_NE(last_.feedback.find(words), std::string::npos);
  }
}

TEST_F(Evaluate, UnknownOperationIsRefused) {
  request_.task.definition.op_type = "sort";
  auto verdict = run();
  ASSERT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.error().kind, "unsupported");
}

}  // namespace
}  // namespace ptxbench::bench
