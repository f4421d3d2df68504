// Planted races are found on every schedule; the same kernels with the order in place are silent.

#include "emu/ptx_runner.h"

namespace ptxbench::emu::test {
namespace {

using plan::HazardClass;

struct Launch {
  plan::Dim3 grid{1}, block{64}, cluster{1};
  size_t words = 256;  // of the output buffer, which starts with zeros
  uint32_t dynamic_shared = 0;
  std::vector<plan::TensorMapArgs> maps;
};

const char* kHead = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>;
    .shared .align 128 .b8 buf[4096]; .shared .align 8 .b64 bars[4]; .shared .align 4 .b32 flag;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, buf; shl.b32 %r4, %r1, 2; add.u32 %r5, %r3, %r4;
    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
)";

PtxRun run_once(const std::string& body, const Launch& s, const std::string& schedule,
                plan::AsyncMode async, int threads) {
  PtxRun r;
  r.ptx = kHead + body + "\n ret; }";
  r.buffers = {buffer_of("g", std::vector<uint32_t>(s.words))};
  r.grid = s.grid, r.block = s.block, r.cluster = s.cluster;
  r.explicit_cluster = s.cluster.count() > 1;
  r.dynamic_shared = s.dynamic_shared;
  r.maps = s.maps;
  r.options.schedule = schedule;
  r.options.async = async;
  r.options.threads = threads;
  r.options.races = true;
  return r.go(), r;
}

// Every schedule, async mode and number of threads says the same.
template <class F>
void on_every_schedule(const std::string& body, const Launch& s, const F& check) {
  for (const char* schedule : {"inorder", "random:1", "random:2", "random:3"})
    for (auto async : {plan::AsyncMode::late, plan::AsyncMode::eager})
      for (int threads : {1, 4}) {
        SCOPED_TRACE(std::string(schedule) + (async == plan::AsyncMode::late ? " late" : " eager"));
        PtxRun r = run_once(body, s, schedule, async, threads);
        ASSERT_EQ(r.error, "");
        check(r);
      }
}

void expect_race(const std::string& body, const Launch& s = {}) {
  on_every_schedule(body, s, [](const PtxRun& r) {
    const plan::Finding* f = r.finding("data-race");
    ASSERT_TRUE(f) << r.kinds() << r.result.message;
    EXPECT_EQ(f->hazard, HazardClass::latent);
    EXPECT_GT(f->ptx_line, 0);
    EXPECT_GT(f->other_ptx_line, 0) << f->message;
  });
}

void expect_order(const std::string& body, const Launch& s = {}) {
  on_every_schedule(body, s, [](const PtxRun& r) {
    EXPECT_EQ(r.kinds(), "") << (r.result.findings.empty() ? "" : r.result.findings[0].message);
    EXPECT_EQ(r.result.status, plan::RunStatus::completed) << r.result.message;
  });
}

std::string with(std::string body, const std::string& text) {
  const size_t at = body.find("{}");
  return body.replace(at, 2, text);
}

// ---------------------------------------------------------------------------------- shared memory

// Every thread writes its word and reads that of the thread 32 further.
const std::string kExchange = R"(
    st.shared.u32 [%r5], %r1;
    {}
    xor.b32 %r6, %r4, 128; add.u32 %r6, %r6, %r3;
    ld.shared.u32 %r7, [%r6];
    st.global.u32 [%rd3], %r7;)";

TEST(Races, MissingSyncthreads) {
  expect_race(with(kExchange, ""));
  expect_order(with(kExchange, "bar.sync 0;"));
  expect_order(with(kExchange, "barrier.sync.aligned 3, 64;"));
  expect_race(with(kExchange, "bar.warp.sync 0xffffffff;"));
  expect_race(with(kExchange, "membar.cta;"));  // a fence alone is no order
}

TEST(Races, BothPlacesAreNamed) {
  const std::string body = with(kExchange, "");
  PtxRun r = run_once(body, {}, "inorder", plan::AsyncMode::late, 1);
  const plan::Finding* f = r.finding("data-race");
  ASSERT_TRUE(f);
  const std::string text = ".version 9.0\n.target sm_90a\n.address_size 64\n" + (kHead + body);
  auto line_of = [&](const char* word) {
    return 1 + std::count(text.begin(), text.begin() + static_cast<long>(text.find(word)), '\n');
  };
  EXPECT_EQ(f->ptx_line, line_of("st.shared"));
  EXPECT_EQ(f->other_ptx_line, line_of("ld.shared"));
  EXPECT_NE(f->message.find("warp 1 writes buf+"), std::string::npos) << f->message;
  EXPECT_NE(f->message.find("warp 0 read at PTX line"), std::string::npos) << f->message;
}

// Neighbouring bytes are no conflict, however they share a word.
TEST(Races, BytesAreToldApart) {
  const std::string halves = R"(
    and.b32 %r8, %r1, 31; shl.b32 %r8, %r8, 2; add.u32 %r8, %r8, %r3;
    shr.u32 %r9, %r1, 5; shl.b32 %r9, %r9, 1; add.u32 %r8, %r8, %r9;
    cvt.u16.u32 %rs1, %r1;
    st.shared.u16 [%r8{}], %rs1;)";
  const std::string declare = ".reg .b16 %rs<4>;";
  expect_order(declare + with(halves, ""));
  // Warp 1 a byte too low would be misaligned; 2 bytes lower is warp 0's half.
  expect_race(declare + R"(
    and.b32 %r8, %r1, 31; shl.b32 %r8, %r8, 2; add.u32 %r8, %r8, %r3;
    cvt.u16.u32 %rs1, %r1; st.shared.u16 [%r8], %rs1;)");
}

// One buffer used twice: the second round's writes must wait for the first round's reads.
TEST(Races, BufferUsedAgainTooEarly) {
  const std::string twice = R"(
    st.shared.u32 [%r5], %r1;
    bar.sync 0;
    xor.b32 %r6, %r4, 128; add.u32 %r6, %r6, %r3;
    ld.shared.u32 %r7, [%r6];
    {}
    st.shared.u32 [%r5], %r7;
    bar.sync 0;
    ld.shared.u32 %r8, [%r6];
    st.global.u32 [%rd3], %r8;)";
  expect_race(with(twice, ""));
  expect_order(with(twice, "bar.sync 0;"));
}

// Warp 1 arrives at a barrier on which warp 0 waits: an order in one direction.
TEST(Races, NamedBarrierOrdersOneWay) {
  const std::string producer = R"(
    setp.lt.u32 %p1, %r1, 32;
    @%p1 bra CONSUMER;
    {}
    bra END;
  CONSUMER:
    bar.sync 1, 64;
    ld.shared.u32 %r7, [%r5+128];
    st.global.u32 [%rd3], %r7;
  END:)";
  expect_order(with(producer, "st.shared.u32 [%r5], %r1; bar.arrive 1, 64;"));
  expect_race(with(producer, "bar.arrive 1, 64; st.shared.u32 [%r5], %r1;"));
}

TEST(Races, MbarrierHandsOn) {
  const std::string handed = R"(
    mov.u32 %r10, bars;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r10], 32;
  READY:
    bar.sync 0;
    setp.lt.u32 %p2, %r1, 32;
    @%p2 bra CONSUMER;
    {}
    bra END;
  CONSUMER:
  W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r10], 0;
    @!%p3 bra W;
    ld.shared.u32 %r7, [%r5+128];
    st.global.u32 [%rd3], %r7;
  END:)";
  expect_order(
      with(handed, "st.shared.u32 [%r5], %r1; mbarrier.arrive.shared::cta.b64 _, [%r10];"));
  expect_race(with(handed, "mbarrier.arrive.shared::cta.b64 _, [%r10]; st.shared.u32 [%r5], %r1;"));
}

TEST(Races, MbarrierUsedWithoutABarrierBehindItsInit) {
  const std::string use = R"(
    mov.u32 %r10, bars;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r10], 64;
  READY:
    {}
    mbarrier.arrive.shared::cta.b64 _, [%r10];)";
  expect_order(with(use, "bar.sync 0;"));
  // In another order it would be no mbarrier yet, which is a fault: only this one hides it.
  PtxRun r = run_once(with(use, ""), {}, "inorder", plan::AsyncMode::late, 1);
  EXPECT_TRUE(r.finding("mbarrier-init-unordered")) << r.kinds();
}

// As CUTLASS has it: the fence is for the initialisations alone, so the arrival may be .relaxed.
TEST(Races, FenceOfInitialisationsGoesWithARelaxedClusterBarrier) {
  const std::string use = R"(
    mov.u32 %r10, bars;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r10], 64;
    {}
  READY:
    bar.warp.sync 0xffffffff;
    barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;
    mbarrier.arrive.shared::cta.b64 _, [%r10];)";
  Launch s;
  s.grid = {2}, s.cluster = {2};
  expect_order(with(use, "fence.mbarrier_init.release.cluster;"), s);
  on_every_schedule(with(use, ""), s, [](const PtxRun& r) {
    EXPECT_TRUE(r.finding("mbarrier-init-unordered")) << r.kinds();
  });
}

TEST(Races, SharedAtomicsDoNotRaceButPlainReadsOfThemDo) {
  const std::string histogram = R"(
    setp.ge.u32 %p1, %r1, 4;
    @%p1 bra CLEARED;
    st.shared.u32 [%r5], 0;
  CLEARED:
    bar.sync 0;
    and.b32 %r8, %r1, 3; shl.b32 %r8, %r8, 2; add.u32 %r8, %r8, %r3;
    atom.shared.add.u32 %r9, [%r8], 1;
    {}
    ld.shared.u32 %r7, [%r8];
    st.global.u32 [%rd3], %r7;)";
  expect_order(with(histogram, "bar.sync 0;"));
  expect_race(with(histogram, ""));
}

TEST(Races, CopiesAreOrderedByTheirWaitAndABarrier) {
  const std::string copy = R"(
    shl.b32 %r8, %r1, 4; add.u32 %r8, %r8, %r3;
    cp.async.ca.shared.global [%r8], [%rd1], 16;
    cp.async.commit_group;
    {}
    xor.b32 %r6, %r4, 128; add.u32 %r6, %r6, %r3;
    ld.shared.u32 %r7, [%r6];
    st.global.u32 [%rd3+512], %r7;)";
  expect_order(with(copy, "cp.async.wait_group 0; bar.sync 0;"));
  expect_race(with(copy, "cp.async.wait_group 0;"));
  // A barrier before the wait orders nothing behind the copies.
  expect_race(with(copy, "bar.sync 0; cp.async.wait_group 0;"));
  expect_race(with(copy, "cp.async.wait_group 1; bar.sync 0;"));
}

// A bulk store reads shared memory until its wait; then the others need a barrier, too.
TEST(Races, BulkStoreStillReading) {
  const std::string store = R"(
    st.shared.u32 [%r5], %r1;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra STORED;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r3], 256;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group{} 0;
  STORED:
)";
  const std::string again = "st.shared.u32 [%r5], 7;";
  expect_order(with(store, ".read") + "bar.sync 0;" + again);
  expect_order(with(store, "") + "bar.sync 0;" + again);
  expect_race(with(store, ".read") + again);
  // .read says nothing about the bytes written.
  const std::string reads = "bar.sync 0; ld.global.u32 %r8, [%rd3]; st.global.u32 [%rd3+512], %r8;";
  expect_order(with(store, "") + reads);
  expect_race(with(store, ".read") + reads);
}

// ---------------------------------------------------------------------------------------- clusters

Launch pair_of_ctas() {
  Launch s;
  s.grid = {2}, s.cluster = {2}, s.block = {32};
  return s;
}

const std::string kRemote = R"(
    st.shared.u32 [%r5], %r1;
    {}
    mov.u32 %r10, %cluster_ctarank; xor.b32 %r10, %r10, 1;
    mapa.shared::cluster.u32 %r11, %r5, %r10;
    ld.shared::cluster.u32 %r7, [%r11];
    shl.b32 %r12, %r2, 7; cvt.u64.u32 %rd4, %r12; add.s64 %rd5, %rd3, %rd4;
    st.global.u32 [%rd5], %r7;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;)";

TEST(Races, MissingClusterBarrier) {
  expect_order(
      with(kRemote,
           "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"),
      pair_of_ctas());
  expect_race(with(kRemote, "bar.sync 0;"), pair_of_ctas());
  // .relaxed hands nothing on, unless a fence stands before it.
  const std::string relaxed =
      "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;";
  expect_race(with(kRemote, relaxed), pair_of_ctas());
  expect_order(with(kRemote, "fence.acq_rel.cluster; " + relaxed), pair_of_ctas());
}

// --------------------------------------------------------------------------------- global memory

Launch two_ctas() {
  Launch s;
  s.grid = {2}, s.block = {32};
  return s;
}

TEST(Races, CtasWriteTheSameWord) {
  expect_race("st.global.u32 [%rd3], %r1;", two_ctas());  // equal values, but a race
  expect_order("red.global.add.u32 [%rd3], 1;", two_ctas());
  expect_race("red.relaxed.cta.global.add.u32 [%rd3], 1;", two_ctas());
  expect_order(
      "shl.b32 %r8, %r2, 7; cvt.u64.u32 %rd4, %r8; add.s64 %rd4, %rd4, %rd3;"
      "st.global.u32 [%rd4], %r1;",
      two_ctas());
}

TEST(Races, OneCtaReadsWhatAnotherWrites) {
  expect_race(R"(
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra FIRST;
    ld.global.u32 %r7, [%rd3];
    st.global.u32 [%rd3+512], %r7;
    bra END;
  FIRST: st.global.u32 [%rd3], %r1;
  END:)",
              two_ctas());
}

// The CTA that arrives last adds up what all have written.
const std::string kLastArrives = R"(
    mul.wide.u32 %rd4, %r2, 256; add.s64 %rd5, %rd3, %rd4;
    st.global.u32 [%rd5], %r1;
    {}
    bar.sync 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra COUNTED;
    {}
    atom.global.add.u32 %r8, [%rd1+2048], 1;
    {}
    st.shared.u32 [flag], %r8;
  COUNTED:
    bar.sync 0;
    ld.shared.u32 %r9, [flag];
    setp.ne.u32 %p2, %r9, 3;
    @%p2 bra END;
    ld.global.u32 %r10, [%rd3]; ld.global.u32 %r11, [%rd3+256]; ld.global.u32 %r12, [%rd3+512];
    add.u32 %r10, %r10, %r11; add.u32 %r10, %r10, %r12;
    st.global.u32 [%rd3+1024], %r10;
  END:)";

TEST(Races, LastArriving) {
  Launch s;
  s.grid = {4}, s.block = {64}, s.words = 1024;
  auto body = [](const char* all, const char* before, const char* behind) {
    return with(with(with(kLastArrives, all), before), behind);
  };
  expect_order(body("", "membar.gl;", "membar.gl;"), s);
  expect_order(body("", "fence.acq_rel.gpu;", "fence.acq_rel.gpu;"), s);
  std::string acq_rel = body("", "", "");
  acq_rel.replace(acq_rel.find("atom.global"), 11, "atom.acq_rel.gpu.global");
  expect_order(acq_rel, s);
  expect_race(body("", "", "membar.gl;"), s);             // nothing released
  expect_race(body("", "membar.gl;", ""), s);             // nothing acquired
  expect_race(body("", "membar.cta;", "membar.gl;"), s);  // of too small a scope
  // Fences of all threads on the other side of the barrier: enough if they are sequentially
  // consistent, as membar is.
  expect_order(body("membar.gl;", "", "membar.gl;"), s);
  expect_race(body("fence.acq_rel.gpu;", "", "membar.gl;"), s);
  std::string behind = body("", "membar.gl;", "");
  behind.insert(behind.find("ld.global.u32 %r10"), "fence.sc.gpu; ");
  expect_order(behind, s);
  PtxRun r = run_once(body("", "membar.gl;", ""), s, "inorder", plan::AsyncMode::late, 1);
  ASSERT_TRUE(r.finding("data-race"));
  EXPECT_NE(r.finding("data-race")->hint.find("without .acquire"), std::string::npos)
      << r.finding("data-race")->hint;
}

// A flag that the other CTA polls.
TEST(Races, PolledFlag) {
  Launch s;
  s.grid = {2}, s.block = {32};
  auto body = [](const std::string& set, const std::string& poll, const std::string& behind) {
    return R"(
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra WRITER;
  W: )" + poll +
           R"( %r8, [%rd1+512];
    setp.eq.u32 %p2, %r8, 0;
    @%p2 bra W;
    )" + behind +
           R"(
    ld.global.u32 %r7, [%rd3];
    st.global.u32 [%rd3+256], %r7;
    bra END;
  WRITER:
    st.global.u32 [%rd3], %r1;
    bar.warp.sync 0xffffffff;
    setp.ne.u32 %p3, %r1, 0;
    @%p3 bra END;
    )" + set +
           R"( [%rd1+512], 1;
  END:)";
  };
  expect_order(body("st.release.gpu.global.u32", "ld.acquire.gpu.global.u32", ""), s);
  expect_order(body("membar.gl; st.volatile.global.u32", "ld.volatile.global.u32", "membar.gl;"),
               s);
  expect_order(
      body("membar.gl; red.global.add.u32", "ld.relaxed.gpu.global.u32", "fence.acq_rel.gpu;"), s);
  expect_race(body("st.volatile.global.u32", "ld.volatile.global.u32", "membar.gl;"), s);
  expect_race(body("membar.gl; st.volatile.global.u32", "ld.volatile.global.u32", ""), s);
  expect_race(body("st.release.cta.global.u32", "ld.acquire.gpu.global.u32", ""), s);
  // The flag itself, written by an ordinary store.
  expect_race(body("membar.gl; st.global.u32", "ld.volatile.global.u32", "membar.gl;"), s);
}

TEST(Races, NothingIsLookedForUnlessAsked) {
  PtxRun r;
  r.ptx = std::string(kHead) + "st.global.u32 [%rd3], %r1; ret; }";
  r.buffers = {buffer_of("g", std::vector<uint32_t>(64))};
  r.grid = {2}, r.block = {64};
  EXPECT_EQ(r.go().kinds(), "");
}

TEST(Races, OccurrencesAreCounted) {
  PtxRun r = run_once(with(kExchange, ""), {}, "inorder", plan::AsyncMode::late, 1);
  ASSERT_TRUE(r.finding("data-race"));
  EXPECT_EQ(r.finding("data-race")->count, 8u);  // 128 bytes of 16 each
}

}  // namespace
}  // namespace ptxbench::emu::test
