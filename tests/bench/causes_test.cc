// Causes of slowness (bench/causes): each planted in a small kernel that has one disease, beside a
// twin without it. The disease must be the dearest cause, and must not be named of the twin.
#include "bench/causes/causes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bench/causes/speed_json.h"

namespace ptxbench::bench {
namespace {

struct Patient {
  std::string shared;  // declarations
  std::string before, loop, after;
  int rounds = 64;
  uint32_t ctas = 132 * 8, threads = 256, dynamic_shared = 0;
  uint64_t buffer_bytes = uint64_t{64} << 20;
  AssembledKernel assembled = {32, 0, false};
};

// Thread number in %r1, CTA in %r2, round in %r9; %rd1 and %rd2 are two buffers.
std::string text_of(const Patient& p) {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + p.shared + R"(
.visible .entry k(.param .u64 p0, .param .u64 p1) {
    .reg .pred %p<5>; .reg .b32 %r<40>; .reg .f32 %f<80>; .reg .b64 %rd<20>;
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r9, 0;
    mad.lo.u32 %r3, %r2, )" +
         std::to_string(p.threads) + ", %r1;\n" + p.before + "LOOP:\n" + p.loop +
         fmt::format(R"(
    add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, {};
    @%p1 bra LOOP;
)",
                     p.rounds) +
         p.after + "    ret;\n}\n";
}

SpeedReport examine(const Patient& p, const char* machine = "h200") {
  plan::LaunchPlan plan;
  plan.arch = "sm_90a";
  plan.device_profile = "h200";
  plan.definition = "planted";
  plan.modules.push_back({"", text_of(p), {}});
  for (uint32_t i = 0; i < 2; ++i)
    plan.buffers.push_back({i ? "out" : "in", plan::BufferRole::argument, i, 0, p.buffer_bytes});
  plan::Launch launch;
  launch.kernel = "k";
  launch.grid = {p.ctas}, launch.block = {p.threads};
  launch.dynamic_shared_bytes = launch.max_dynamic_shared_bytes = p.dynamic_shared;
  launch.params.bytes.resize(16);
  launch.params.pointers = {{0, {0, 0}}, {8, {1, 0}}};
  plan.steps.push_back(launch);
  auto report = explain_speed(plan, {{"k", p.assembled}}, machine);
  EXPECT_TRUE(report.ok()) << report.error().to_string();
  return report.ok() ? report.take() : SpeedReport();
}

std::string first(const SpeedReport& report) {
  return report.causes.empty() ? "" : report.causes[0].kind;
}

bool names(const SpeedReport& report, const std::string& kind) {
  for (const SpeedCause& cause : report.causes)
    if (cause.kind == kind) return true;
  return false;
}

void expect_found(const Patient& ill, const Patient& healthy, const std::string& kind) {
  const SpeedReport sick = examine(ill), well = examine(healthy);
  EXPECT_EQ(first(sick), kind) << speed_feedback(sick, 9);
  EXPECT_FALSE(names(well, kind)) << speed_feedback(well, 9);
  if (sick.causes.empty()) return;
  EXPECT_GT(sick.causes[0].cost, 0.05);
  EXPECT_LE(sick.causes[0].cost, 1.0);
  EXPECT_NE(sick.causes[0].evidence, "");
  EXPECT_NE(sick.causes[0].advice, "");
}

const char* kArithmetic = R"(
    fma.rn.f32 %f1, %f1, %f1, %f2; fma.rn.f32 %f3, %f3, %f3, %f2;
    fma.rn.f32 %f4, %f4, %f4, %f2; fma.rn.f32 %f5, %f5, %f5, %f2;
    fma.rn.f32 %f6, %f6, %f6, %f2; fma.rn.f32 %f7, %f7, %f7, %f2;
    fma.rn.f32 %f8, %f8, %f8, %f2; fma.rn.f32 %f9, %f9, %f9, %f2;
)";
const char* kClear = R"(
    mov.f32 %f1, 0f3f800000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
    mov.f32 %f5, %f1; mov.f32 %f6, %f1; mov.f32 %f7, %f1; mov.f32 %f8, %f1; mov.f32 %f9, %f1;
)";

Patient arithmetic(uint32_t ctas, uint32_t threads) {
  Patient p;
  p.before = kClear, p.loop = kArithmetic, p.rounds = 2000;
  p.ctas = ctas, p.threads = threads;
  return p;
}

TEST(Causes, ALastWaveThatIsNearlyEmpty) {
  expect_found(arithmetic(133, 1024), arithmetic(132, 1024), "wave-quantisation");
}

TEST(Causes, TooFewWarpsToHideLoads) {
  Patient p;
  p.before = "    mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3;\n";
  p.loop = R"(    ld.global.u32 %r5, [%rd4]; and.b32 %r6, %r5, 1; cvt.u64.u32 %rd5, %r6;
    add.s64 %rd4, %rd4, %rd5; add.s64 %rd4, %rd4, 128;
)";
  p.threads = 32, p.rounds = 500;
  Patient alone = p;
  alone.dynamic_shared = 200 << 10;
  p.threads = 1024;
  p.ctas = 132 * 2;
  expect_found(alone, p, "low-occupancy");
}

TEST(Causes, RowsOfSharedMemoryInOneBank) {
  Patient p;
  p.shared = ".shared .align 128 .b8 buf[40960];\n";
  p.loop = "    ld.shared.u32 %r5, [%r4]; ld.shared.u32 %r6, [%r4+4]; add.u32 %r7, %r5, %r6;\n";
  p.rounds = 300;
  Patient padded = p;
  const std::string lane =
      "    and.b32 %r8, %r1, 31; mov.u32 %r10, buf;\n"
      "    shl.b32 %r20, %r1, 4; add.u32 %r20, %r20, %r10; mov.u32 %r21, 0;\n"
      "    st.shared.v4.u32 [%r20], {%r21, %r21, %r21, %r21};\n"
      "    st.shared.v4.u32 [%r20+4096], {%r21, %r21, %r21, %r21};\n    bar.sync 0;\n";
  p.before = lane + "    mad.lo.u32 %r4, %r8, 128, %r10;\n";
  padded.before = lane + "    mad.lo.u32 %r4, %r8, 132, %r10;\n";
  expect_found(p, padded, "bank-conflicts");
}

TEST(Causes, LanesThatReadFarApart) {
  Patient p;
  p.loop = R"(    mad.lo.u32 %r4, %r9, 4, %r11;
    cvt.u64.u32 %rd3, %r4; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r5, [%rd4];
)";
  p.rounds = 8;
  p.threads = 1024, p.ctas = 132 * 16;
  p.buffer_bytes = uint64_t{1} << 30;
  Patient neighbours = p;
  p.before = "    mul.lo.u32 %r11, %r3, 256;\n";
  neighbours.before = "    mul.lo.u32 %r11, %r3, 4;\n";
  neighbours.loop = R"(    mad.lo.u32 %r4, %r9, 8650752, %r11;
    cvt.u64.u32 %rd3, %r4; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r5, [%rd4];
)";
  expect_found(p, neighbours, "uncoalesced-access");
}

TEST(Causes, RegistersThatSpill) {
  Patient p = arithmetic(132 * 8, 256), spilled = p;
  spilled.assembled = {128, 400, false};
  expect_found(spilled, p, "spills");
}

TEST(Causes, EveryCtaReadsTheSameAgain) {
  Patient p;
  p.before = "    mul.wide.u32 %rd3, %r1, 16; add.s64 %rd4, %rd1, %rd3;\n";
  p.loop = "    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd4]; add.s64 %rd4, %rd4, 16384;\n";
  p.threads = 1024, p.rounds = 256, p.ctas = 132 * 2 * 16;
  p.buffer_bytes = uint64_t{4} << 20;
  Patient once = p;
  once.before = "    mul.wide.u32 %rd3, %r3, 16; add.s64 %rd4, %rd1, %rd3;\n";
  once.loop = "    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd4];\n";
  once.rounds = 1, once.buffer_bytes = uint64_t{128} << 20;
  expect_found(p, once, "redundant-traffic");
}

TEST(Causes, AtomicsOnOneWord) {
  Patient p;
  p.loop = "    red.global.add.f32 [%rd4], %f1;\n";
  p.rounds = 4;
  Patient stores = p;
  p.before = "    mov.f32 %f1, 0f3f800000; mov.b64 %rd4, %rd2;\n";
  stores.before = p.before + "    mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd4, %rd3;\n";
  stores.loop = "    st.global.f32 [%rd4], %f1;\n";
  expect_found(p, stores, "atomics");
}

// A ring of two buffers for mma.sync; `wait` says how many copies may be in flight at the products.
Patient ring(int wait) {
  Patient p;
  p.shared = ".shared .align 128 .b8 buf[32768];\n";
  p.threads = 128, p.rounds = 100, p.ctas = 132, p.dynamic_shared = 0;
  p.assembled.registers = 255;
  p.before = kClear + std::string(R"(
    mul.wide.u32 %rd3, %r1, 16; add.s64 %rd4, %rd1, %rd3;
    shl.b32 %r10, %r1, 4; mov.u32 %r11, buf; add.u32 %r10, %r10, %r11;
    mov.u32 %r12, 0; mov.u32 %r13, 0; mov.u32 %r14, 0; mov.u32 %r15, 0;
    cp.async.cg.shared.global [%r10], [%rd4], 16; cp.async.commit_group;
)");
  for (int i = 0; i < 4; ++i)
    p.loop += fmt::format("    cp.async.cg.shared.global [%r10+{}], [%rd4+{}], 16;\n",
                          8192 + 2048 * i, 2048 * i);
  p.loop += fmt::format(
      "    cp.async.commit_group; add.s64 %rd4, %rd4, 8192;\n"
      "    cp.async.wait_group {};\n",
      wait);
  for (int i = 0; i < 32; ++i)
    p.loop += R"(    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4},
        {%r12, %r13, %r14, %r15}, {%r12, %r13}, {%f1, %f2, %f3, %f4};
)";
  p.after = "    cp.async.wait_group 0;\n";
  return p;
}

TEST(Causes, ProductsThatWaitForEveryCopy) { expect_found(ring(0), ring(1), "no-overlap"); }

// One warpgroup; the products of a round are waited for at once, or in the next round.
Patient products(int wait) {
  Patient p;
  p.shared = ".shared .align 1024 .b8 buf[65536];\n";
  p.threads = 128, p.rounds = 200, p.ctas = 132;
  p.assembled.registers = 168;
  p.before = R"(
    mov.u32 %r10, buf; shr.u32 %r10, %r10, 4; cvt.u64.u32 %rd3, %r10;
    or.b64 %rd3, %rd3, 0x4000004000010000;
    wgmma.fence.sync.aligned;
)";
  std::string d;
  for (int i = 0; i < 32; ++i) d += fmt::format("{}%f{}", i ? ", " : "", 10 + i);
  for (int i = 0; i < 32; ++i)
    p.before = fmt::format("    mov.f32 %f{}, 0f00000000;\n", 10 + i) + p.before;
  p.loop = "    wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" + d +
           "}, %rd3, %rd3, 1, 1, 1, 0, 0;\n    wgmma.commit_group.sync.aligned;\n" +
           fmt::format("    wgmma.wait_group.sync.aligned {};\n", wait);
  p.after = "    wgmma.wait_group.sync.aligned 0;\n";
  return p;
}

TEST(Causes, ProductsThatAreWaitedForOneByOne) {
  expect_found(products(0), products(1), "serialised-products");
  Patient advised = products(1);
  advised.assembled.products_waited_for = true;  // as ptxas says in C7510
  const SpeedReport report = examine(advised);
  EXPECT_EQ(first(report), "serialised-products") << speed_feedback(report, 9);
  EXPECT_NE(report.causes.at(0).evidence.find("ptxas"), std::string::npos);
}

TEST(Causes, OtherMachinesAreNotCalibrated) {
  const Patient p = arithmetic(1320, 256);
  EXPECT_TRUE(examine(p, "h200").calibrated);
  EXPECT_FALSE(examine(p, "b200").calibrated);
  EXPECT_NE(speed_feedback(examine(p, "b200"), 1).find("never compared"), std::string::npos);
  EXPECT_FALSE(explain_speed({}, {}, "a100").ok());
}

TEST(Causes, AGridThatDoesNotRunInPartsIsSaid) {
  Patient p;
  p.ctas = 500;
  // Every CTA waits for the last one.
  p.before = "    mov.u32 %r4, 1; setp.eq.u32 %p2, %r2, 499; @%p2 st.global.u32 [%rd2], %r4;\n";
  p.loop = "SPIN: ld.acquire.gpu.global.u32 %r5, [%rd2]; setp.eq.u32 %p3, %r5, 0; @%p3 bra SPIN;\n";
  plan::LaunchPlan plan;
  plan.modules.push_back({"", text_of(p), {}});
  plan.arch = "sm_90a";
  for (uint32_t i = 0; i < 2; ++i)
    plan.buffers.push_back({i ? "out" : "in", plan::BufferRole::argument, i, 0, 4096});
  plan::Launch launch;
  launch.kernel = "k";
  launch.grid = {p.ctas}, launch.block = {32};
  launch.params.bytes.resize(16);
  launch.params.pointers = {{0, {0, 0}}, {8, {1, 0}}};
  plan.steps.push_back(launch);
  const auto report = explain_speed(plan, {}, "h200", {.steps = 500'000});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, "not-sampled");
}

TEST(Estimate, CtasThatFitOnAnSm) {
  plan::LaunchCosts costs;
  costs.block = {128, 1, 1};
  std::string by;
  const Machine& h200 = *find_machine("h200");
  EXPECT_EQ(resident_ctas(costs, {255, 0, false}, h200, &by), 2);
  EXPECT_EQ(by, "registers");
  EXPECT_EQ(resident_ctas(costs, {128, 0, false}, h200, &by), 4);
  EXPECT_EQ(resident_ctas(costs, {32, 0, false}, h200, &by), 16);
  EXPECT_TRUE(by == "threads" || by == "registers") << by;
  costs.shared_bytes = 100 << 10;
  EXPECT_EQ(resident_ctas(costs, {32, 0, false}, h200, &by), 2);
  EXPECT_EQ(by, "shared memory");
  costs.shared_bytes = 227 << 10;
  EXPECT_EQ(resident_ctas(costs, {255, 0, false}, h200, &by), 1);
}

TEST(Estimate, TheBusiestSm) {
  plan::LaunchCosts costs;
  costs.ctas = 133;
  costs.cta_instructions = {100};
  EXPECT_NEAR(imbalance(costs, 132), 2.0 * 132 / 133, 1e-9);
  costs.ctas = 264;
  EXPECT_NEAR(imbalance(costs, 132), 1, 1e-9);
  // Long and short CTAs by turns even out.
  costs.cta_instructions = {100, 300};
  costs.ctas = 13200;
  EXPECT_LT(imbalance(costs, 132), 1.05);
  EXPECT_EQ(imbalance({}, 132), 1);
}

}  // namespace
}  // namespace ptxbench::bench
