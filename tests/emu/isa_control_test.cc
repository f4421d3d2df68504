// Control, barriers, fences, hints, addresses, bulk copies: every word that the instruction table
// allows, in kernels whose outputs are known.
#include <fmt/format.h>

#include <bit>

#include "emu/ptx_runner.h"

namespace ptxbench::emu::test {
namespace {

using plan::RunStatus;

// One CTA (or cluster) whose threads run `body` with %out, the address of their word, and %t.
PtxRun run_body(const std::string& body, unsigned threads, std::vector<uint32_t> in = {},
                unsigned ctas = 1, unsigned cluster = 1) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0, .param .u64 p1) {
    .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<30>, %t, %n; .reg .b64 %d<20>, %out, %in, %own; .reg .f32 %f<9>;
    .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bar; .shared .align 8 .b64 bar2;
    .local .align 16 .b8 local[16];
    ld.param.u64 %out, [p0]; ld.param.u64 %in, [p1];
    mov.u32 %t, %ctaid.x; mov.u32 %n, %ntid.x; mul.lo.u32 %t, %t, %n; mov.u32 %n, %tid.x; add.u32 %t, %t, %n;
    mul.wide.u32 %own, %t, 4; add.s64 %own, %out, %own;
)" + body +
          "\n st.global.u32 [%own], %r1; ret; }";
  if (in.empty()) in = {1};
  r.buffers = {output_of("out", threads * ctas * 4), buffer_of("in", in)};
  r.block = {threads}, r.grid = {ctas}, r.cluster = {cluster};
  r.explicit_cluster = cluster > 1;
  r.go();
  EXPECT_EQ(r.error, "") << body;
  EXPECT_EQ(r.kinds(), "") << body;
  EXPECT_EQ(r.result.status, RunStatus::completed) << r.result.message << body;
  return r;
}

void expect_all(const std::string& body, unsigned threads, uint32_t value,
                std::vector<uint32_t> in = {}) {
  PtxRun r = run_body(body, threads, std::move(in));
  for (uint32_t v : values_of<uint32_t>(r.buffers[0])) ASSERT_EQ(v, value) << body;
}

TEST(IsaControl, NamedBarriers) {
  // Thread 0's word is seen by all behind the barrier.
  const std::string write =
      "setp.eq.u32 %p1, %t, 0; mov.u32 %r2, 77; @%p1 st.shared.u32 [tile], %r2;\n";
  for (const char* sync : {"bar.sync 0;", "bar.sync 1, 64;", "bar.cta.sync 2;", "barrier.sync 3;",
                           "barrier.cta.sync.aligned 4;", "barrier.sync.aligned 5, 64;",
                           "mov.u32 %r3, 6; bar.sync %r3, 64;"})
    expect_all(write + sync + " ld.shared.u32 %r1, [tile];", 64, 77);
  // The first warp arrives, the second waits.
  for (const std::string name : {"bar", "bar.cta", "barrier", "barrier.cta"}) {
    const std::string aligned = name.starts_with("barrier") ? ".aligned" : "";
    expect_all("setp.lt.u32 %p2, %t, 32; mov.u32 %r1, 5; @%p2 " + name + ".arrive" + aligned +
                   " 1, 64; @!%p2 " + name + ".sync" + aligned + " 1, 64;",
               64, 5);
  }
  // Reductions over the threads with %t < 10.
  for (const std::string name : {"bar", "barrier", "bar.cta", "barrier.cta"}) {
    const std::string aligned = name.starts_with("barrier") ? ".aligned" : "";
    const std::string less = "setp.lt.u32 %p3, %t, 10;\n";
    expect_all(less + name + ".red.popc" + aligned + ".u32 %r1, 0, %p3;", 64, 10);
    expect_all(less + name + ".red.popc" + aligned + ".u32 %r1, 0, 64, !%p3;", 64, 54);
    for (const std::string threads : {"", "64, "}) {
      const std::string tail =
          aligned + ".pred %p4, 0, " + threads + "%p3; selp.u32 %r1, 1, 2, %p4;";
      expect_all(less + name + ".red.and" + tail, 64, 2);
      expect_all(less + name + ".red.or" + tail, 64, 1);
    }
  }
}

TEST(IsaControl, Branches) {
  PtxRun r = run_body(R"(
    rem.u32 %r2, %t, 3;
    ts: .branchtargets A, B, C;
    setp.lt.u32 %p1, %t, 32;
    @%p1 brx.idx %r2, ts;
    mov.u32 %r3, 1; brx.idx.uni %r3, ts;
    A: mov.u32 %r1, 10; bra.uni END;
    B: mov.u32 %r1, 11; bra END;
    C: mov.u32 %r1, 12;
    END: nanosleep.u32 10; pmevent 3; pmevent.mask 5;)",
                      64);
  auto out = values_of<uint32_t>(r.buffers[0]);
  for (uint32_t i = 0; i < 64; i++) EXPECT_EQ(out[i], i < 32 ? 10 + i % 3 : 11) << i;
}

TEST(IsaControl, ExitAndTrap) {
  PtxRun r = run_body("mov.u32 %r1, 3; st.global.u32 [%own], %r1; exit;", 32);
  for (uint32_t v : values_of<uint32_t>(r.buffers[0])) EXPECT_EQ(v, 3u);
  PtxRun trap;
  trap.ptx = ".visible .entry k() { trap; }";
  trap.go();
  EXPECT_EQ(trap.result.status, RunStatus::fault);
  ASSERT_TRUE(trap.finding("trap"));
  isa::executed("trap");
}

// Nothing to see but that the values stay.
TEST(IsaControl, HintsChangeNothing) {
  expect_all(R"(
    mov.u32 %r1, 9;
    prefetch.global.L1 [%in]; prefetch.global.L2 [%in]; prefetch.global.L2::evict_last [%in];
    prefetch.global.L2::evict_normal [%in]; prefetch.local.L1 [local]; prefetch.local.L2 [local]; prefetchu.L1 [%in];
    prefetch.tensormap [%in]; prefetch.const.tensormap [%in]; prefetch.param.tensormap [p0];
    applypriority.global.L2::evict_normal [%in], 128; 
    createpolicy.fractional.L2::evict_last.b64 %d1; createpolicy.fractional.L2::evict_normal.b64 %d2, 0.5;
    createpolicy.fractional.L2::evict_first.b64 %d3, 1.0; createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d4, 0.25;
    createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %d5, [%in], 64, 128;
    createpolicy.range.global.L2::evict_normal.L2::evict_unchanged.b64 %d5, [%in], 64, 128;
    createpolicy.cvt.L2.b64 %d6, %d5;
    cp.async.bulk.prefetch.L2.global [%in], 16; cp.async.bulk.prefetch.L2.global.L2::cache_hint [%in], 16, %d1;
    griddepcontrol.wait; griddepcontrol.launch_dependents;
    brkpt;)",
             32, 9);
}

TEST(IsaControl, Fences) {
  std::string body = "mov.u32 %r1, 4;\n";
  for (const char* scope : {"cta", "cluster", "gpu", "sys"})
    for (const char* order : {"sc", "acq_rel", "acquire", "release"})
      body += fmt::format("fence.{}.{};\n", order, scope);
  for (const char* text :
       {"membar.cta", "membar.gl", "membar.sys", "membar.proxy.alias", "fence.proxy.alias",
        "fence.proxy.async", "fence.proxy.async.global", "fence.proxy.async.shared::cta",
        "fence.mbarrier_init.release.cluster", "fence.proxy.tensormap::generic.release.gpu",
        "fence.proxy.tensormap::generic.acquire.gpu [%in], 128",
        "fence.proxy.async.shared::cluster", "fence.acquire.sync_restrict::shared::cluster.cluster",
        "fence.release.sync_restrict::shared::cta.cluster",
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
        "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster"})
    body += std::string(text) + ";\n";
  expect_all(body, 32, 4);
}

TEST(IsaControl, RegistersAreTraded) {
  expect_all(
      "mov.u32 %r1, 6; setmaxnreg.dec.sync.aligned.u32 40; setmaxnreg.inc.sync.aligned.u32 48;",
      128, 6);
}

// ------------------------------------------------------------------------------------- addresses

TEST(IsaControl, AddressesOfEverySpace) {
  std::string body = "mov.u32 %r1, 0;\n";
  int bit = 0;
  auto test = [&](const std::string& space, const std::string& address, bool expected) {
    body += fmt::format(
        "isspacep.{} %p1, {}; selp.u32 %r2, 1, 0, %p1; xor.b32 %r2, %r2, {}; shl.b32 %r2, %r2, {}; "
        "or.b32 %r1, %r1, %r2;\n",
        space, address, expected ? 1 : 0, bit++);
  };
  body +=
      "mov.u64 %d1, tile; cvta.shared.u64 %d2, %d1; cvta.to.shared.u64 %d3, %d2;\n"
      "mov.u64 %d4, local; cvta.local.u64 %d5, %d4; cvta.to.local.u64 %d6, %d5;\n"
      "cvta.global.u64 %d7, %in; cvta.to.global.u64 %d8, %d7;\n"
      "mov.u64 %d9, p0; cvta.param.u64 %d10, %d9; cvta.to.param.u64 %d11, %d10;\n"
      "cvta.shared::cta.u64 %d12, %d1; cvta.shared::cluster.u64 %d13, %d1;\n"
      "cvta.to.shared::cta.u64 %d12, %d12; cvta.to.shared::cluster.u64 %d13, %d13;\n"
      "mov.u64 %d14, numbers; cvta.const.u64 %d15, %d14; cvta.to.const.u64 %d16, %d15; "
      "ld.const.u32 %r5, [%d16+4];\n"
      "cvta.param::entry.u64 %d17, %d9; cvta.to.param::entry.u64 %d18, %d17;\n";
  test("shared", "%d2", true), test("shared::cta", "%d2", true),
      test("shared::cluster", "%d2", true);
  test("local", "%d2", false), test("global", "%d2", false), test("const", "%d2", false);
  test("local", "%d5", true), test("shared", "%d5", false), test("global", "%d5", false);
  test("global", "%d7", true), test("shared", "%d7", false), test("param", "%d7", false);
  test("param", "%d10", true), test("global", "%d10", false), test("param::entry", "%d17", true);
  // Round trips.
  for (const char* pair :
       {"%d1, %d3", "%d4, %d6", "%in, %d8", "%d9, %d11", "%d1, %d12", "%d1, %d13", "%d9, %d18"})
    body += fmt::format(
        "setp.ne.u64 %p2, {}; selp.u32 %r2, 0x80000000, 0, %p2; or.b32 %r1, %r1, %r2;\n", pair);
  body += "setp.ne.u32 %p3, %r5, 8; selp.u32 %r2, 0x40000000, 0, %p3; or.b32 %r1, %r1, %r2;\n";
  body +=
      "mapa.shared::cluster.u32 %r6, tile, 0; mapa.u64 %d19, %d2, 0; "
      "getctarank.shared::cluster.u32 %r7, %r6; getctarank.u64 %r8, %d19;\n"
      "add.u32 %r7, %r7, %r8; or.b32 %r1, %r1, %r7; mapa.shared::cluster.u64 %d19, %d1, 0; "
      "getctarank.shared::cluster.u64 %r8, %d19; or.b32 %r1, %r1, %r8;\n";
  PtxRun r;
  PtxRun probe = run_body("mov.u32 %r1, 1;", 32);
  r.ptx = ".const .align 4 .b32 numbers[4] = {7, 8, 9, 10};\n";
  // run_body's kernel behind the constant.
  std::string text = probe.ptx;
  text.replace(text.find("mov.u32 %r1, 1;"), 15, body);
  r.ptx += text;
  r.buffers = {output_of("out", 128), buffer_of<uint32_t>("in", {1})};
  r.block = {32}, r.explicit_cluster = true;
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  for (uint32_t v : values_of<uint32_t>(r.buffers[0])) EXPECT_EQ(v, 0u);
}

// ------------------------------------------------------------------------------------- mbarriers

TEST(IsaControl, MbarrierForms) {
  for (const std::string space : {".shared", ".shared::cta", ""}) {
    // The barrier's address: shared, or generic.
    const std::string a = space.empty() ? "[%d1]" : "[bar]";
    const std::string start = "mov.u64 %d0, bar; cvta.shared.u64 %d1, %d0; mov.u32 %r1, 0;\n";
    expect_all(start + fmt::format(R"(
    mbarrier.init{0}.b64 {1}, 4;
    mbarrier.arrive{0}.b64 %d2, {1}; mbarrier.pending_count.b64 %r2, %d2;
    mbarrier.arrive.noComplete{0}.b64 %d3, {1}, 2;
    mbarrier.test_wait{0}.b64 %p1, {1}, %d2; selp.u32 %r3, 100, 0, %p1;
    mbarrier.arrive.release.cta{0}.b64 %d4, {1}, 1;
    mbarrier.try_wait{0}.b64 %p2, {1}, %d2; selp.u32 %r4, 10, 0, %p2;
    mbarrier.try_wait.parity{0}.b64 %p3, {1}, 0, 1000; selp.u32 %r5, 20, 0, %p3;
    mbarrier.test_wait.parity.acquire.cta{0}.b64 %p4, {1}, 0; selp.u32 %r6, 40, 0, %p4;
    add.u32 %r1, %r2, %r3; add.u32 %r1, %r1, %r4; add.u32 %r1, %r1, %r5; add.u32 %r1, %r1, %r6;
    mbarrier.inval{0}.b64 {1};)",
                                   space, a),
               1, 74);
    // expect_tx and complete_tx balance; a dropped thread is not expected again.
    expect_all(start + fmt::format(R"(
    mbarrier.init{0}.b64 {1}, 3;
    mbarrier.expect_tx.relaxed.cta{0}.b64 {1}, 32;
    mbarrier.arrive.expect_tx{0}.b64 %d2, {1}, 16;
    mbarrier.arrive_drop{0}.b64 %d3, {1};
    mbarrier.arrive_drop.expect_tx{0}.b64 %d3, {1}, 16;
    mbarrier.test_wait{0}.b64 %p1, {1}, %d2; selp.u32 %r1, 1, 0, %p1;
    mbarrier.complete_tx.relaxed.cta{0}.b64 {1}, 64;
    mbarrier.test_wait{0}.b64 %p1, {1}, %d2; selp.u32 %r2, 2, 0, %p1;
    mbarrier.arrive{0}.b64 %d4, {1};
    mbarrier.try_wait.acquire.cluster{0}.b64 %p2, {1}, %d4; selp.u32 %r3, 4, 0, %p2;
    add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;)",
                                   space, a),
               1, 6);
  }
  // What is left of orders and scopes, on barriers of one arrival.
  std::string body = "mov.u32 %r1, 0;\n";
  for (const char* op :
       {"arrive.relaxed.cta{}.b64 %d2, [bar]", "arrive.relaxed.cluster{}.b64 %d2, [bar]",
        "arrive.release.cluster{}.b64 %d2, [bar]",
        "arrive.expect_tx.relaxed.cta{}.b64 %d2, [bar], 0",
        "arrive.expect_tx.release.cluster{}.b64 %d2, [bar], 0"})
    body += "mbarrier.init.shared.b64 [bar], 1; mbarrier." +
            fmt::format(fmt::runtime(op), ".shared::cta") +
            "; mbarrier.try_wait.relaxed.cluster.shared::cta.b64 %p1, [bar], %d2; selp.u32 %r2, 1, "
            "0, %p1; add.u32 %r1, %r1, %r2; mbarrier.inval.shared.b64 [bar];\n";
  for (const char* op :
       {"arrive_drop.relaxed.cta{}.b64 %d2, [bar]", "arrive_drop.relaxed.cluster{}.b64 %d2, [bar]",
        "arrive_drop.release.cta{}.b64 %d2, [bar]", "arrive_drop.release.cluster{}.b64 %d2, [bar]",
        "arrive_drop.noComplete{}.b64 %d2, [bar], 1"})
    body += "mbarrier.init.shared.b64 [bar], 2; mbarrier." +
            fmt::format(fmt::runtime(op), ".shared::cta") +
            "; mbarrier.arrive.shared.b64 %d3, [bar]; "
            "mbarrier.test_wait.relaxed.cta.shared::cta.b64 %p1, [bar], %d2; selp.u32 %r2, 1, 0, "
            "%p1; add.u32 %r1, %r1, %r2; mbarrier.inval.shared.b64 [bar];\n";
  body +=
      "mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.shared.b64 %d2, [bar];"
      "mbarrier.test_wait.parity.relaxed.cluster.shared.b64 %p1, [bar], 0; selp.u32 %r2, 1, 0, "
      "%p1; add.u32 %r1, %r1, %r2;"
      "mbarrier.test_wait.acquire.cluster.shared.b64 %p1, [bar], %d2; selp.u32 %r2, 1, 0, %p1; "
      "add.u32 %r1, %r1, %r2;"
      "mbarrier.try_wait.parity.relaxed.cta.shared.b64 %p1, [bar], 0; selp.u32 %r2, 1, 0, %p1; "
      "add.u32 %r1, %r1, %r2;\n";
  expect_all(body, 1, 13);
}

TEST(IsaControl, RemoteMbarriers) {
  // Each CTA arrives on the other's barrier.
  for (const char* send : {"mbarrier.arrive.shared::cluster.b64 _, [%r5]; "
                           "mbarrier.arrive_drop.shared::cluster.b64 _, [%r5];",
                           "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r5], 8; "
                           "mbarrier.arrive.shared::cluster.b64 _, [%r5], 2; "
                           "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r5], 8;",
                           "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r5], 8; "
                           "mbarrier.arrive.shared::cluster.b64 _, [%r5]; "
                           "mbarrier.complete_tx.shared::cluster.b64 [%r5], 8;"}) {
    PtxRun r = run_body(std::string(R"(
    mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1; mov.u32 %r4, bar;
    mbarrier.init.shared::cta.b64 [%r4], 2;
    mapa.shared::cluster.u32 %r5, %r4, %r3;
    barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
)") + send + R"(
    W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r4], 0; @!%p1 bra W;
    add.u32 %r1, %r2, 40;
    barrier.cluster.arrive.relaxed; barrier.cluster.wait;)",
                        1, {}, 2, 2);
    EXPECT_EQ(values_of<uint32_t>(r.buffers[0]), (std::vector<uint32_t>{40, 41})) << send;
  }
}

// ------------------------------------------------------------------------------ asynchronous
// copies

std::vector<uint32_t> counted(size_t n) {
  std::vector<uint32_t> v(n);
  for (size_t i = 0; i < n; i++) v[i] = static_cast<uint32_t>(i + 1);
  return v;
}

TEST(IsaControl, CpAsyncForms) {
  const std::string start =
      "mov.u32 %r2, tile; shl.b32 %r3, %t, 4; add.u32 %r2, %r2, %r3; cvt.u64.u32 %d1, %r3; add.s64 "
      "%d2, %in, %d1; "
      "createpolicy.fractional.L2::evict_last.b64 %d3; mov.u64 %d5, tile; cvta.shared.u64 %d6, "
      "%d5; mov.u32 %r9, 8; setp.ne.u32 %p8, %r9, 8;\n";
  int n = 0;
  for (const char* text :
       {"cp.async.cg.shared.global [%r2], [%d2], 16", "cp.async.ca.shared.global [%r2], [%d2], 16",
        "cp.async.ca.shared::cta.global [%r2], [%d2], 8",
        "cp.async.ca.shared.global.L2::64B [%r2], [%d2], 4",
        "cp.async.cg.shared.global.L2::128B [%r2], [%d2], 16, 16",
        "cp.async.cg.shared.global.L2::256B [%r2], [%d2], 16, %r9",
        "cp.async.cg.shared.global.L2::cache_hint [%r2], [%d2], 16, %d3",
        "cp.async.ca.shared.global.L2::cache_hint [%r2], [%d2], 4, 4, %d3",
        "cp.async.ca.shared::cta.global.L2::64B [%r2], [%d2], 4, %p8",
        "cp.async.cg.shared::cta.global.L2::cache_hint.L2::256B [%r2], [%d2], 16, %p8, %d3"}) {
    for (const std::string wait :
         {"cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;"}) {
      PtxRun r =
          run_body(start + text + "; " + wait + " ld.shared.u32 %r1, [%r2];", 32, counted(128));
      auto out = values_of<uint32_t>(r.buffers[0]);
      for (uint32_t i = 0; i < 32; i++) EXPECT_EQ(out[i], 4 * i + 1) << text;
      n++;
    }
  }
  EXPECT_EQ(n, 20);
  for (const char* arrive : {"cp.async.mbarrier.arrive.noinc.shared.b64 [bar]",
                             "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar]"}) {
    PtxRun r = run_body(start +
                            "setp.ne.u32 %p1, %t, 0; @!%p1 mbarrier.init.shared.b64 [bar], 32; "
                            "bar.sync 0; cp.async.cg.shared.global [%r2], [%d2], 16; " +
                            arrive +
                            "; W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W; "
                            "ld.shared.u32 %r1, [%r2];",
                        32, counted(128));
    EXPECT_EQ(values_of<uint32_t>(r.buffers[0])[31], 125u);
  }
}

TEST(IsaControl, PlainBulkCopies) {
  const std::string start = R"(
    setp.ne.u32 %p1, %t, 0; mov.u32 %r2, tile; createpolicy.fractional.L2::evict_first.b64 %d3; mov.u16 %h1, 1;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1; fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
)";
  const std::string wait = R"(
  READY: bar.sync 0;
  W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra W;
    shl.b32 %r3, %t, 2; add.u32 %r3, %r3, %r2; ld.shared.u32 %r1, [%r3];)";
  for (const char* load :
       {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%in], 128, "
        "[bar];",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%in], 128, [bar];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r2], "
        "[%in], 128, [bar], %d3;",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r2], "
        "[%in], 128, [bar], %d3;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%r2], [%in], 128, [bar], %h1;"}) {
    PtxRun r = run_body(start + load + wait, 32, counted(32));
    EXPECT_EQ(values_of<uint32_t>(r.buffers[0]), counted(32)) << load;
  }
  // From shared to shared memory, and out again.
  PtxRun r = run_body(R"(
    shl.b32 %r3, %t, 2; mov.u32 %r2, tile; add.u32 %r3, %r3, %r2; add.u32 %r4, %t, 50; st.shared.u32 [%r3], %r4;
    fence.proxy.async.shared::cta; setp.ne.u32 %p1, %t, 0; add.u32 %r5, %r2, 128;
    bar.sync 0; @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1; fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r5], [%r2], 128, [bar];
  READY: bar.sync 0;
  W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra W;
    ld.shared.u32 %r1, [%r3+128]; createpolicy.fractional.L2::evict_first.b64 %d3;
    @%p1 bra END;
    cp.async.bulk.global.shared::cta.bulk_group [%in], [%r2], 128; cp.async.bulk.commit_group;
    cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%in+128], [%r5], 128, %d3; cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;
  END: )",
                      32, counted(64));
  auto out = values_of<uint32_t>(r.buffers[0]), in = values_of<uint32_t>(r.buffers[1]);
  for (uint32_t i = 0; i < 32; i++) {
    EXPECT_EQ(out[i], 50 + i);
    EXPECT_EQ(in[i], 50 + i);
    EXPECT_EQ(in[32 + i], 50 + i);
  }
}

// Bulk reductions: 16 bytes of each type, on what is there. Recorded values test the arithmetic
// (tma_test.cc); here every form is executed once on values where the result is plain.
TEST(IsaControl, PlainBulkReductions) {
  struct Case {
    const char *op, *type;
    uint32_t old, value, want;  // the low word of every element
  };
  const Case cases[] = {
      {"add", "u32", 5, 6, 11},
      {"add", "s32", 5, 0xfffffffe, 3},
      {"add", "u64", 5, 6, 11},
      {"add", "f64", 5, 6, 11},  // subnormals
      {"add", "f32", 0x3f800000, 0x40000000, 0x40400000},
      {"add.noftz", "f16", 0x3c003c00, 0x40004000, 0x42004200},
      {"add.noftz", "bf16", 0x3f803f80, 0x40004000, 0x40404040},
      {"min", "u32", 5, 6, 5},
      {"min", "s32", 5, 0xfffffffe, 0xfffffffe},
      {"min", "u64", 5, 6, 5},
      {"min", "s64", 5, 6, 5},
      {"min", "f16", 0x3c003c00, 0x40004000, 0x3c003c00},
      {"max", "f16", 0x3c003c00, 0x40004000, 0x40004000},
      {"min", "bf16", 0x3f803f80, 0x40004000, 0x3f803f80},
      {"max", "u32", 5, 6, 6},
      {"max", "s32", 5, 0xfffffffe, 5},
      {"max", "u64", 5, 6, 6},
      {"max", "s64", 5, 6, 6},
      {"max", "bf16", 0x3f803f80, 0x40004000, 0x40004000},
      {"inc", "u32", 5, 6, 6},
      {"dec", "u32", 7, 6, 6},
      {"and", "b32", 5, 6, 4},
      {"or", "b32", 5, 6, 7},
      {"xor", "b32", 5, 6, 3},
      {"and", "b64", 5, 6, 4},
      {"or", "b64", 5, 6, 7},
      {"xor", "b64", 5, 6, 3},
  };
  for (size_t n = 0; n < 2 * std::size(cases); n++) {
    const Case& c = cases[n / 2];
    const bool wide = std::string(c.type).ends_with("64");
    const bool hint = n % 2 != 0;
    std::vector<uint32_t> in = {c.old, wide ? 0 : c.old, c.old, wide ? 0 : c.old};
    PtxRun r = run_body(fmt::format(R"(
    createpolicy.fractional.L2::evict_first.b64 %d3;
    mov.u32 %r2, tile; mov.u32 %r3, {}; mov.u32 %r4, {}; st.shared.v4.u32 [%r2], {{%r3, %r4, %r3, %r4}};
    fence.proxy.async.shared::cta;
    cp.reduce.async.bulk.global.shared::cta.bulk_group{}.{}.{} [%in], [%r2], 16{};
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; mov.u32 %r1, 1;)",
                                    c.value, wide ? 0 : c.value, hint ? ".L2::cache_hint" : "",
                                    c.op, c.type, hint ? ", %d3" : ""),
                        1, in);
    EXPECT_EQ(values_of<uint32_t>(r.buffers[1]),
              (std::vector<uint32_t>{c.want, wide ? 0 : c.want, c.want, wide ? 0 : c.want}))
        << c.op << c.type;
  }
}

// The same into shared memory, whose barrier counts the bytes.
TEST(IsaControl, BulkReductionsIntoSharedMemory) {
  struct Case {
    const char *op, *type;
    uint32_t old, value, want;
  };
  const Case cases[] = {{"and", "b32", 5, 6, 4},          {"or", "b32", 5, 6, 7},
                        {"xor", "b32", 5, 6, 3},          {"add", "u32", 5, 6, 11},
                        {"add", "s32", 5, 0xfffffffe, 3}, {"add", "u64", 0xffffffff, 6, 5},
                        {"inc", "u32", 5, 6, 6},          {"inc", "u32", 6, 6, 0},
                        {"dec", "u32", 7, 6, 6},          {"dec", "u32", 5, 6, 4},
                        {"min", "u32", 5, 6, 5},          {"min", "s32", 5, 0xfffffffe, 0xfffffffe},
                        {"max", "u32", 5, 6, 6},          {"max", "s32", 5, 0xfffffffe, 5}};
  for (const Case& c : cases) {
    const bool wide = std::string(c.type) == "u64";
    PtxRun r =
        run_body(fmt::format(R"(
    mov.u32 %r2, tile; mov.u32 %r3, {0}; mov.u32 %r4, {1}; mov.u32 %r5, {2}; mov.u32 %r6, {3};
    st.shared.v4.u32 [%r2], {{%r3, %r4, %r3, %r4}}; st.shared.v4.u32 [%r2+128], {{%r5, %r6, %r5, %r6}};
    mbarrier.init.shared::cta.b64 [bar], 1; fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16; add.u32 %r7, %r2, 128;
    cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{4}.{5} [%r7], [%r2], 16, [bar];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra W;
    ld.shared.v4.u32 {{%r10, %r11, %r12, %r13}}, [%r7]; st.global.v4.u32 [%in], {{%r10, %r11, %r12, %r13}};
    mov.u32 %r1, 1;)",
                             c.value, wide ? 0 : c.value, c.old, wide ? 0 : c.old, c.op, c.type),
                 1, {0, 0, 0, 0});
    const uint32_t high = wide ? 1 : c.want;  // the sum carries
    EXPECT_EQ(values_of<uint32_t>(r.buffers[1]),
              (std::vector<uint32_t>{c.want, high, c.want, high}))
        << c.op << c.type;
  }
}

// ---------------------------------------------------------------------------------- warps,
// matrices

TEST(IsaControl, WarpWideOperations) {
  PtxRun r = run_body(R"(
    activemask.b32 %r1; setp.lt.u32 %p1, %t, 8; vote.sync.ballot.b32 %r2, %p1, -1; vote.sync.all.pred %p2, %p1, -1; vote.sync.any.pred %p3, %p1, -1;
    vote.sync.uni.pred %p4, !%p1, -1; selp.u32 %r3, 1, 0, %p2; selp.u32 %r4, 2, 0, %p3; selp.u32 %r5, 4, 0, %p4;
    xor.b32 %r1, %r1, 0xffffffff; xor.b32 %r2, %r2, 0xff; or.b32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;
    add.u32 %r1, %r1, %r4; add.u32 %r1, %r1, %r5; bar.warp.sync 0xffffffff;)",
                      32);
  for (uint32_t v : values_of<uint32_t>(r.buffers[0])) EXPECT_EQ(v, 2u);
}

TEST(IsaControl, Movmatrix) {
  PtxRun r = run_body(
      "mul.lo.u32 %r2, %t, 2; add.u32 %r3, %r2, 1; shl.b32 %r3, %r3, 16; or.b32 %r2, %r2, %r3; "
      "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;",
      32);
  auto out = values_of<uint32_t>(r.buffers[0]);
  // Element (row, column) held 8 row + column.
  for (uint32_t l = 0; l < 32; l++) {
    const uint32_t row = l / 4, column = l % 4 * 2;
    EXPECT_EQ(out[l], (column * 8 + row) | ((column + 1) * 8 + row) << 16);
  }
}

// A matrix is stored and loaded, with and without transposition; thread l passes the row addresses.
TEST(IsaControl, MatrixStoresAndLoads) {
  for (const std::string trans : {"", ".trans"})
    for (const std::string space : {".shared", ".shared::cta"})
      for (int n : {1, 2, 4}) {
        std::string from, to;
        for (int i = 0; i < n; i++)
          from += fmt::format("{}%r{}", i ? ", " : "", 10 + i),
              to += fmt::format("{}%r{}", i ? ", " : "", 20 + i);
        std::string body =
            "mov.u32 %r2, tile; shl.b32 %r3, %t, 4; add.u32 %r2, %r2, %r3; mov.u32 %r1, 0;\n";
        for (int i = 0; i < n; i++)
          body += fmt::format("add.u32 %r{}, %t, {};\n", 10 + i, 1000 * i);
        body += fmt::format(
            "stmatrix.sync.aligned.m8n8.x{0}{1}{2}.b16 [%r2], {{{3}}}; bar.warp.sync -1;\n", n,
            trans, space, from);
        body += fmt::format("ldmatrix.sync.aligned.m8n8.x{0}{1}{2}.b16 {{{3}}}, [%r2];\n", n, trans,
                            space, to);
        for (int i = 0; i < n; i++)
          body += fmt::format("sub.u32 %r4, %r{}, %r{}; or.b32 %r1, %r1, %r4;\n", 10 + i, 20 + i);
        expect_all(body, 32, 0);
      }
}

}  // namespace
}  // namespace ptxbench::emu::test
