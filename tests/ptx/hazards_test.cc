// Each hazard on the smallest code that has it, and silence on the same code done right.
#include "ptx/hazards.h"

#include <set>

#include "ptx/def_use.h"
#include "ptx/ptx_test_util.h"
#include "ptx/uniformity.h"

namespace ptxbench::ptx {
namespace {

const std::string
    kFence = "wgmma.fence.sync.aligned;",
    kCommit = "wgmma.commit_group.sync.aligned;", kWait = "wgmma.wait_group.sync.aligned 0;",
    kUse = "st.global.f32 [%rd3], %f1;",
    kWgmma =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, %rd1, "
        "%rd2, 1, 1, 1, 0, 0;",
    kLoad =
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%r1], [%rd1, {%r2, %r3}], [%r4];",
    kStore =
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r2, %r3}], "
        "[%r4];",
    kStored = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
    kTry = "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], %r5;",
    kInit = "mbarrier.init.shared::cta.b64 [%r4], 1;", kTid = "mov.u32 %r9, %tid.x; ",
    kLd = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];";

std::string kinds(std::string_view body, std::string_view target = "sm_90a") {
  std::string text;
  for (const StaticHazard& h : static_hazards(parse_ok(kernel(body, target)))) {
    EXPECT_FALSE(h.message.empty());
    EXPECT_GT(h.line, 0u);
    text += (text.empty() ? "" : " ") + h.kind;
  }
  return text;
}

struct Case {
  std::string wrong, kind, right;
  std::string target = "sm_90a";
};

std::vector<Case> cases() {
  return {
      {kWgmma + kCommit + kWait + "ret;", "wgmma-without-fence",
       kFence + kWgmma + kCommit + kWait + "ret;"},
      {"@%p1 bra L;" + kFence + "L:" + kWgmma + kCommit + kWait + "ret;", "wgmma-without-fence",
       "@%p1 bra L;" + kFence + "bra M; L:" + kFence + "M:" + kWgmma + kCommit + kWait + "ret;"},
      {kFence + kWgmma + kWait + "ret;", "wgmma-not-committed",
       kFence + kWgmma + kCommit + kWait + "ret;"},
      {kFence + kWgmma + kCommit + "@%p1 bra L;" + kWait + "L: ret;", "wgmma-not-waited",
       kFence + kWgmma + kCommit + "@%p1 bra L; L:" + kWait + "ret;"},
      {kFence + kWgmma + kCommit + kUse + kWait + "ret;", "wgmma-read-early",
       kFence + kWgmma + kCommit + kWait + kUse + "ret;"},
      {kFence + kWgmma + kCommit + "mov.f32 %f9, %f1; st.global.f32 [%rd3], %f9;" + kWait + "ret;",
       "wgmma-read-early",
       kFence + kWgmma + kCommit + "mov.f32 %f9, %f1;" + kWait + "st.global.f32 [%rd3], %f9; ret;"},
      {"st.shared.u32 [%r1], %r2; bar.sync 0;" + kStore + kStored + "ret;",
       "shared-write-not-fenced",
       "st.shared.u32 [%r1], %r2; fence.proxy.async; bar.sync 0;" + kStore + kStored + "ret;"},
      {"st.shared.u32 [%r1], %r2; bar.sync 0;" + kFence + kWgmma + kCommit + kWait + "ret;",
       "shared-write-not-fenced",
       "st.shared.u32 [%r1], %r2; fence.proxy.async.shared::cta; bar.sync 0;" + kFence + kWgmma +
           kCommit + kWait + "ret;"},
      {kInit + "bar.sync 0;" + kLoad + kTry + "ret;", "mbarrier-init-not-fenced",
       kInit + "fence.mbarrier_init.release.cluster; bar.sync 0;" + kLoad + kTry + "ret;"},
      {kInit + kTry + "ret;", "mbarrier-init-not-synchronised",
       kInit + "bar.sync 0;" + kTry + "ret;"},
      {kStore + "cp.async.bulk.wait_group 0; ret;", "bulk-store-not-committed",
       kStore + kStored + "ret;"},
      {kStore + "cp.async.bulk.commit_group; ret;", "bulk-store-not-waited",
       kStore + "cp.async.bulk.commit_group; @%p1 bra L; cp.async.bulk.wait_group.read 0; L: ret;"},
      {kLoad + "ret;", "bulk-load-not-waited", kLoad + kTry + "ret;"},
      {"cp.async.ca.shared.global [%r1], [%rd1], 16; ret;", "cp-async-not-waited",
       "cp.async.ca.shared.global [%r1], [%rd1], 16; cp.async.wait_all; ret;"},
      {"setmaxnreg.inc.sync.aligned.u32 100; ret;", "setmaxnreg-count",
       "setmaxnreg.inc.sync.aligned.u32 104; ret;"},
      {kTid + "setp.lt.u32 %p1, %r9, 160; @%p1 bra L; setmaxnreg.inc.sync.aligned.u32 104; bra M; "
              "L: setmaxnreg.dec.sync.aligned.u32 40; M: bar.sync 0; bar.sync 0; ret;",
       "setmaxnreg-diverged",
       kTid + "setp.lt.u32 %p1, %r9, 128; @%p1 bra L; setmaxnreg.inc.sync.aligned.u32 104; bra M; "
              "L: setmaxnreg.dec.sync.aligned.u32 40; M: bar.sync 0; bar.sync 0; ret;"},
      {kTid + "setp.lt.u32 %p1, %r9, 16; @!%p1 bra L;" + kLd +
           "L: bar.sync 0; bar.sync 0; "
           "bar.sync 0; bar.sync 0; ret;",
       "aligned-diverged",
       kTid + "setp.lt.u32 %p1, %r9, 96; @!%p1 bra L;" + kLd +
           "L: bar.sync 0; bar.sync 0; "
           "bar.sync 0; bar.sync 0; ret;"},
      {"bar.sync 16; ret;", "barrier-id", "bar.sync 15; ret;"},
      {"bar.sync 1, 100; ret;", "barrier-count", "bar.sync 1, 96; ret;"},
      {"bar.sync 1, 96; bar.arrive 1, 128; ret;", "barrier-counts-differ",
       "bar.sync 1, 96; bar.arrive 1, 96; bar.sync 2, 128; ret;"},
      {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64; ret;",
       "tcgen05-not-deallocated",
       "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64; "
       "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 64; ret;",
       "sm_100a"},
      {"tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1; ret;",
       "tcgen05-mma-not-committed",
       "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1; "
       "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3]; ret;",
       "sm_100a"},
      {"tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2]; tcgen05.wait::st.sync.aligned; ret;",
       "tcgen05-ld-not-waited",
       "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2]; tcgen05.wait::ld.sync.aligned; ret;",
       "sm_100a"},
      {"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r1}; ret;", "tcgen05-st-not-waited",
       "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r1}; tcgen05.wait::st.sync.aligned; ret;",
       "sm_100a"},
  };
}

TEST(StaticHazards, EachKindIsFoundAndItsCureIsSilent) {
  std::set<std::string> covered;
  for (const Case& c : cases()) {
    EXPECT_EQ(kinds(c.wrong, c.target), c.kind) << c.wrong;
    EXPECT_EQ(kinds(c.right, c.target), "") << c.right;
    covered.insert(c.kind);
  }
  for (const HazardKind& kind : hazard_kinds()) EXPECT_TRUE(covered.count(kind.kind)) << kind.kind;
}

TEST(StaticHazards, OneOfAKindAFunctionWithItsSites) {
  const auto found = static_hazards(parse_ok(kernel("bar.sync 16;\nbar.sync 17;\nret;")));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].sites, 2u);
  EXPECT_EQ(found[0].line, 7u);
  EXPECT_TRUE(found[0].certain);
  EXPECT_EQ(found[0].ptx, "bar.sync 16;");
  EXPECT_EQ(found[0].function, "k");
}

TEST(StaticHazards, WhatACalleeMayDoIsBelieved) {
  const std::string text = header() + ".func f() { " + kFence +
                           " ret; }\n.entry k() {\n.reg .f32 %f<5>; .reg .b64 "
                           "%rd<3>;\ncall f;" +
                           kWgmma + kCommit + kWait + "ret; }";
  EXPECT_TRUE(static_hazards(parse_ok(text)).empty());
}

TEST(StaticHazards, CompiledKernelsAreClean) {
  for (const char* name : {"hopper", "calls", "warps", "memory", "math", "templates"})
    for (const StaticHazard& h : static_hazards(parse_ok(read_corpus(name)))) {
      // "pipelines" strings instructions together that would not work.
      if (h.function.find("pipelines") == std::string::npos)
        ADD_FAILURE() << name << " " << h.function << ":" << h.line << " " << h.kind << h.ptx;
    }
}

// The level of what the last instruction that writes `reg` gives it.
uint8_t level(const std::string& body, const std::string& reg) {
  Module m = parse_ok(kernel(body));
  ControlFlow flow(m.functions[0]);
  Uniformity u(flow);
  for (uint32_t n = static_cast<uint32_t>(flow.instructions().size()); n-- > 0;) {
    bool writes = false;
    for_each_register(*flow.instructions()[n], [&](uint32_t r, bool write) {
      writes |= write && m.functions[0].registers[r].name == reg;
    });
    if (writes) return u.of_result(n);
  }
  ADD_FAILURE() << reg;
  return 0;
}

TEST(Uniformity, Levels) {
  EXPECT_EQ(level("mov.u32 %r1, %ctaid.x;", "%r1"), Uniformity::kUniform);
  EXPECT_EQ(level("mov.u32 %r1, %tid.x;", "%r1"), 0);
  EXPECT_EQ(level("mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; add.s32 %r3, %r2, -4;", "%r3"), 5);
  EXPECT_EQ(level("mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; shr.u32 %r3, %r2, 2;", "%r3"), 7);
  EXPECT_EQ(level("mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.lt.u32 %p1, %r2, 4;", "%p1"), 7);
  EXPECT_EQ(level("mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 127;", "%p1"), 7);
  EXPECT_EQ(level("mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;", "%p1"), 0);
  EXPECT_EQ(level("mov.u32 %r1, %tid.x; and.b32 %r2, %r1, -32;", "%r2"), 5);
  EXPECT_EQ(level("mov.u32 %r1, %tid.x; div.u32 %r2, %r1, 96;", "%r2"), 5);
  EXPECT_EQ(level("mov.u32 %r1, %laneid; shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;", "%r2"), 5);
  EXPECT_EQ(level("elect.sync _|%p1, -1;", "%p1"), 0);
  // One register in two branches: each has its own level.
  EXPECT_EQ(
      level("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 128; mov.u32 %r2, %ctaid.x; @%p1 bra L; "
            "add.u32 %r2, %r2, %r1; bra M; L: add.u32 %r2, %r2, 1; M: ret;",
            "%r2"),
      7);
  // A value that depends on which way a thread went.
  EXPECT_EQ(level("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; mov.u32 %r2, 0; @%p1 bra L; "
                  "mov.u32 %r2, 1; bra M; L: mov.u32 %r2, 2; M: add.u32 %r3, %r2, 1; "
                  "add.u32 %r3, %r3, 1; add.u32 %r3, %r3, 1; ret;",
                  "%r3"),
            5);
}

}  // namespace
}  // namespace ptxbench::ptx
