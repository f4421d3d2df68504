// Calls through pointers, the stack, vector and 128-bit atomics, cp.async that ignores its source.

#include <bit>

#include "emu/ptx_runner.h"

namespace ptxbench::emu::test {
namespace {

using plan::RunStatus;

constexpr char kFunctions[] = R"(
.visible .func (.param .b32 out) twice(.param .b32 in) {
  .reg .b32 %r<3>; ld.param.u32 %r1, [in]; shl.b32 %r2, %r1, 1; st.param.b32 [out], %r2; ret; }
.visible .func (.param .b32 out) square(.param .b32 in) {
  .reg .b32 %r<3>; ld.param.u32 %r1, [in]; mul.lo.u32 %r2, %r1, %r1; st.param.b32 [out], %r2; ret; }
.visible .func (.param .b32 out) sum_to(.param .b32 in) {
  .reg .pred %p; .reg .b32 %r<5>; ld.param.u32 %r1, [in]; setp.eq.u32 %p, %r1, 0;
  mov.u32 %r4, 0; @%p bra DONE;
  add.u32 %r2, %r1, -1;
  { .param .b32 a; st.param.b32 [a], %r2; .param .b32 b; call (b), sum_to, (a); ld.param.b32 %r3, [b]; }
  add.u32 %r4, %r3, %r1;
DONE: st.param.b32 [out], %r4; ret; }
.visible .func other(.param .b64 in) { ret; }
.global .align 8 .u64 table[4] = {twice, square, sum_to, other};
)";

std::string indirect_kernel(const std::string& call) {
  std::string text = kFunctions;
  text += R"(.visible .entry k(.param .u64 p0, .param .u32 p1) {
    .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [p0]; ld.param.u32 %r8, [p1];
    mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, %r8;
    mov.u64 %rd2, table; mul.wide.u32 %rd3, %r2, 8; add.s64 %rd4, %rd2, %rd3;
    ld.global.u64 %rd5, [%rd4];
    { .param .b32 a; st.param.b32 [a], %r1; .param .b32 b;
)";
  text += call;
  text += R"(
      ld.param.b32 %r3, [b]; }
    mul.wide.u32 %rd6, %r1, 4; add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r3;
    ret; })";
  return text;
}
constexpr char kPrototype[] =
    "P: .callprototype (.param .b32 _) _ (.param .b32 _); call (b), %rd5, (a), P;";

PtxRun run_indirect(const std::string& call, uint32_t targets) {
  PtxRun r;
  r.ptx = indirect_kernel(call);
  r.buffers = {output_of("out", 40 * 4)};
  r.scalars = {targets};
  r.block = {40};
  r.go();
  return r;
}

TEST(CoreCall, ThroughPointersThatDifferBetweenLanes) {
  for (const char* call :
       {kPrototype, "T: .calltargets twice, square, sum_to; call (b), %rd5, (a), T;"}) {
    PtxRun r = run_indirect(call, 3);
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.kinds(), "");
    auto out = values_of<uint32_t>(r.buffers[0]);
    for (uint32_t i = 0; i < 40; i++)
      EXPECT_EQ(out[i], i % 3 == 0 ? 2 * i : i % 3 == 1 ? i * i : i * (i + 1) / 2) << i;
  }
}

TEST(CoreCall, AnotherSignatureIsAFaultOfTheProgram) {
  PtxRun r = run_indirect(kPrototype, 4);
  ASSERT_EQ(r.error, "");
  ASSERT_TRUE(r.finding("illegal-call"));
  EXPECT_NE(r.finding("illegal-call")->message.find("other"), std::string::npos);
  PtxRun wild = run_indirect("mov.u64 %rd5, 4096; " + std::string(kPrototype), 3);
  ASSERT_TRUE(wild.finding("illegal-call")) << wild.kinds();
}

TEST(CoreCall, RecursionWithoutEndIsAStackOverflow) {
  PtxRun r;
  r.ptx = R"(.visible .func down(.param .b32 in) {
    .reg .b32 %r<3>; .local .align 8 .b8 frame[1024]; ld.param.u32 %r1, [in];
    { .param .b32 a; st.param.b32 [a], %r1; call down, (a); } ret; }
  .visible .entry k() { { .param .b32 a; st.param.b32 [a], 1; call down, (a); } ret; })";
  r.go();
  EXPECT_TRUE(r.finding("stack-overflow")) << r.error << r.kinds();
}

TEST(CoreCall, AllocaGivesFreshMemoryUntilItIsRestored) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<12>;
    ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x;
    stacksave.u64 %rd2;
    mov.u64 %rd8, 32; alloca.u64 %rd3, %rd8, 16; alloca.u64 %rd4, 64;
    st.local.u32 [%rd3+4], %r1; add.u32 %r2, %r1, 7; st.local.u32 [%rd4+60], %r2;
    cvta.local.u64 %rd5, %rd3;
    ld.u32 %r3, [%rd5+4]; ld.local.u32 %r4, [%rd4+60];
    stackrestore.u64 %rd2; stacksave.u64 %rd6;
    sub.s64 %rd6, %rd6, %rd2; cvt.u32.u64 %r5, %rd6;
    and.b64 %rd9, %rd3, 15; cvt.u32.u64 %r6, %rd9; add.u32 %r5, %r5, %r6;
    mul.wide.u32 %rd7, %r1, 16; add.s64 %rd7, %rd1, %rd7;
    st.global.v4.u32 [%rd7], {%r3, %r4, %r5, %r1};
    ret; })";
  r.buffers = {output_of("out", 32 * 16)};
  r.block = {32};
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  auto out = values_of<uint32_t>(r.buffers[0]);
  for (uint32_t i = 0; i < 32; i++) {
    EXPECT_EQ(out[4 * i], i);
    EXPECT_EQ(out[4 * i + 1], i + 7);
    EXPECT_EQ(out[4 * i + 2], 0u);
  }
}

TEST(CoreCall, AllocaWith32Bits) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .b32 %r<9>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p0]; stacksave.u32 %r1; mov.u32 %r2, 16; alloca.u32 %r3, %r2; mov.u32 %r4, 6;
    st.local.u32 [%r3+12], %r4; ld.local.u32 %r5, [%r3+12]; stackrestore.u32 %r1;
    alloca.u32 %r6, 16, 32; rem.u32 %r7, %r6, 32; add.u32 %r5, %r5, %r7; st.global.u32 [%rd1], %r5; ret; })";
  r.buffers = {output_of("out", 4)};
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0]), (std::vector<uint32_t>{6}));
}

// Subnormals: an addition in global memory flushes them, one in shared memory does not.
TEST(CoreCall, VectorAtomics) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0, .param .u64 p1) {
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .b16 %h<9>;
    .shared .align 4 .f32 cell;
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
    mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; mov.f32 %f3, 0fBF800000; mov.f32 %f4, 0f00000001;
    atom.relaxed.gpu.global.add.v4.f32 {%f5, %f6, %f7, %f8}, [%rd1], {%f1, %f2, %f3, %f4};
    st.global.v4.f32 [%rd2], {%f5, %f6, %f7, %f8};
    red.global.add.v2.f32 [%rd1+16], {%f1, %f2};
    mov.b32 %r1, 0x3C003C00;
    red.global.add.noftz.v2.f16x2 [%rd1+24], {%r1, %r1};
    mov.b16 %h1, 0x4000;
    atom.global.max.noftz.v2.bf16 {%h2, %h3}, [%rd1+32], {%h1, %h1};
    st.global.v2.b16 [%rd2+16], {%h2, %h3};
    mov.f32 %f8, 0f00000001; st.shared.f32 [cell], %f8;
    red.shared.add.f32 [cell], %f4; ld.shared.f32 %f7, [cell]; st.global.f32 [%rd2+20], %f7;
    ret; })";
  const std::vector<uint32_t> before = {0x40000000, 0, 0x3f800000, 0x00000001, 0x3f800000,
                                        0,          0, 0x3c003c00, 0x3f803f80};
  r.buffers = {buffer_of("cells", before), output_of("old", 24)};
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0]),
            (std::vector<uint32_t>{0x40400000, 0x40000000, 0, 0, 0x40000000, 0x40000000, 0x3c003c00,
                                   0x40004000, 0x40004000}));
  EXPECT_EQ(values_of<uint32_t>(r.buffers[1]),
            (std::vector<uint32_t>{0x40000000, 0, 0x3f800000, 1, 0x3f803f80, 2}));
}

TEST(CoreCall, Atomics128) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0, .param .u64 p1) {
    .reg .b64 %rd<12>; .reg .b128 %q<6>;
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
    mov.u64 %rd3, 1; mov.u64 %rd4, 2; mov.u64 %rd5, 3; mov.u64 %rd6, 4;
    mov.b128 %q1, {%rd3, %rd4}; mov.b128 %q2, {%rd5, %rd6};
    atom.global.cas.b128 %q3, [%rd1], %q1, %q2;
    atom.global.cas.b128 %q4, [%rd1], %q1, %q1;
    atom.global.exch.b128 %q5, [%rd1+16], %q2;
    st.global.b128 [%rd2], %q3; st.global.b128 [%rd2+16], %q4; st.global.b128 [%rd2+32], %q5;
    ret; })";
  r.buffers = {buffer_of<uint64_t>("cells", {1, 2, 7, 8}), output_of("old", 48)};
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  EXPECT_EQ(values_of<uint64_t>(r.buffers[0]), (std::vector<uint64_t>{3, 4, 3, 4}));
  EXPECT_EQ(values_of<uint64_t>(r.buffers[1]), (std::vector<uint64_t>{1, 2, 3, 4, 7, 8}));
}

TEST(CoreCall, CopyThatIgnoresItsSource) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0, .param .u64 p1) {
    .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
    .shared .align 16 .b8 tile[256];
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.ne.u32 %p1, %r2, 0;
    mov.u32 %r3, tile; shl.b32 %r4, %r1, 3; add.u32 %r3, %r3, %r4;
    cvt.u64.u32 %rd3, %r4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    cp.async.ca.shared.global [%r3], [%rd4], 8, %p1;
    cp.async.wait_all;
    ld.shared.v2.u32 {%r5, %r6}, [%r3]; st.global.v2.u32 [%rd5], {%r5, %r6};
    ret; })";
  std::vector<uint32_t> in(64);
  for (uint32_t i = 0; i < 64; i++) in[i] = i + 1;
  r.buffers = {buffer_of("in", in, true), output_of("out", 256)};
  r.block = {32};
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  auto out = values_of<uint32_t>(r.buffers[1]);
  for (uint32_t i = 0; i < 64; i++) EXPECT_EQ(out[i], i / 2 % 2 ? 0 : i + 1) << i;
}

}  // namespace
}  // namespace ptxbench::emu::test
