// The text that a model gets back, one file per case in golden/, at least one case per level that
// the emulator can give. After a wanted change: PTXBENCH_UPDATE_GOLDEN=1 build/bin/test_bench
// --gtest_filter='Feedback*', then read the difference.
#include "bench/feedback.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "bench/evidence.h"
#include "bench/judge.h"
#include "gemm_data.h"

namespace ptxbench::bench {
namespace {

const std::string kSource =
    "__global__ void gemm(const bf16* a) {\n"
    "  float sum = undeclared;\n"
    "  smem[threadIdx.x] = a[blockIdx.x * 4096];\n"
    "  wgmma(d, a_tile, b_tile);\n"
    "}\n";

void expect_golden(const std::string& name, Verdict& verdict) {
  const std::string text = make_feedback(verdict, kSource);
  const auto path =
      std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tests/bench/golden" / (name + ".txt");
  if (std::getenv("PTXBENCH_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(path, std::string_view(text)).ok());
    ADD_FAILURE() << "wrote " << path << "; run again without PTXBENCH_UPDATE_GOLDEN";
    return;
  }
  auto golden = read_file(path);
  ASSERT_TRUE(golden.ok()) << golden.error().to_string();
  EXPECT_EQ(text, *golden);
}

Verdict start() {
  Verdict v;
  v.definition = "gemm_test";
  v.arch = "sm_90a";
  v.source_file = "answer.cu";
  return v;
}

plan::Finding finding(const char* kind, plan::HazardClass hazard, const char* message,
                      const char* hint, int line) {
  plan::Finding f;
  f.kind = kind;
  f.hazard = hazard;
  f.message = message;
  f.hint = hint;
  f.file = "/build/answer.cu";
  f.line = line;
  f.count = 3;
  return f;
}

Task task() {
  return TaskSuite::open(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tasks")
      .take()
      .load("gemm_n7168_k5120")
      .take();
}

// A verdict about values: c for inputs of a fixed seed.
Verdict compared(const std::function<void(const Gemm&, std::vector<uint16_t>&)>& change) {
  Verdict v = start();
  const Gemm g = make_gemm(96, 128, 512, 31);
  std::vector<uint16_t> c = honest(g);
  change(g, c);
  std::vector<uint64_t> bad_tiles;
  Correctness correctness = judge(g, c, 1, &bad_tiles);
  correctness.output = "C";
  if (!correctness.passed && correctness.poisoned == 0)
    correctness.explanation = explain_gemm({g.a, g.b, c, g.m, g.n, g.k}, bad_tiles);
  v.correctness = correctness;
  return v;
}

Evidence evidence(uint64_t warps, double share) {
  plan::RunResult run;
  run.families = {{"wgmma.mma_async", 4, warps, 32 * warps, share * 1e6},
                  {"cp.async.bulk.tensor.load", 2, 8, 8}};
  run.kernels.resize(1);
  run.kernels[0].tensor_flop = share * 1e6;
  run.kernels[0].tensor_flop_by_type = {{"bf16.bf16.f32", share * 1e6}};
  return collect_evidence(task(), "sm_90a", 1e6, run);
}

TEST(Feedback, Level0Extraction) {
  Verdict v = start();
  judge_extraction("no-code", "the answer holds no CUDA code block that exports run", v);
  expect_golden("level0_no_code", v);
}

TEST(Feedback, Level1Syntax) {
  Verdict v = start();
  toolchain::CompiledCandidate compiled;
  compiled.failure_reason = "does-not-compile";
  toolchain::Diagnostic d;
  d.tool = "nvcc";
  d.file = "answer.cu";
  d.line = 2;
  d.column = 15;
  d.text = "identifier \"undeclared\" is undefined";
  d.hint = "declare it";
  compiled.diagnostics = v.diagnostics = {d};
  judge_compile(compiled, v);
  expect_golden("level1_does_not_compile", v);

  v = start();
  cudart::RecordOutcome outcome;
  outcome.reason = "host-nondeterministic";
  outcome.message = "argument 2 of kernel gemm differs between two recordings";
  judge_record(outcome, v);
  expect_golden("level1_host_nondeterministic", v);
}

TEST(Feedback, Level2Execution) {
  Verdict v = start();
  v.findings = {finding("out-of-bounds", plan::HazardClass::fatal,
                        "reads 2 bytes beyond the end of A", "guard the last tile", 3)};
  plan::RunResult run;
  run.status = plan::RunStatus::fault;
  judge_stopped_run(run, v);
  expect_golden("level2_memory_fault", v);

  v = compared([](const Gemm&, std::vector<uint16_t>&) {});
  v.findings = {finding("missing-proxy-fence", plan::HazardClass::latent,
                        "wgmma reads shared memory that ordinary stores wrote without a fence",
                        "fence.proxy.async before the barrier", 4)};
  judge_completed_run(task(), v);
  expect_golden("level2_latent", v);

  v = compared([](const Gemm& g, std::vector<uint16_t>& c) {
    std::fill(c.begin() + 64 * g.n, c.end(), kPoison);
  });
  judge_completed_run(task(), v);
  expect_golden("level2_no_output", v);
}

TEST(Feedback, Level3Numerics) {
  Verdict v = compared([](const Gemm& g, std::vector<uint16_t>& c) {
    const std::vector<uint16_t> less = multiply(g, g.k - 64, nullptr, nullptr);
    for (int64_t i = 32; i < 64; ++i) std::copy_n(less.begin() + i * g.n, 64, c.begin() + i * g.n);
  });
  judge_completed_run(task(), v);
  EXPECT_EQ(v.level, Level::numerics);
  expect_golden("level3_k_tail_in_few_tiles", v);

  v = compared([](const Gemm& g, std::vector<uint16_t>& c) {
    c = multiply(g, g.k, nullptr,
                 [](float x) { return numeric::f16_to_float(numeric::f16_from_float(x)); });
  });
  judge_completed_run(task(), v);
  expect_golden("level3_fp16_accumulation", v);
}

TEST(Feedback, Level4Instructions) {
  Verdict v = compared([](const Gemm&, std::vector<uint16_t>&) {});
  v.evidence = evidence(0, 0);
  judge_completed_run(task(), v);
  expect_golden("level4_not_executed", v);
  v = compared([](const Gemm&, std::vector<uint16_t>&) {});
  v.evidence = evidence(64, 0.5);
  judge_completed_run(task(), v);
  expect_golden("level4_insufficient_flop", v);
}

TEST(Feedback, Level5Strategy) {
  Verdict v = compared([](const Gemm&, std::vector<uint16_t>&) {});
  v.evidence = evidence(64, 1);
  v.findings = {finding("missing-wgmma-fence", plan::HazardClass::repaired,
                        "wgmma reads registers without wgmma.fence", "add wgmma.fence", 4)};
  v.notes = {
      "the assembler repairs answer.cu:4 (missing-wgmma-fence), which serialises or delays it"};
  judge_completed_run(task(), v);
  EXPECT_EQ(v.level, Level::strategy);
  expect_golden("level5_not_timed", v);
}

}  // namespace
}  // namespace ptxbench::bench
