// bar, barrier.cluster, mbarrier: waiting, deadlocks and their reports.

#include "emu/ptx_runner.h"

namespace ptxbench::emu::test {
namespace {

using plan::RunStatus;

TEST(CoreBarrier, BlockReductionThroughSharedMemory) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<3>;
    .shared .align 4 .b8 s[1024];
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, s;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    mov.u32 %r4, 128;
  L: bar.sync 0;
    setp.ge.u32 %p1, %r1, %r4;
    @%p1 bra SKIP;
    shl.b32 %r5, %r4, 2;
    add.u32 %r5, %r3, %r5;
    ld.shared.u32 %r6, [%r5];
    ld.shared.u32 %r7, [%r3];
    add.u32 %r7, %r7, %r6;
    st.shared.u32 [%r3], %r7;
  SKIP:
    shr.u32 %r4, %r4, 1;
    setp.ne.u32 %p2, %r4, 0;
    @%p2 bra L;
    bar.sync 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra END;
    ld.shared.u32 %r7, [s];
    st.global.u32 [%rd1], %r7;
  END: ret; })";
  r.buffers = {output_of("out", 4)};
  r.block = {256};
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0])[0], 255u * 128u);
}

TEST(CoreBarrier, MissingWarpIsADeadlockThatNamesIt) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<3>; .reg .b32 %r<9>;
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 64;
    @%p1 bra OTHER;
    bar.sync 1, 128;
    bra END;
  OTHER:
    setp.ge.u32 %p1, %r1, 96;
    @%p1 bra END;
    bar.sync 2, 64;
  END: ret; })";
  r.buffers = {output_of("out", 4)};
  r.block = {128};
  r.go();
  EXPECT_EQ(r.result.status, RunStatus::deadlock);
  const plan::Finding* f = r.finding("deadlock");
  ASSERT_TRUE(f);
  EXPECT_NE(f->message.find("64 of 128 threads arrived"), std::string::npos) << f->message;
  EXPECT_NE(f->message.find("absent"), std::string::npos) << f->message;
}

// An exited warp no longer counts for a barrier without a thread count.
TEST(CoreBarrier, ExitedWarpsDoNotHoldUpTheOthers) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<3>; .reg .b32 %r<9>;
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 32;
    @%p1 exit;
    bar.sync 0;
    ret; })";
  r.buffers = {output_of("out", 4)};
  r.block = {96};
  r.go();
  EXPECT_EQ(r.result.status, RunStatus::completed) << r.result.message;
}

TEST(CoreBarrier, ReductionBarrierCountsPredicates) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 50;
    bar.red.popc.u32 %r2, 0, %p1;
    bar.red.and.pred %p2, 0, %p1;
    bar.red.or.pred %p3, 0, %p1;
    selp.u32 %r3, 1000, 0, %p2;
    selp.u32 %r4, 100, 0, %p3;
    add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4;
    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret; })";
  r.buffers = {output_of("out", 96 * 4)};
  r.block = {96};
  r.go();
  ASSERT_EQ(r.error, "");
  for (uint32_t v : values_of<uint32_t>(r.buffers[0])) EXPECT_EQ(v, 150u);
}

// Two warps hand a value over with an mbarrier; the second phase is left without arrivals on
// request.
std::string handover(bool second_arrival) {
  return std::string(R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %rd<5>;
    .shared .align 8 .b64 bar; .shared .align 4 .b32 box;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, bar;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra INITED;
    mbarrier.init.shared::cta.b64 [%r2], 32;
  INITED:
    bar.sync 0;
    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra CONSUMER;
    st.shared.u32 [box], 41;
    mbarrier.arrive.shared::cta.b64 _, [%r2];
    bar.sync 3, 64;
)") + (second_arrival ? "    mbarrier.arrive.shared::cta.b64 _, [%r2];\n" : "") +
         R"(    bra END;
  CONSUMER:
    mov.u32 %r3, 0;
  W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], %r3;
    @!%p2 bra W;
    ld.shared.u32 %r4, [box];
    bar.sync 3, 64;   // a wait by parity sees only the phase before: the next one must not end too soon
  W2: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 1;
    @!%p2 bra W2;
    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r4;
  END: ret; })";
}

TEST(CoreBarrier, MbarrierPhasesHandOver) {
  PtxRun r;
  r.ptx = handover(true);
  r.buffers = {output_of("out", 64 * 4)};
  r.block = {64};
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.result.status, RunStatus::completed) << r.result.message;
  EXPECT_EQ(r.kinds(), "");
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0])[40], 41u);
}

TEST(CoreBarrier, MissingArrivalIsADeadlockOnTheNamedBarrier) {
  PtxRun r;
  r.ptx = handover(false);
  r.buffers = {output_of("out", 64 * 4)};
  r.block = {64};
  r.go();
  EXPECT_EQ(r.result.status, RunStatus::deadlock);
  const plan::Finding* f = r.finding("deadlock");
  ASSERT_TRUE(f);
  EXPECT_NE(f->message.find("mbarrier bar+0"), std::string::npos) << f->message;
  EXPECT_NE(f->message.find("32 of 32 arrivals pending"), std::string::npos) << f->message;
}

TEST(CoreBarrier, MbarrierMisuseIsFound) {
  struct Case {
    const char* body;
    const char* kind;
  };
  for (const Case& c :
       {Case{"mbarrier.arrive.shared::cta.b64 _, [%r2];", "mbarrier-uninitialized"},
        Case{"mbarrier.init.shared::cta.b64 [%r2], 1; ld.shared.u32 %r3, [%r2];",
             "mbarrier-access"},
        Case{"mbarrier.init.shared::cta.b64 [%r2], 1; st.shared.u32 [%r2], 0;", "mbarrier-access"},
        Case{"mbarrier.init.shared::cta.b64 [%r2], 1; mbarrier.init.shared::cta.b64 [%r2], 1;",
             "mbarrier-reinit"},
        Case{"mbarrier.init.shared::cta.b64 [%r2], 2; mbarrier.arrive.shared::cta.b64 _, [%r2], 3;",
             "mbarrier-arrival-overflow"}}) {
    PtxRun r;
    r.ptx = std::string(
                ".visible .entry k(.param .u64 p0) { .reg .b32 %r<9>; .shared .align 8 .b64 bar; "
                "mov.u32 %r2, bar; ") +
            c.body + " ret; }";
    r.buffers = {output_of("out", 4)};
    r.block = {1};
    r.go();
    EXPECT_EQ(r.error, "") << c.body;
    EXPECT_TRUE(r.finding(c.kind)) << c.body << ": " << r.kinds();
  }
}

TEST(CoreBarrier, ClusterBarrierRemoteArriveAndDistributedSharedMemory) {
  PtxRun r;
  // Every CTA writes its rank into its right neighbour's shared memory, then reads its own.
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %rd<5>;
    .shared .align 4 .b32 box;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %cluster_ctarank;
    add.u32 %r2, %r1, 1; and.b32 %r2, %r2, 3;
    mov.u32 %r3, box;
    mapa.shared::cluster.u32 %r4, %r3, %r2;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    st.shared::cluster.u32 [%r4], %r1;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ld.shared.u32 %r5, [box];
    mov.u32 %r6, %ctaid.x;
    mul.wide.u32 %rd2, %r6, 4; add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r5;
    ret; })";
  r.buffers = {output_of("out", 8 * 4)};
  r.grid = {8}, r.block = {32}, r.cluster = {4}, r.explicit_cluster = true;
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0]), (std::vector<uint32_t>{3, 0, 1, 2, 3, 0, 1, 2}));
}

TEST(CoreBarrier, ClusterWaitWithoutAnArriveIsFound) {
  auto run = [](const std::string& arrive) {
    PtxRun r;
    r.ptx = ".visible .entry k(.param .u64 p0) { " + arrive +
            " barrier.cluster.wait.acquire.aligned; barrier.cluster.arrive.relaxed.aligned; "
            "barrier.cluster.wait.aligned; ret; }";
    r.buffers = {output_of("o", 4)};
    r.grid = r.cluster = {2}, r.block = {64};
    r.explicit_cluster = true;
    return r.go(), r;
  };
  EXPECT_EQ(run("barrier.cluster.arrive.release.aligned;").kinds(), "");
  PtxRun r = run("");
  ASSERT_TRUE(r.finding("cluster-barrier-unmatched")) << r.error << r.kinds();
  EXPECT_EQ(r.finding("cluster-barrier-unmatched")->hazard, plan::HazardClass::fatal);
}

TEST(CoreBarrier, SharedMemoryOfAnExitedCtaIsGone) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<5>; .reg .b32 %r<9>;
    .shared .align 4 .b32 box;
    mov.u32 %r1, %cluster_ctarank;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 exit;
    nanosleep.u32 100;
    mov.u32 %r3, box;
    mapa.shared::cluster.u32 %r4, %r3, 0;
    st.shared::cluster.u32 [%r4], %r1;
    ret; })";
  r.buffers = {output_of("out", 4)};
  r.grid = {2}, r.block = {32}, r.cluster = {2}, r.explicit_cluster = true;
  r.go();
  EXPECT_EQ(r.result.status, RunStatus::fault);
  EXPECT_TRUE(r.finding("out-of-bounds")) << r.kinds();
}

// 256 threads share 65,536 registers: 128 x 232 + 128 x 240 fit only after the first group gave
// some back.
std::string trade(const char* first, const char* second) {
  return std::string(R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<5>; .reg .b32 %r<9>;
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 128;
    @%p1 bra SECOND;
    setmaxnreg.)") +
         first + R"(;
    bra END;
  SECOND:
    setmaxnreg.)" +
         second + R"(;
  END: ret; })";
}

TEST(CoreBarrier, RegistersAreTradedWithinTheCtasPool) {
  PtxRun r;
  r.buffers = {output_of("out", 4)};
  r.block = {256};
  for (const char* first : {"dec.sync.aligned.u32 40", "dec.sync.aligned.u32 240"}) {
    r.ptx = trade(first, "inc.sync.aligned.u32 256");
    r.go();
    EXPECT_EQ(r.result.status, RunStatus::completed) << first << r.error << r.result.message;
  }
  r.block = {384};  // 168 registers a thread at most
  r.ptx = trade("dec.sync.aligned.u32 160", "inc.sync.aligned.u32 240");
  r.go();
  EXPECT_EQ(r.result.status, RunStatus::deadlock);
  ASSERT_TRUE(r.finding("deadlock")) << r.kinds();
  EXPECT_NE(r.finding("deadlock")->message.find("setmaxnreg.inc"), std::string::npos)
      << r.finding("deadlock")->message;
}

TEST(CoreBarrier, ShuffleWaitsForItsMembersAndNeverComingOnesDeadlock) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 16;
    @%p1 exit;
    shfl.sync.idx.b32 %r2, %r1, 3, 31, 0x0000ffff;
    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret; })";
  r.buffers = {output_of("out", 16 * 4)};
  r.block = {32};
  r.go();
  ASSERT_EQ(r.error, "");
  for (uint32_t v : values_of<uint32_t>(r.buffers[0])) EXPECT_EQ(v, 3u);

  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<5>; .reg .b32 %r<9>;
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 16;
    @%p1 bra OTHER;
    shfl.sync.idx.b32 %r2, %r1, 3, 31, 0xffffffff;
    bra END;
  OTHER: bar.sync 1, 64;
  END: ret; })";
  r.result = {};
  r.go();
  EXPECT_EQ(r.result.status, RunStatus::deadlock) << r.kinds();
}

}  // namespace
}  // namespace ptxbench::emu::test
