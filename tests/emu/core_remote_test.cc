// Asynchronous stores and reductions of the cluster, changed tensor maps, image-to-column copies,
// and who may use a remote mbarrier.

#include <algorithm>

#include "emu/ptx_runner.h"

namespace ptxbench::emu::test {
namespace {

using plan::HazardClass;
using plan::RunStatus;

constexpr char kSync[] = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";

// Two CTAs; each sends to the other's `slot` and waits on its own barrier for 16 bytes.
std::string exchange(const std::string& send, const std::string& start, const std::string& wait) {
  return R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<9>;
    .shared .align 8 .b64 bar; .shared .align 16 .b8 slot[16];
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1;
    mov.u32 %r3, bar; mov.u32 %r4, slot;
    mapa.shared::cluster.u32 %r5, %r3, %r2; mapa.shared::cluster.u32 %r6, %r4, %r2;
    mov.u32 %r7, %tid.x; setp.ne.u32 %p1, %r7, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r3], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
    mov.u32 %r8, 100; st.shared.v4.u32 [%r4], {%r8, %r8, %r8, %r8};
  READY:
)" + start +
         R"(
    @%p1 bra SENT;
    mad.lo.u32 %r9, %r1, 10, 1; add.u32 %r10, %r9, 1; add.u32 %r11, %r9, 2; add.u32 %r12, %r9, 3;
)" + send +
         R"(
  SENT:
)" + wait +
         R"(
    @%p1 bra END;
    ld.shared.v4.u32 {%r13, %r14, %r15, %r16}, [%r4];
    mul.wide.u32 %rd2, %r1, 16; add.s64 %rd3, %rd1, %rd2;
    st.global.v4.u32 [%rd3], {%r13, %r14, %r15, %r16};
  END:
    )" + kSync +
         "ret; }";
}
constexpr char kWait[] = R"(  W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
    @!%p2 bra W;)";
constexpr char kStore[] =
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r6], {%r9, %r10, %r11, %r12}, "
    "[%r5];";

PtxRun run(const std::string& ptx, plan::AsyncMode mode = plan::AsyncMode::late) {
  PtxRun r;
  r.ptx = ptx;
  r.buffers = {output_of("out", 32)};
  r.grid = {2}, r.block = {64}, r.cluster = {2}, r.explicit_cluster = true;
  r.options.async = mode;
  r.go();
  return r;
}

TEST(CoreRemote, AsynchronousStoreArrivesWithItsBytes) {
  for (auto mode : {plan::AsyncMode::late, plan::AsyncMode::eager}) {
    PtxRun r = run(exchange(kStore, kSync, kWait), mode);
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.kinds(), "");
    EXPECT_EQ(values_of<uint32_t>(r.buffers[0]),
              (std::vector<uint32_t>{11, 12, 13, 14, 1, 2, 3, 4}));
  }
}

TEST(CoreRemote, ReadingBeforeTheWaitIsAnEarlyRead) {
  for (auto mode : {plan::AsyncMode::late, plan::AsyncMode::eager}) {
    PtxRun r = run(exchange(kStore, kSync, kSync), mode);
    ASSERT_EQ(r.error, "");
    const plan::Finding* f = r.finding("async-early-read");
    ASSERT_TRUE(f) << r.kinds();
    EXPECT_EQ(f->hazard, HazardClass::fatal);
  }
}

TEST(CoreRemote, AsynchronousReductions) {
  std::string send;
  const char* const forms[] = {"inc.u32", "max.s32", "xor.b32", "add.u32"};
  for (int i = 0; i < 4; i++)
    send += std::string("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.") +
            forms[i] + " [%r6+" + std::to_string(4 * i) + "], %r" + std::to_string(9 + i) +
            ", [%r5];\n";
  for (auto mode : {plan::AsyncMode::late, plan::AsyncMode::eager}) {
    PtxRun r = run(exchange(send, kSync, kWait), mode);
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.kinds(), "");
    EXPECT_EQ(values_of<uint32_t>(r.buffers[0]),
              (std::vector<uint32_t>{0, 100, 100 ^ 13, 114, 0, 100, 100 ^ 3, 104}));
  }
}

// Every type once; what arrives is the 16 bytes that were sent.
TEST(CoreRemote, AsynchronousStoresOfEveryType) {
  for (const char* type : {"b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"}) {
    const bool wide = std::string(type).ends_with("64");
    const std::string form = std::string("st.async.shared::cluster.mbarrier::complete_tx::bytes");
    std::string send = "mov.b64 %rd4, {%r9, %r10}; mov.b64 %rd5, {%r11, %r12};\n";
    if (wide)
      send += form + "." + type + " [%r6], %rd4, [%r5]; " + form + "." + type +
              " [%r6+8], %rd5, [%r5];";
    else
      send += form + ".v2." + type + " [%r6], {%r9, %r10}, [%r5]; " + form + "." + type +
              " [%r6+8], %r11, [%r5]; " + form + "." + type + " [%r6+12], %r12, [%r5];";
    PtxRun r = run(exchange(send, kSync, kWait));
    ASSERT_EQ(r.error, "") << type;
    EXPECT_EQ(r.kinds(), "") << type;
    EXPECT_EQ(values_of<uint32_t>(r.buffers[0]),
              (std::vector<uint32_t>{11, 12, 13, 14, 1, 2, 3, 4}))
        << type;
  }
}

// The slots hold 100 each; the sender of CTA 0 has 1, 2, 3, 4 and that of CTA 1 11, 12, 13, 14.
TEST(CoreRemote, AsynchronousReductionsOfEveryType) {
  struct Case {
    const char* form;
    uint32_t (*f)(uint32_t);
  };
  const Case cases[] = {{"add.u32", [](uint32_t v) { return 100 + v; }},
                        {"add.s32", [](uint32_t v) { return 100 + v; }},
                        {"min.u32", [](uint32_t v) { return std::min(100u, v); }},
                        {"min.s32", [](uint32_t v) { return std::min(100u, v); }},
                        {"max.u32", [](uint32_t v) { return std::max(100u, v); }},
                        {"max.s32", [](uint32_t v) { return std::max(100u, v); }},
                        {"inc.u32", [](uint32_t) { return 0u; }},
                        {"dec.u32", [](uint32_t v) { return v; }},
                        {"and.b32", [](uint32_t v) { return 100 & v; }},
                        {"or.b32", [](uint32_t v) { return 100 | v; }},
                        {"xor.b32", [](uint32_t v) { return 100 ^ v; }}};
  for (const Case& c : cases) {
    std::string send;
    for (int i = 0; i < 4; i++)
      send +=
          std::string("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.") +
          c.form + " [%r6+" + std::to_string(4 * i) + "], %r" + std::to_string(9 + i) +
          ", [%r5];\n";
    PtxRun r = run(exchange(send, kSync, kWait));
    ASSERT_EQ(r.error, "") << c.form;
    EXPECT_EQ(r.kinds(), "") << c.form;
    std::vector<uint32_t> want;
    for (uint32_t v : {11, 12, 13, 14, 1, 2, 3, 4}) want.push_back(c.f(v));
    EXPECT_EQ(values_of<uint32_t>(r.buffers[0]), want) << c.form;
  }
  // 64 bits: the high words of the slots are 100 too.
  PtxRun r =
      run(exchange("mov.b64 %rd4, {%r9, %r10}; "
                   "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 "
                   "[%r6], %rd4, [%r5];"
                   "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 "
                   "[%r6+8], %rd4, [%r5];",
                   kSync, kWait));
  EXPECT_EQ(r.kinds(), "");
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0]),
            (std::vector<uint32_t>{111, 112, 111, 112, 101, 102, 101, 102}));
}

TEST(CoreRemote, BulkReductionIntoAnotherCta) {
  std::string send = R"(
    mov.u32 %r17, source; st.shared.v4.u32 [%r17], {%r9, %r10, %r11, %r12};
    fence.proxy.async.shared::cta;
    cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r6], [%r17], 16, [%r5];)";
  std::string ptx = exchange(send, kSync, kWait);
  ptx.insert(ptx.find(".shared .align 8"), ".shared .align 16 .b8 source[16]; ");
  PtxRun r = run(ptx);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0]),
            (std::vector<uint32_t>{111, 112, 113, 114, 101, 102, 103, 104}));
}

// Without the cluster barrier the peer may not have initialised its barrier yet; found however the
// warps happen to run. Here a hint through time alone lets the peer go first.
TEST(CoreRemote, UsingAPeersBarrierBeforeAClusterBarrierIsFound) {
  for (const char* schedule : {"", "random:1", "random:2", "random:3"}) {
    PtxRun r;
    r.ptx = exchange(kStore, "bar.sync 0; nanosleep.u32 100; nanosleep.u32 100;", kWait);
    r.buffers = {output_of("out", 32)};
    r.grid = {2}, r.block = {64}, r.cluster = {2}, r.explicit_cluster = true;
    r.options.schedule = schedule;
    r.go();
    ASSERT_EQ(r.error, "");
    EXPECT_TRUE(r.finding("mbarrier-init-unordered") || r.finding("mbarrier-uninitialized"))
        << schedule << " " << r.kinds();
  }
}

// Knowledge of the initialisation travels with an arrival on a barrier that the reader waits for.
TEST(CoreRemote, ArrivalsHandTheInitialisationOn) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<9>;
    .shared .align 8 .b64 first; .shared .align 8 .b64 second;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %cluster_ctarank; setp.ne.u32 %p1, %r1, 0;
    mov.u32 %r3, first; mov.u32 %r4, second;
    mapa.shared::cluster.u32 %r5, %r3, 0; mapa.shared::cluster.u32 %r6, %r4, 1;
    mbarrier.init.shared::cta.b64 [%r3], 1;
    )" + std::string(kSync) +
          R"(
    @!%p1 bra ZERO;
    mbarrier.init.shared::cta.b64 [%r4], 1;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];
    W1: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0; @!%p2 bra W1;
    mov.u32 %r7, 5; st.global.u32 [%rd1], %r7;
    bra END;
  ZERO:
    W0: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra W0;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];
  END:
    )" + kSync +
          "ret; }";
  r.buffers = {output_of("out", 4)};
  r.grid = {2}, r.block = {1}, r.cluster = {2}, r.explicit_cluster = true;
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0]), (std::vector<uint32_t>{5}));
}

// A map is copied to shared memory, its address, dims and fill replaced there, published and used.
std::string changed_map(const std::string& publish, const std::string& acquire) {
  return R"(.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .align 64 .b8 map[128]) {
    .reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<20>;
    .shared .align 128 .b8 copy[128]; .shared .align 128 .b8 tile[64]; .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; ld.param.u64 %rd3, [p2];
    mov.u32 %r1, %tid.x; mov.u32 %r2, copy; mov.u32 %r3, tile; mov.u32 %r4, bar;
    mov.b64 %rd4, map; mul.wide.u32 %rd5, %r1, 4; add.s64 %rd4, %rd4, %rd5;
    ld.param.u32 %r5, [%rd4]; shl.b32 %r6, %r1, 2; add.u32 %r6, %r6, %r2; st.shared.u32 [%r6], %r5;
    bar.warp.sync -1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra CHANGED;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r2], %rd2;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r2], 1, 3;
    tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r2], 0, 32;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r2], 0, 4;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r2], 1, 1;
    tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r2], 1;
    tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r2], 7;
    tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r2], 0;
    tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r2], 0;
    tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r2], 0;
    mbarrier.init.shared::cta.b64 [%r4], 1; fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 64;
  CHANGED:
    bar.warp.sync -1;
)" + publish +
         "\n" + acquire + R"(
    mov.u32 %r7, 0;
    @!%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd3, {%r7, %r7}], [%r4];
  W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
    @!%p2 bra W;
    setp.ge.u32 %p3, %r1, 16;
    @%p3 bra END;
    shl.b32 %r6, %r1, 2; add.u32 %r6, %r6, %r3; ld.shared.u32 %r8, [%r6];
    add.s64 %rd6, %rd1, %rd5; st.global.u32 [%rd6], %r8;
  END: ret; })";
}
constexpr char kPublish[] =
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
    "[%rd3], [%r2], 128;";
constexpr char kAcquire[] = "fence.proxy.tensormap::generic.acquire.gpu [%rd3], 128;";

PtxRun run_changed_map(const std::string& ptx) {
  PtxRun r;
  r.ptx = ptx;
  std::vector<float> unused(64), values(32);
  for (size_t i = 0; i < 32; i++) values[i] = static_cast<float>(i);
  r.buffers = {output_of("out", 64), buffer_of("values", values, true),
               buffer_of("place of the map", std::vector<uint32_t>(32)), buffer_of("old", unused)};
  // The map as passed: bf16, another buffer, other sizes.
  r.maps = {{plan::MapType::bf16, 2, 3, {64, 2}, {128}, {8, 4}, {1, 1}}};
  r.block = {32};
  r.go();
  return r;
}

TEST(CoreRemote, ChangedTensorMap) {
  PtxRun r = run_changed_map(changed_map(kPublish, kAcquire));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  EXPECT_EQ(r.result.message, "");
  // Rows of 32 bytes, four columns of each, the fourth row outside. Dimension 0 stays 64 wide.
  EXPECT_EQ(values_of<float>(r.buffers[0]),
            (std::vector<float>{0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 0, 0, 0, 0}));
}

// Scopes, and edits in global memory: a map that is already there is moved to other data.
TEST(CoreRemote, ChangedTensorMapInGlobalMemory) {
  for (const std::string scope : {"cta", "cluster", "sys"}) {
    std::string publish = kPublish, acquire = kAcquire;
    publish.replace(publish.find(".gpu"), 4, "." + scope),
        acquire.replace(acquire.find(".gpu"), 4, "." + scope);
    PtxRun r = run_changed_map(changed_map(publish + R"(
    @!%p1 tensormap.replace.tile.global_dim.global.b1024.b32 [%rd3], 1, 2;
    @!%p1 fence.proxy.tensormap::generic.release.)" +
                                               scope + ";",
                                           acquire));
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.kinds(), "");
    EXPECT_EQ(values_of<float>(r.buffers[0]),
              (std::vector<float>{0, 1, 2, 3, 8, 9, 10, 11, 0, 0, 0, 0, 0, 0, 0, 0}));
  }
}

TEST(CoreRemote, ChangedTensorMapWithoutTheFence) {
  PtxRun r = run_changed_map(changed_map(kPublish, ""));
  ASSERT_EQ(r.error, "");
  const plan::Finding* f = r.finding("missing-tensormap-fence");
  ASSERT_TRUE(f) << r.kinds();
  EXPECT_EQ(f->hazard, HazardClass::latent);
}

// NHWC, 1 image of 3 x 4 pixels of four floats; 6 pixels from (1, 0), moved by one column.
TEST(CoreRemote, ImageToColumnCopies) {
  PtxRun r;
  r.ptx =
      R"(.visible .entry k(.param .u64 p0, .param .u64 p1, .param .align 64 .b8 map[128], .param .align 64 .b8 to[128]) {
    .reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .b16 %rs<3>;
    .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [p1]; mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3;
    mov.b64 %rd4, to; cvta.param.u64 %rd4, %rd4;
    mov.u32 %r1, %tid.x; mov.u32 %r3, tile; mov.u32 %r4, bar;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r4], 1; fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 96;
    mov.u32 %r5, 0; mov.u32 %r6, 1; mov.u16 %rs1, 1; mov.u16 %rs2, 0;
    cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r3], [%rd3, {%r5, %r6, %r5, %r5}], [%r4], {%rs1, %rs2};
  READY:
    bar.warp.sync -1;
  W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
    @!%p2 bra W;
    @%p1 bra END;
    cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%rd4, {%r5, %r5, %r5, %r5}], [%r3];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
  END: ret; })";
  std::vector<float> image(48);
  for (size_t i = 0; i < 48; i++) image[i] = static_cast<float>(i + 1);
  r.buffers = {buffer_of("image", image, true), buffer_of("out", std::vector<float>(48))};
  plan::TensorMapArgs map{plan::MapType::f32, 4,           0, {4, 4, 3, 1}, {16, 64, 192},
                          {4, 1, 1, 1},       {1, 1, 1, 1}};
  map.im2col = true, map.pixels = 6;
  plan::TensorMapArgs to = map;
  map.upper = {-1, 0};
  to.global_address = 1;
  r.maps = {map, to};
  r.block = {32};
  r.go();
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  EXPECT_EQ(r.result.message, "");
  // Columns 0..2 (the upper corner leaves the last out), then the next row; read one to the right.
  std::vector<float> want(48);
  const int pixels[] = {2, 3, 5, 6, 7, 9};
  for (size_t p = 0; p < 6; p++)
    for (size_t c = 0; c < 4; c++)
      want[p * 4 + c] = static_cast<float>(pixels[p] * 4 + static_cast<int>(c) + 1);
  EXPECT_EQ(values_of<float>(r.buffers[1]), want);
}

TEST(CoreRemote, InterleavedMapsWithStridesAreRefusedByName) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0, .param .align 64 .b8 map[128]) {
    .reg .b32 %r<20>; .reg .b64 %rd<20>;
    .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
    mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3;
    mov.u32 %r3, tile; mov.u32 %r4, bar; mov.u32 %r5, 0;
    mbarrier.init.shared::cta.b64 [%r4], 1; fence.proxy.async.shared::cta;
    cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd3, {%r5, %r5, %r5}], [%r4];
    ret; })";
  r.buffers = {buffer_of("values", std::vector<uint32_t>(1024))};
  r.maps = {{plan::MapType::bf16, 3, 0, {8, 8, 8}, {16, 128}, {8, 4, 1}, {1, 1, 1}}};
  r.maps[0].interleave = plan::MapInterleave::b16, r.maps[0].element_strides[1] = 2;
  r.go();
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.result.status, RunStatus::unsupported);
  EXPECT_NE(r.result.message.find("interleaved"), std::string::npos) << r.result.message;
}

}  // namespace
}  // namespace ptxbench::emu::test
