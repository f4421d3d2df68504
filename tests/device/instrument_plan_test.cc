// Counting by instrumentation gives what the emulator's ledger gives for the untouched plan, and
// changes no bit of the results.
#include "device/instrument_plan.h"

#include <gtest/gtest.h>

#include "../../bench/hardware/gemm_bits.h"
#include "base/hash.h"
#include "device/recorded.h"
#include "ptx/assemble.h"

namespace ptxbench::device {
namespace {

using Families = std::map<std::string, FamilyCount>;

Families by_name(const std::vector<FamilyCount>& list) {
  Families out;
  for (const FamilyCount& f : list) out[f.family] = f;
  return out;
}

struct Run {
  std::vector<std::vector<uint8_t>> arguments;
  RunResult result;
  Families families;  // the ledger's, or what the counters say
};

// `inputs` leading arguments are read-only.
Run replay(const plan::LaunchPlan& plan, std::vector<std::vector<uint8_t>> arguments, size_t inputs,
           int threads) {
  std::vector<Binding> bindings;
  for (size_t i = 0; i < arguments.size(); ++i)
    bindings.push_back({arguments[i], i < inputs, true});
  RunOptions options;
  options.threads = threads;
  auto result = make_emu_device("h200")->replay(plan, bindings, options);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  Run run;
  if (!result.ok()) return run;
  EXPECT_EQ(result->status, RunStatus::completed) << result->message;
  EXPECT_TRUE(result->findings.empty()) << result->findings[0].message;
  run.families = by_name(result->families);
  run.arguments = std::move(arguments);
  run.result = result.take();
  return run;
}

// Runs the plan as it is and instrumented; results must be equal bit for bit.
std::pair<Families, Families> both(const plan::LaunchPlan& plan,
                                   const std::vector<std::vector<uint8_t>>& arguments,
                                   size_t inputs, const std::vector<std::string>& families = {},
                                   int threads = 1) {
  Run plain = replay(plan, arguments, inputs, threads);
  auto counted = instrument(plan, families);
  EXPECT_TRUE(counted.ok()) << counted.error().to_string();
  if (!counted.ok()) return {};
  EXPECT_TRUE(plan::validate(counted->plan).ok());
  auto with_counters = arguments;
  with_counters.emplace_back(counted->counter_bytes);
  Run run = replay(counted->plan, with_counters, inputs, threads);
  for (size_t i = 0; i < arguments.size() && i < run.arguments.size(); ++i)
    EXPECT_TRUE(run.arguments[i] == plain.arguments[i]) << "argument " << i;
  auto counts = decode_counters(*counted, run.arguments.back());
  EXPECT_TRUE(counts.ok());
  return {plain.families, by_name(*counts)};
}

void expect_equal(const Families& ledger, const Families& counted) {
  for (const auto& [family, count] : counted) {
    ASSERT_TRUE(ledger.count(family)) << family;
    EXPECT_EQ(count.threads, ledger.at(family).threads) << family;
    EXPECT_EQ(count.static_count, ledger.at(family).static_count) << family;
    EXPECT_EQ(count.warps, ledger.at(family).warps) << family;
  }
}

std::vector<uint8_t> bytes_of(const std::vector<uint16_t>& words) {
  std::vector<uint8_t> bytes(words.size() * 2);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

std::vector<std::vector<uint8_t>> gemm_arguments(int m, int n, int k) {
  auto size = [](int x, int y) { return static_cast<size_t>(x) * static_cast<size_t>(y); };
  return {bytes_of(bits::matrix(size(m, k), 1)), bytes_of(bits::matrix(size(n, k), 2)),
          std::vector<uint8_t>(size(m, n) * 2, 0xff)};
}

class InstrumentedGemm : public ::testing::TestWithParam<std::array<int, 3>> {};

TEST_P(InstrumentedGemm, CountsEqualTheLedger) {
  const auto [m, n, k] = GetParam();
  auto plan = record_gemm("kernels/sm_90a/gemm_bf16.cu", m, n, k);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  for (int threads : {1, 2}) {
    const auto [ledger, counted] = both(*plan, gemm_arguments(m, n, k), 2, {}, threads);
    for (const char* family : {"wgmma.mma_async", "cp.async.bulk.tensor.load",
                               "cp.async.bulk.tensor.store", "stmatrix"}) {
      ASSERT_TRUE(counted.count(family)) << family;
      EXPECT_GT(counted.at(family).threads, 0u) << family;
      EXPECT_EQ(counted.at(family).threads, ledger.at(family).threads) << family;
      EXPECT_EQ(counted.at(family).warps, ledger.at(family).warps) << family;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, InstrumentedGemm,
                         ::testing::Values(std::array{200, 1024, 832}, std::array{70, 512, 2048}),
                         [](const auto& info) { return fmt::format("m{}", info.param[0]); });

// The GEMM of the Ampere instructions: all of them aligned, inner loops unrolled.
TEST(InstrumentPlan, MmaGemm) {
  auto plan = record_gemm("kernels/sm_80/gemm_bf16_mma.cu", 70, 256, 192);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  const auto [ledger, counted] = both(*plan, gemm_arguments(70, 256, 192), 2);
  for (const char* family : {"mma", "ldmatrix"}) {
    ASSERT_TRUE(counted.count(family)) << family;
    EXPECT_GT(counted.at(family).warps, 0u) << family;
    EXPECT_EQ(counted.at(family).threads, ledger.at(family).threads) << family;
    EXPECT_EQ(counted.at(family).warps, ledger.at(family).warps) << family;
  }
}

// On silicon a counter in the wrong place would serialise the tensor cores or spill accumulators.
TEST(InstrumentPlan, AssemblerHasNothingNewToSayAboutTheGemm) {
  if (ptx::find_assembler().empty()) GTEST_SKIP() << "no ptxas here";
  auto plan = record_gemm("kernels/sm_90a/gemm_bf16.cu", 200, 1024, 832);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  auto counted = instrument(*plan);
  ASSERT_TRUE(counted.ok());
  const auto before = ptx::assemble(plan->modules[0].ptx, "sm_90a");
  const auto after = ptx::assemble(counted->plan.modules[0].ptx, "sm_90a");
  ASSERT_TRUE(before.ok && after.ok) << after.log;
  EXPECT_NE(after.log.find("spill stores"), std::string::npos) << "nothing was looked at";
  EXPECT_EQ(after.advisories, 0) << after.log;
  EXPECT_EQ(after.spilling, before.spilling) << after.log;
}

// Any family can be counted, also in code that diverges.
TEST(InstrumentPlan, ScalarFamiliesOfTheNaiveGemm) {
  auto plan = record_gemm("examples/candidates/naive_simt.cu", 37, 96, 64);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  const auto [ledger, counted] =
      both(*plan, gemm_arguments(37, 96, 64), 2, {"fma", "ld.global", "st.global", "bra", "setp"});
  EXPECT_GT(counted.at("fma").threads, 1000u);
  expect_equal(ledger, counted);
}

plan::LaunchPlan one_kernel(const std::string& text, uint32_t threads) {
  plan::LaunchPlan p;
  p.arch = "sm_90a";
  p.device_profile = "h200";
  p.buffers = {{"out", plan::BufferRole::argument, 0, 0, 4096}};
  p.modules = {{hash_hex(text), text, {}}};
  plan::Launch launch;
  launch.kernel = "k";
  launch.grid = {3, 1, 1};
  launch.block = {threads, 1, 1};
  launch.params.bytes.resize(8);
  launch.params.pointers = {{0, {0, 0}}};
  p.steps.emplace_back(launch);
  return p;
}

// Guards of both signs, a diverged loop whose trip count is the lane, a call inside a branch, a
// partial last warp.
constexpr const char* kDiverging = R"(.version 8.0
.target sm_90a
.address_size 64
.func twice(.param .b64 at) {
  .reg .b32 %r<2>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [at];
  red.global.add.u32 [%rd1+64], 1;
  ret;
}
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 7;
  setp.lt.u32 %p1, %r2, 3;
  @%p1 red.global.add.u32 [%rd1], 1;
  @!%p1 red.global.add.u32 [%rd1+4], 2;
LOOP:
  red.global.add.u32 [%rd1+8], 1;
  sub.u32 %r2, %r2, 1;
  setp.ge.s32 %p2, %r2, 0;
  @%p2 bra LOOP;
  setp.gt.u32 %p3, %r1, 40;
  @%p3 bra END;
  { .param .b64 at; st.param.b64 [at], %rd1; call twice, (at); }
  red.global.add.u32 [%rd1+12], 1;
END:
  ret;
}
)";

TEST(InstrumentPlan, DivergingCode) {
  const auto [ledger, counted] =
      both(one_kernel(kDiverging, 70), {std::vector<uint8_t>(4096)}, 0, {"red.global", "sub"});
  expect_equal(ledger, counted);
  // Lanes 0..7 of each eight go round 1..8 times.
  EXPECT_EQ(counted.at("sub").threads, 3u * (8 * 36 + 1 + 2 + 3 + 4 + 5 + 6));
}

// ldmatrix and mma-shaped code: .sync.aligned, so warps are exact too.
constexpr const char* kMatrix = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %rd<4>;
  .shared .align 128 .b8 tile[2048];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r3, tile;
  shl.b32 %r4, %r1, 4;
  add.u32 %r4, %r4, %r3;
  st.shared.v4.b32 [%r4], {%r1, %r1, %r1, %r1};
  bar.sync 0;
  mov.u32 %r5, 0;
  setp.lt.u32 %p1, %r1, 32;
AGAIN:
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%r4];
  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r3];
  stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r10};
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p2, %r5, 5;
  @%p2 bra AGAIN;
  @!%p1 bra DONE;
  st.global.u32 [%rd1], %r6;
DONE:
  ret;
}
)";

TEST(InstrumentPlan, MatrixMoves) {
  const auto plan = one_kernel(kMatrix, 32);
  const auto [ledger, counted] = both(plan, {std::vector<uint8_t>(4096)}, 0);
  ASSERT_EQ(counted.size(), 2u);
  expect_equal(ledger, counted);
  EXPECT_EQ(counted.at("ldmatrix").warps, 30u);
  EXPECT_EQ(counted.at("ldmatrix").threads, 960u);
}

TEST(InstrumentPlan, NothingToCountLeavesThePlan) {
  const auto plan = one_kernel(kDiverging, 32);
  auto counted = instrument(plan);
  ASSERT_TRUE(counted.ok());
  EXPECT_EQ(counted->counter_bytes, 0u);
  EXPECT_TRUE(counted->plan == plan);
  EXPECT_FALSE(decode_counters(*counted, std::vector<uint8_t>(16)).ok());
}

TEST(InstrumentPlan, MachineCodeAloneIsRefused) {
  auto plan = one_kernel(kDiverging, 32);
  plan.modules[0].ptx.clear();
  plan.modules[0].cubin = {1, 2, 3};
  auto counted = instrument(plan);
  ASSERT_FALSE(counted.ok());
  EXPECT_EQ(counted.error().kind, "unsupported");
}

}  // namespace
}  // namespace ptxbench::device
