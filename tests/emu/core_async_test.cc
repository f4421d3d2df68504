// Asynchronous copies and wgmma: late completion, early reads, proxy fences, sources in flight.

#include "emu/ptx_runner.h"
#include "numeric/float_formats.h"

namespace ptxbench::emu::test {
namespace {

using plan::HazardClass;
using plan::RunStatus;

// A bulk copy of 256 bytes into shared memory; `middle` runs between the copy and the read of its
// destination.
std::string bulk_kernel(const std::string& expect, const std::string& middle) {
  return R"(.visible .entry k(.param .u64 p0, .param .u64 p1) {
    .reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
    .shared .align 8 .b64 bar; .shared .align 128 .b8 buf[256];
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, bar; mov.u32 %r3, buf;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra START;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], )" +
         expect + R"(;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 256, [%r2];
  START:
    bar.sync 0;
)" + middle +
         R"(
    shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r3;
    ld.shared.u32 %r5, [%r4];
    mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r5;
    ret; })";
}
const char* kWait = R"(  W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
    @!%p2 bra W;)";

std::vector<uint32_t> numbers(size_t n) {
  std::vector<uint32_t> v(n);
  for (size_t i = 0; i < n; i++) v[i] = static_cast<uint32_t>(i * 3 + 1);
  return v;
}

PtxRun bulk_run(const std::string& ptx, plan::AsyncMode mode) {
  PtxRun r;
  r.ptx = ptx;
  r.buffers = {buffer_of("in", numbers(64), true), output_of("out", 256)};
  r.block = {64};
  r.options.async = mode;
  r.go();
  return r;
}

TEST(CoreAsync, BulkCopyArrivesAtTheWait) {
  for (auto mode : {plan::AsyncMode::late, plan::AsyncMode::eager}) {
    PtxRun r = bulk_run(bulk_kernel("256", kWait), mode);
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.kinds(), "");
    EXPECT_EQ(values_of<uint32_t>(r.buffers[1]), numbers(64));
  }
}

// A valid program's result depends neither on the order of the warps nor on the length of their
// turns.
TEST(CoreAsync, AnyScheduleGivesTheSameResult) {
  for (int seed = 1; seed <= 8; seed++) {
    PtxRun r;
    r.ptx = bulk_kernel("256", kWait);
    r.buffers = {buffer_of("in", numbers(64), true), output_of("out", 256)};
    r.block = {64};
    r.options.schedule = "random:" + std::to_string(seed);
    r.go();
    EXPECT_EQ(r.kinds(), "") << seed;
    EXPECT_EQ(values_of<uint32_t>(r.buffers[1]), numbers(64)) << seed;
  }
}

// Without the wait the value is poison and the finding is there, however early the copy is
// performed.
TEST(CoreAsync, ReadingBeforeTheWaitIsAnEarlyReadOfPoison) {
  for (auto mode : {plan::AsyncMode::late, plan::AsyncMode::eager}) {
    PtxRun r = bulk_run(bulk_kernel("256", ""), mode);
    const plan::Finding* f = r.finding("async-early-read");
    ASSERT_TRUE(f) << r.kinds();
    EXPECT_EQ(f->hazard, HazardClass::fatal);
    for (uint32_t v : values_of<uint32_t>(r.buffers[1])) EXPECT_EQ(v, 0xffffffffu);
  }
}

// Only warp 0 waits; warp 1 has no knowledge of the arrival unless a barrier hands it on.
TEST(CoreAsync, KnowledgeOfAnArrivalSpreadsThroughBarriersOnly) {
  std::string warp0 = R"(
    setp.ge.u32 %p3, %r1, 32;
    @%p3 bra SKIP;
  W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
    @!%p2 bra W;
  SKIP: )";
  PtxRun handed = bulk_run(bulk_kernel("256", warp0 + "bar.sync 0;"), plan::AsyncMode::late);
  EXPECT_EQ(handed.kinds(), "");
  EXPECT_EQ(values_of<uint32_t>(handed.buffers[1]), numbers(64));
  for (auto mode : {plan::AsyncMode::late, plan::AsyncMode::eager}) {
    PtxRun alone = bulk_run(bulk_kernel("256", warp0 + "nanosleep.u32 20;"), mode);
    const plan::Finding* f = alone.finding("async-early-read");
    ASSERT_TRUE(f) << alone.kinds();
    EXPECT_EQ(f->warp, 1);
  }
}

TEST(CoreAsync, InitialisingWithoutAFenceIsLatent) {
  std::string ptx = bulk_kernel("256", kWait);
  ptx.replace(ptx.find("fence.mbarrier_init.release.cluster;"), 36, "");
  PtxRun r = bulk_run(ptx, plan::AsyncMode::late);
  const plan::Finding* f = r.finding("mbarrier-fence-missing");
  ASSERT_TRUE(f) << r.kinds();
  EXPECT_EQ(f->hazard, HazardClass::latent);
  EXPECT_EQ(values_of<uint32_t>(r.buffers[1]), numbers(64));
  ptx.insert(ptx.find("mbarrier.arrive.expect_tx"), "fence.proxy.async.shared::cta; ");
  EXPECT_EQ(bulk_run(ptx, plan::AsyncMode::late).kinds(), "");
}

TEST(CoreAsync, ExitWithALoadInFlightIsLatent) {
  std::string ptx = bulk_kernel("256", "ret;");
  PtxRun r = bulk_run(ptx, plan::AsyncMode::late);
  const plan::Finding* f = r.finding("bulk-load-unfinished");
  ASSERT_TRUE(f) << r.kinds();
  EXPECT_EQ(f->hazard, HazardClass::latent);
}

TEST(CoreAsync, WrongTransactionCountIsADeadlockWithTheMissingBytes) {
  PtxRun more = bulk_run(bulk_kernel("260", kWait), plan::AsyncMode::late);
  EXPECT_EQ(more.result.status, RunStatus::deadlock);
  ASSERT_TRUE(more.finding("deadlock"));
  EXPECT_NE(more.finding("deadlock")->message.find("4 bytes of transactions missing"),
            std::string::npos)
      << more.finding("deadlock")->message;
  EXPECT_NE(more.finding("deadlock")->hint.find("expect_tx"), std::string::npos);
  PtxRun less = bulk_run(bulk_kernel("128", kWait), plan::AsyncMode::late);
  EXPECT_EQ(less.result.status, RunStatus::deadlock);
  EXPECT_NE(less.result.message.find("128 bytes more"), std::string::npos) << less.result.message;
}

TEST(CoreAsync, CopyOutsideABufferIsAFault) {
  PtxRun r;
  r.ptx = bulk_kernel("256", kWait);
  r.buffers = {buffer_of("in", numbers(32), true), output_of("out", 256)};
  r.block = {64};
  r.go();
  EXPECT_EQ(r.result.status, RunStatus::fault);
  ASSERT_TRUE(r.finding("out-of-bounds")) << r.kinds();
  EXPECT_NE(r.finding("out-of-bounds")->message.find("of in"), std::string::npos);
}

// Ordinary stores to shared memory, then a bulk store of it; `fence` and `after` are put in.
PtxRun store_run(const std::string& fence, const std::string& after, plan::AsyncMode mode) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
    .shared .align 128 .b8 buf[256];
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    mov.u32 %r3, buf;
    shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r3;
    add.u32 %r5, %r1, 100;
    st.shared.u32 [%r4], %r5;
    )" + fence +
          R"(
    bar.sync 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra END;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r3], 256;
    cp.async.bulk.commit_group;
    )" + after +
          R"(
  END: ret; })";
  r.buffers = {output_of("out", 256)};
  r.block = {64};
  r.options.async = mode;
  r.go();
  return r;
}

TEST(CoreAsync, BulkStoreNeedsTheProxyFence) {
  const char* wait = "cp.async.bulk.wait_group.read 0;";
  for (auto mode : {plan::AsyncMode::late, plan::AsyncMode::eager}) {
    PtxRun good = store_run("fence.proxy.async.shared::cta;", wait, mode);
    ASSERT_EQ(good.error, "");
    EXPECT_EQ(good.kinds(), "");
    EXPECT_EQ(values_of<uint32_t>(good.buffers[0])[63], 163u);
    PtxRun bad = store_run("", wait, mode);
    const plan::Finding* f = bad.finding("missing-proxy-fence");
    ASSERT_TRUE(f) << bad.kinds();
    EXPECT_EQ(f->hazard, HazardClass::latent);
    EXPECT_EQ(values_of<uint32_t>(bad.buffers[0])[63], 163u);  // latent: the values are right
  }
}

// The issuing thread may fence for the others once a barrier has ordered their writes before it.
TEST(CoreAsync, FenceAfterTheBarrierByTheIssuerCoversTheOthers) {
  PtxRun r = store_run("bar.sync 1; fence.proxy.async.shared::cta;",
                       "cp.async.bulk.wait_group.read 0;", plan::AsyncMode::late);
  EXPECT_EQ(r.kinds(), "");
}

TEST(CoreAsync, ReusingTheSourceBeforeTheWaitIsFatalAndShowsInTheValues) {
  PtxRun r =
      store_run("fence.proxy.async.shared::cta;",
                "st.shared.u32 [buf], 7; cp.async.bulk.wait_group.read 0;", plan::AsyncMode::late);
  const plan::Finding* f = r.finding("async-source-overwritten");
  ASSERT_TRUE(f) << r.kinds();
  EXPECT_EQ(f->hazard, HazardClass::fatal);
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0])[0], 7u);
}

TEST(CoreAsync, ExitWithoutWaitingIsLatentAndStillStores) {
  PtxRun r = store_run("fence.proxy.async.shared::cta;", "", plan::AsyncMode::late);
  EXPECT_TRUE(r.finding("bulk-store-unfinished")) << r.kinds();
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0])[63], 163u);
}

TEST(CoreAsync, CpAsyncGroupsCompleteAtTheirWait) {
  for (auto mode : {plan::AsyncMode::late, plan::AsyncMode::eager})
    for (int left : {1, 0}) {
      PtxRun r;
      r.ptx = R"(.visible .entry k(.param .u64 p0, .param .u64 p1) {
        .reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 16 .b8 buf[64];
        ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
        mov.u32 %r1, buf;
        cp.async.ca.shared.global [%r1], [%rd1], 16;
        cp.async.commit_group;
        cp.async.ca.shared.global [%r1+16], [%rd1+16], 16, 8;
        cp.async.commit_group;
        cp.async.wait_group )" +
              std::to_string(left) + R"(;
        ld.shared.u32 %r2, [buf+4]; ld.shared.u32 %r3, [buf+20]; ld.shared.u32 %r4, [buf+28];
        st.global.u32 [%rd2], %r2; st.global.u32 [%rd2+4], %r3; st.global.u32 [%rd2+8], %r4;
        ret; })";
      r.buffers = {buffer_of("in", numbers(8), true), output_of("out", 12)};
      r.block = {1};
      r.options.async = mode;
      r.go();
      ASSERT_EQ(r.error, "");
      auto out = values_of<uint32_t>(r.buffers[1]);
      EXPECT_EQ(out[0], 4u);
      if (left == 0 || mode == plan::AsyncMode::eager) {
        EXPECT_EQ(r.kinds(), "");
        EXPECT_EQ(out[1], 16u);
        EXPECT_EQ(out[2], 0u);  // beyond the source size: zeros
      } else {
        EXPECT_TRUE(r.finding("async-early-read")) << r.kinds();
        EXPECT_EQ(out[1], 0xffffffffu);
      }
    }
}

// ------------------------------------------------------------------------------------------- wgmma
// D[64,8] = A[64,16] * B[8,16]^T, K-major without swizzle, written to shared memory by ordinary
// stores. `parts` replaces: {fence} after the stores, {init} before, {commit}, {wait}.
std::string wgmma_kernel(std::string fence, std::string arrive, std::string commit,
                         std::string wait) {
  return R"(.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2) {
    .reg .pred %p<5>; .reg .b16 %rs<4>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<8>;
    .shared .align 128 .b8 sa[2048]; .shared .align 128 .b8 sb[256];
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; ld.param.u64 %rd3, [p2];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, sa; mov.u32 %r3, sb;
    // The host lays A and B out as the descriptor wants them: copy 16 and 2 bytes a thread.
    mul.wide.u32 %rd4, %r1, 16; add.s64 %rd5, %rd1, %rd4;
    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd5];
    shl.b32 %r8, %r1, 4; add.u32 %r8, %r8, %r2;
    st.shared.v4.u32 [%r8], {%r4, %r5, %r6, %r7};
    mul.wide.u32 %rd4, %r1, 2; add.s64 %rd5, %rd2, %rd4;
    ld.global.u16 %rs1, [%rd5];
    shl.b32 %r8, %r1, 1; add.u32 %r8, %r8, %r3;
    st.shared.u16 [%r8], %rs1;
    )" + fence +
         R"(
    bar.sync 0;
    // start>>4 | LBO 128 >> 4 << 16 | SBO 256 >> 4 << 32
    shr.u32 %r9, %r2, 4; cvt.u64.u32 %rd6, %r9; or.b64 %rd6, %rd6, 0x1000080000;
    shr.u32 %r9, %r3, 4; cvt.u64.u32 %rd7, %r9; or.b64 %rd7, %rd7, 0x1000080000;
    mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000; mov.f32 %f4, 0f00000000;
    )" + arrive +
         R"(
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd6, %rd7, 1, 1, 1, 0, 0;
    )" + commit +
         "\n" + wait + R"(
    mul.wide.u32 %rd4, %r1, 16; add.s64 %rd5, %rd3, %rd4;
    st.global.v4.f32 [%rd5], {%f1, %f2, %f3, %f4};
    ret; })";
}

constexpr char kFence[] = "fence.proxy.async.shared::cta;", kArrive[] = "wgmma.fence.sync.aligned;",
               kCommit[] = "wgmma.commit_group.sync.aligned;",
               kGroupWait[] = "wgmma.wait_group.sync.aligned 0;";

// A[m][k] = m + k/16, B[n][k] = n - k, both exact in bf16 at these sizes.
float a_value(int m, int k) { return static_cast<float>(m % 8) + static_cast<float>(k); }
float b_value(int n, int k) { return static_cast<float>(n - k); }

PtxRun wgmma_run(const std::string& ptx, plan::AsyncMode mode = plan::AsyncMode::late,
                 uint32_t threads = 128) {
  std::vector<uint16_t> a(1024), b(128);
  // Core matrices of 8 rows x 16 bytes; the next along K is 128 bytes on, along M (N) 256 bytes.
  auto at = [](int mn, int k) { return mn % 8 * 8 + k % 8 + k / 8 * 64 + mn / 8 * 128; };
  for (int k = 0; k < 16; k++) {
    for (int m = 0; m < 64; m++)
      a[static_cast<size_t>(at(m, k))] = numeric::bf16_from_float(a_value(m, k));
    for (int n = 0; n < 8; n++)
      b[static_cast<size_t>(at(n, k))] = numeric::bf16_from_float(b_value(n, k));
  }
  PtxRun r;
  r.ptx = ptx;
  r.buffers = {buffer_of("A", a, true), buffer_of("B", b, true), output_of("D", 128 * 16)};
  r.block = {threads};
  r.options.async = mode;
  r.go();
  return r;
}

void expect_product(const PtxRun& r) {
  auto d = values_of<float>(r.buffers[2]);
  for (int t = 0; t < 128; t++)
    for (int i = 0; i < 4; i++) {
      int row = 16 * (t / 32) + t % 32 / 4 + 8 * (i / 2), col = 2 * (t % 4) + i % 2;
      float want = 0;
      for (int k = 0; k < 16; k++) want += a_value(row, k) * b_value(col, k);
      ASSERT_EQ(d[static_cast<size_t>(t * 4 + i)], want) << "thread " << t << " register " << i;
    }
}

TEST(CoreWgmma, ProductIsRightInEveryMode) {
  for (auto mode : {plan::AsyncMode::late, plan::AsyncMode::eager}) {
    PtxRun r = wgmma_run(wgmma_kernel(kFence, kArrive, kCommit, kGroupWait), mode);
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.kinds(), "");
    EXPECT_EQ(r.warps("wgmma.mma_async"), 4u);
    EXPECT_EQ(r.result.kernels.at(0).tensor_flop, 2.0 * 64 * 8 * 16);
    expect_product(r);
  }
}

// What ptxas mends is executed as mended: right values, a finding of class repaired.
TEST(CoreWgmma, MissingFenceCommitOrWaitIsRepaired) {
  struct Case {
    std::string ptx;
    const char* kind;
  };
  for (const Case& c :
       {Case{wgmma_kernel(kFence, "", kCommit, kGroupWait), "wgmma-fence-missing"},
        Case{wgmma_kernel(kFence, kArrive, "", kGroupWait), "wgmma-commit-missing"},
        Case{wgmma_kernel(kFence, kArrive, kCommit, ""), "wgmma-register-access"}}) {
    PtxRun r = wgmma_run(c.ptx);
    ASSERT_EQ(r.error, "");
    const plan::Finding* f = r.finding(c.kind);
    ASSERT_TRUE(f) << c.kind << ": " << r.kinds();
    EXPECT_EQ(f->hazard, HazardClass::repaired);
    EXPECT_EQ(r.result.findings.size(), 1u) << r.kinds();
    expect_product(r);
  }
}

TEST(CoreWgmma, OrdinaryStoresNeedAProxyFence) {
  PtxRun r = wgmma_run(wgmma_kernel("", kArrive, kCommit, kGroupWait));
  const plan::Finding* f = r.finding("missing-proxy-fence");
  ASSERT_TRUE(f) << r.kinds();
  EXPECT_EQ(f->hazard, HazardClass::latent);
  expect_product(r);
}

TEST(CoreWgmma, OverwritingAnOperandInFlightIsFatal) {
  PtxRun r = wgmma_run(
      wgmma_kernel(kFence, kArrive, std::string(kCommit) + " st.shared.u32 [sa], 0;", kGroupWait));
  const plan::Finding* f = r.finding("async-operand-overwritten");
  ASSERT_TRUE(f) << r.kinds();
  EXPECT_EQ(f->hazard, HazardClass::fatal);
}

TEST(CoreWgmma, HalfAWarpgroupIsFatal) {
  PtxRun r =
      wgmma_run(wgmma_kernel(kFence, kArrive, kCommit, kGroupWait), plan::AsyncMode::late, 64);
  EXPECT_TRUE(r.finding("warpgroup-incomplete")) << r.kinds() << r.error;
}

// ------------------------------------------------------------------------------------------- TMA
// Strides so large that offsets leave 64 bits are a fault of the candidate, not a wild access of
// ours.
TEST(CoreTma, AbsurdStridesAreAFault) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0, .param .align 64 .b8 map[128]) {
    .reg .b32 %r<12>; .reg .b64 %rd<9>;
    .shared .align 8 .b64 bar; .shared .align 128 .b8 buf[256];
    mov.b64 %rd5, map; cvta.param.u64 %rd6, %rd5;
    mov.u32 %r2, bar; mov.u32 %r3, buf;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    mov.u32 %r4, 0; mov.u32 %r5, 0x7ffffff0;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%r3], [%rd6, {%r4, %r5}], [%r2];
    ret; })";
  plan::TensorMapArgs map;
  map.type = plan::MapType::u32;
  map.rank = 2;
  map.dims = {8, uint64_t{1} << 32};
  map.strides = {(uint64_t{1} << 40) - 16};
  map.box = {8, 8};
  map.element_strides = {1, 1};
  r.maps = {map};
  r.buffers = {buffer_of("in", numbers(64), true)};
  r.block = {1};
  r.go();
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.result.status, RunStatus::fault);
  EXPECT_TRUE(r.finding("out-of-bounds")) << r.kinds();
}

TEST(CoreTma, MulticastFillsEveryCtaAndClipsAtTheEdge) {
  // A box of 8x8 u32 over a 10x12 tensor, at (4, 8): rows 8..11 and columns 4..9 exist, the rest is
  // zero.
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0, .param .u64 p1, .param .align 64 .b8 map[128]) {
    .reg .pred %p<5>; .reg .b16 %rs<3>; .reg .b32 %r<12>; .reg .b64 %rd<9>;
    .shared .align 8 .b64 bar; .shared .align 128 .b8 buf[256];
    ld.param.u64 %rd2, [p1];
    mov.b64 %rd5, map; cvta.param.u64 %rd6, %rd5;
    mov.u32 %r1, %tid.x; mov.u32 %r9, %cluster_ctarank;
    mov.u32 %r2, bar; mov.u32 %r3, buf;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;
  READY:
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.ne.u32 %p1, %r1, 0;
    setp.ne.or.u32 %p1, %r9, 0, %p1;
    @%p1 bra WAIT;
    mov.u16 %rs1, 3;
    mov.u32 %r4, 4; mov.u32 %r5, 8;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
        [%r3], [%rd6, {%r4, %r5}], [%r2], %rs1;
  WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
    @!%p2 bra WAIT;
    shl.b32 %r6, %r1, 2; add.u32 %r6, %r6, %r3;
    ld.shared.u32 %r7, [%r6];
    mad.lo.u32 %r8, %r9, 64, %r1;
    mul.wide.u32 %rd3, %r8, 4; add.s64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r7;
    ret; })";
  plan::TensorMapArgs map;
  map.type = plan::MapType::u32;
  map.rank = 2;
  map.global_address = 0;
  map.dims = {10, 12};
  map.strides = {48};
  map.box = {8, 8};
  map.element_strides = {1, 1};
  r.maps = {map};
  r.buffers = {buffer_of("in", numbers(12 * 12), true), output_of("out", 2 * 256)};
  r.grid = {2}, r.block = {64}, r.cluster = {2}, r.explicit_cluster = true;
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  auto out = values_of<uint32_t>(r.buffers[1]);
  for (uint32_t c = 0; c < 2; c++)
    for (uint32_t y = 0; y < 8; y++)
      for (uint32_t x = 0; x < 8; x++) {
        uint32_t row = y + 8, col = x + 4;
        uint32_t want = row < 12 && col < 10 ? (row * 12 + col) * 3 + 1 : 0;
        EXPECT_EQ(out[c * 64 + y * 8 + x], want) << c << " " << y << " " << x;
      }
}

}  // namespace
}  // namespace ptxbench::emu::test
