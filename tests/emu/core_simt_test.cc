// Control flow, calls, memory and atomics of ordinary kernels, through PTX text.

#include "emu/ptx_runner.h"

namespace ptxbench::emu::test {
namespace {

using plan::RunStatus;

TEST(CoreSimt, DivergentLoopsGiveEachLaneItsOwnTripCount) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, 0; mov.u32 %r3, 0;
  LOOP:
    setp.ge.u32 %p1, %r3, %r1;
    @%p1 bra DONE;
    add.u32 %r2, %r2, %r3;
    add.u32 %r3, %r3, 1;
    bra LOOP;
  DONE:
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret; })";
  r.buffers = {output_of("out", 70 * 4)};
  r.block = {70};
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  auto out = values_of<uint32_t>(r.buffers[0]);
  for (uint32_t i = 0; i < 70; i++) EXPECT_EQ(out[i], i * (i - 1) / 2 * (i > 0)) << i;
}

// A lane that spins for another lane of its own warp must not starve it.
TEST(CoreSimt, SpinningLaneLetsTheOthersRun) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 31;
    @%p1 bra SETTER;
  SPIN:
    ld.volatile.global.u32 %r2, [%rd1];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra SPIN;
    bra END;
  SETTER:
    mov.u32 %r3, 7;
    st.volatile.global.u32 [%rd1], %r3;
  END:
    ret; })";
  r.buffers = {buffer_of<uint32_t>("flag", {0})};
  r.block = {32};
  r.options.step_budget = 20'000'000;
  r.go();
  EXPECT_EQ(r.result.status, RunStatus::completed) << r.result.message;
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0])[0], 7u);
}

TEST(CoreSimt, CallsPassParametersAndRecurse) {
  PtxRun r;
  r.ptx = R"(
  .func (.param .b32 ret0) fact(.param .b32 n) {
    .reg .pred %p<2>; .reg .b32 %r<5>;
    ld.param.u32 %r1, [n];
    setp.le.u32 %p1, %r1, 1;
    mov.u32 %r2, 1;
    @%p1 bra BASE;
    sub.u32 %r3, %r1, 1;
    { .param .b32 a; .param .b32 b;
      st.param.b32 [a], %r3;
      call (b), fact, (a);
      ld.param.b32 %r4, [b]; }
    mul.lo.u32 %r2, %r1, %r4;
  BASE:
    st.param.b32 [ret0], %r2;
    ret; }
  .visible .entry k(.param .u64 p0) {
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    { .param .b32 a; .param .b32 b;
      st.param.b32 [a], %r1;
      call (b), fact, (a);
      ld.param.b32 %r2, [b]; }
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret; })";
  r.buffers = {output_of("out", 12 * 4)};
  r.block = {12};
  r.go();
  ASSERT_EQ(r.error, "");
  auto out = values_of<uint32_t>(r.buffers[0]);
  uint32_t f = 1;
  for (uint32_t i = 0; i < 12; i++) EXPECT_EQ(out[i], f *= i ? i : 1) << i;
}

TEST(CoreSimt, RecursionWithoutEndIsAStackOverflow) {
  PtxRun r;
  r.ptx = R"(
  .func f(.param .b32 n) {
    .reg .b32 %r<2>;
    ld.param.u32 %r1, [n];
    { .param .b32 a; st.param.b32 [a], %r1; call f, (a); }
    ret; }
  .visible .entry k(.param .u64 p0) {
    .reg .b32 %r<2>;
    mov.u32 %r1, 0;
    { .param .b32 a; st.param.b32 [a], %r1; call f, (a); }
    ret; })";
  r.buffers = {output_of("out", 4)};
  r.block = {32};
  r.go();
  EXPECT_EQ(r.result.status, RunStatus::fault);
  EXPECT_TRUE(r.finding("stack-overflow")) << r.kinds();
}

TEST(CoreSimt, IndirectBranchTakesEachLaneToItsTarget) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    rem.u32 %r2, %r1, 3;
    T: .branchtargets A, B, C;
    brx.idx %r2, T;
  A: mov.u32 %r3, 10; bra S;
  B: mov.u32 %r3, 20; bra S;
  C: mov.u32 %r3, 30;
  S: mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r3;
    ret; })";
  r.buffers = {output_of("out", 32 * 4)};
  r.block = {32};
  r.go();
  ASSERT_EQ(r.error, "");
  auto out = values_of<uint32_t>(r.buffers[0]);
  for (uint32_t i = 0; i < 32; i++) EXPECT_EQ(out[i], 10 * (i % 3 + 1)) << i;
}

TEST(CoreSimt, SubWordLoadsExtendAndVectorsKeepTheirOrder) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0, .param .u64 p1) {
    .reg .b16 %rs<3>; .reg .b32 %r<9>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
    ld.global.s8 %r1, [%rd1+1];
    ld.global.u8 %r2, [%rd1+1];
    ld.global.s16 %r3, [%rd1+2];
    ld.global.u16 %rs1, [%rd1+2];
    cvt.u32.u16 %r4, %rs1;
    st.global.v4.u32 [%rd2], {%r1, %r2, %r3, %r4};
    ld.global.v2.u32 {%r5, %r6}, [%rd1+8];
    st.global.v2.u32 [%rd2+16], {%r6, %r5};
    ret; })";
  r.buffers = {
      buffer_of<uint8_t>("in", {1, 0x80, 0x34, 0xff, 5, 6, 7, 8, 1, 0, 0, 0, 2, 0, 0, 0}, true),
      output_of("out", 24)};
  r.block = {1};
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  EXPECT_EQ(values_of<uint32_t>(r.buffers[1]),
            (std::vector<uint32_t>{0xffffff80u, 0x80u, 0xffffff34u, 0xff34u, 2u, 1u}));
}

const char* kStoreAt = R"(.visible .entry k(.param .u64 p0, .param .u32 n) {
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p0]; ld.param.u32 %r2, [n];
    mov.u32 %r1, %tid.x;
    add.u32 %r3, %r1, %r2;
    mul.wide.s32 %rd2, %r3, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    ret; })";

TEST(CoreSimt, StorePastTheEndIsAFaultThatNamesTheBuffer) {
  PtxRun r;
  r.ptx = kStoreAt;
  r.buffers = {output_of("C", 32 * 4)};
  r.scalars = {1};
  r.block = {32};
  r.go();
  EXPECT_EQ(r.result.status, RunStatus::fault);
  const plan::Finding* f = r.finding("out-of-bounds");
  ASSERT_TRUE(f) << r.kinds();
  EXPECT_EQ(f->lanes, 0x80000000u);
  EXPECT_NE(f->message.find("0 bytes past the end of C"), std::string::npos) << f->message;
  EXPECT_EQ(f->ptx_line, 11);
}

TEST(CoreSimt, StoreBeforeTheStartIsAFaultToo) {
  PtxRun r;
  r.ptx = kStoreAt;
  r.buffers = {output_of("A", 64), output_of("C", 32 * 4)};
  std::swap(r.buffers[0], r.buffers[1]);
  r.scalars = {0xffffffffu};
  r.block = {32};
  // The kernel's parameters are both addresses; n comes after them.
  r.ptx = std::string(kStoreAt);
  r.ptx.replace(r.ptx.find(".param .u32 n"), 13, ".param .u64 p1, .param .u32 n");
  r.go();
  const plan::Finding* f = r.finding("out-of-bounds");
  ASSERT_TRUE(f) << r.kinds() << r.error;
  EXPECT_NE(f->message.find("before C"), std::string::npos) << f->message;
}

TEST(CoreSimt, WritingAnInputAndReadingTheUnwrittenAreFindings) {
  PtxRun r;
  r.ptx = kStoreAt;
  r.buffers = {buffer_of<uint32_t>("A", std::vector<uint32_t>(64), true)};
  r.scalars = {0};
  r.block = {32};
  r.go();
  EXPECT_TRUE(r.finding("write-to-input")) << r.kinds();
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0])[5], 0u);

  PtxRun u;
  u.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .b32 %r<3>; .reg .b64 %rd<3>; .shared .align 4 .b32 s[8];
    ld.param.u64 %rd1, [p0];
    ld.shared.u32 %r1, [s+4];
    ld.global.u32 %r2, [%rd1];
    st.global.u32 [%rd1+4], %r1;
    ret; })";
  u.buffers = {output_of("C", 8)};
  u.block = {1};
  u.go();
  ASSERT_EQ(u.result.findings.size(), 2u) << u.kinds();
  for (const plan::Finding& f : u.result.findings) {
    EXPECT_EQ(f.kind, "uninitialized-read");
    EXPECT_EQ(f.hazard, plan::HazardClass::latent);
  }
}

TEST(CoreSimt, MisalignedAccessIsAFault) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p0];
    ld.global.u32 %r1, [%rd1+2];
    ret; })";
  r.buffers = {buffer_of<uint32_t>("A", {1, 2})};
  r.block = {1};
  r.go();
  EXPECT_TRUE(r.finding("misaligned")) << r.kinds();
}

TEST(CoreSimt, AtomicsDoNotDependOnTheNumberOfThreads) {
  auto sum = [](int threads) {
    PtxRun r;
    r.ptx = R"(.visible .entry k(.param .u64 p0) {
      .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<3>;
      ld.param.u64 %rd1, [p0];
      mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
      mad.lo.u32 %r3, %r1, 64, %r2;
      cvt.rn.f32.u32 %f1, %r3;
      mul.rn.f32 %f2, %f1, 0f3DCCCCCD;
      atom.global.add.f32 %f3, [%rd1], %f2;
      red.global.add.u32 [%rd1+4], 1;
      ret; })";
    r.buffers = {buffer_of<uint32_t>("out", {0, 0})};
    r.grid = {50}, r.block = {64};
    r.options.threads = threads;
    r.go();
    return values_of<uint32_t>(r.buffers[0]);
  };
  auto one = sum(1), two = sum(2);
  EXPECT_EQ(one, two);
  EXPECT_EQ(one[1], 3200u);
}

// A software grid barrier needs CTAs beyond those that can make progress to be started.
TEST(CoreSimt, SoftwareGridBarrierCompletes) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p0];
    atom.global.add.u32 %r1, [%rd1], 1;
  W: ld.acquire.gpu.global.u32 %r2, [%rd1];
    setp.lt.u32 %p1, %r2, 20;
    @%p1 bra W;
    red.global.add.u32 [%rd1+4], 1;
    ret; })";
  r.buffers = {buffer_of<uint32_t>("c", {0, 0})};
  r.grid = {20}, r.block = {1};
  r.options.step_budget = 200'000'000;
  r.go();
  EXPECT_EQ(r.result.status, RunStatus::completed) << r.result.message;
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0])[1], 20u);
}

TEST(CoreSimt, EndlessKernelUsesUpItsBudget) {
  PtxRun r;
  r.ptx = ".visible .entry k(.param .u64 p0) { L: bra L; }";
  r.buffers = {output_of("c", 4)};
  r.block = {32};
  r.options.step_budget = 5'000'000;
  r.go();
  EXPECT_EQ(r.result.status, RunStatus::step_budget);
  r.options.step_budget = 0;
  r.options.wall_budget_s = 0.2;
  r.result = {};
  r.go();
  EXPECT_EQ(r.result.status, RunStatus::wall_budget);
}

TEST(CoreSimt, WhatIsNotImplementedIsRefusedByName) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .b32 %r<4>;
    redux.sync.add.s32 %r1, %r2, 0xffffffff;
    .reg .b64 %d<2>; multimem.red.relaxed.gpu.global.add.u32 [%d1], %r1;
    ret; })";
  r.buffers = {output_of("c", 4)};
  r.block = {32};
  r.go();
  EXPECT_NE(r.error.find("multimem.red"), std::string::npos) << r.error;
  EXPECT_NE(r.error.find("line 7"), std::string::npos) << r.error;
}

// A plan is not to be trusted: sizes beyond the device are refused, not allocated.
TEST(CoreSimt, AbsurdSizesAreRefused) {
  PtxRun r;
  r.ptx = ".shared .align 4 .b8 s[300000]; .visible .entry k(.param .u64 p0) { ret; }";
  r.buffers = {output_of("c", 4)};
  r.block = {32};
  r.go();
  EXPECT_NE(r.error.find("more than the device has"), std::string::npos) << r.error;
  r.error.clear();
  r.ptx = ".global .align 4 .b8 g[99000000000]; .visible .entry k(.param .u64 p0) { ret; }";
  r.go();
  EXPECT_NE(r.error.find("emulator's memory"), std::string::npos) << r.error;
}

TEST(CoreSimt, CountsAreWarpsAndPredicateTrueThreads) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 40;
    @%p1 red.global.add.u32 [%rd1], 1;
    ret; })";
  r.buffers = {buffer_of<uint32_t>("c", {0})};
  r.grid = {3}, r.block = {96};
  r.go();
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0])[0], 120u);
  for (const plan::FamilyCount& f : r.result.families)
    if (f.family.starts_with("red")) {
      EXPECT_EQ(f.static_count, 1u);
      EXPECT_EQ(f.warps, 6u);
      EXPECT_EQ(f.threads, 120u);
    }
}

}  // namespace
}  // namespace ptxbench::emu::test
