// What a launch costs (emu/costs.h): sectors, cycles of shared memory, copies beside products, and
// what a sample of the CTAs says of the whole. Expected numbers are worked out by hand.

#include "emu/costs.h"
#include "emu/ptx_runner.h"

namespace ptxbench::emu::test {
namespace {

std::array<uint32_t, 32> offsets(uint32_t stride) {
  std::array<uint32_t, 32> at{};
  for (uint32_t l = 0; l < 32; l++) at[l] = l * stride;
  return at;
}

TEST(Costs, LanesWithDifferentWordsInOneBankTakeTurns) {
  EXPECT_EQ(shared_access(offsets(4).data(), ~0u, 4).units, 1u);
  EXPECT_EQ(shared_access(offsets(0).data(), ~0u, 4).units, 1u);  // all read one word
  EXPECT_EQ(shared_access(offsets(8).data(), ~0u, 4).units, 2u);
  EXPECT_EQ(shared_access(offsets(128).data(), ~0u, 4).units, 32u);
  EXPECT_EQ(shared_access(offsets(132).data(), ~0u, 4).units, 1u);  // a column padded by a word
  EXPECT_EQ(shared_access(offsets(128).data(), 0xff, 4).units, 8u);
  EXPECT_EQ(shared_access(offsets(2).data(), ~0u, 2).units, 1u);  // two lanes share each word
}

TEST(Costs, WideSharedAccessesGoInPartsOf128Bytes) {
  const plan::AccessCost straight = shared_access(offsets(16).data(), ~0u, 16);
  EXPECT_EQ(straight.units, 4u);
  EXPECT_EQ(straight.least, 4u);
  EXPECT_EQ(straight.bytes, 512u);
  // Rows of 128 bytes: the eight lanes of a part hit the same four banks.
  const plan::AccessCost rows = shared_access(offsets(128).data(), ~0u, 16);
  EXPECT_EQ(rows.units, 32u);
  EXPECT_EQ(rows.least, 4u);
}

TEST(Costs, MatrixRowsConflictUnlessTheyAreSwizzledOrPadded) {
  EXPECT_EQ(matrix_access(offsets(16).data(), 8).units, 1u);
  EXPECT_EQ(matrix_access(offsets(128).data(), 8).units, 8u);
  EXPECT_EQ(matrix_access(offsets(144).data(), 32).units, 4u);
  std::array<uint32_t, 32> swizzled{};
  for (uint32_t l = 0; l < 32; l++) swizzled[l] = l * 128 + (l % 8) * 16;
  EXPECT_EQ(matrix_access(swizzled.data(), 32).units, 4u);
}

TEST(Costs, SectorsOfAGlobalAccess) {
  std::vector<uint64_t> sectors;
  uint32_t lines = 0;
  const auto access = [&](uint64_t first, uint64_t stride, uint32_t bytes) {
    uint64_t at[32];
    for (uint64_t l = 0; l < 32; l++) at[l] = first + l * stride;
    return global_access(at, ~0u, bytes, &sectors, &lines);
  };
  EXPECT_EQ(access(4096, 4, 4).units, 4u);
  EXPECT_EQ(lines, 1u);
  const plan::AccessCost strided = access(4096, 1024, 2);
  EXPECT_EQ(strided.units, 32u);
  EXPECT_EQ(strided.least, 2u);
  EXPECT_EQ(lines, 32u);
  EXPECT_EQ(access(4096, 0, 4).units, 1u);  // one word for all
  EXPECT_EQ(access(4112, 4, 4).units, 5u);  // straddles a sector more
}

// Thread t of a CTA loads in[column * stride + row] and stores it at the same place of `out`.
const char* kStrided = R"(.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 p2) {
    .reg .b32 %r<9>; .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; ld.param.u32 %r4, [p2];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r3, %r1, %r4, %r2;
    mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    ld.global.u32 %r5, [%rd4];
    st.global.u32 [%rd5], %r5;
    ret; })";

plan::RunResult strided(uint32_t stride, uint32_t ctas, plan::CostRequest costs) {
  PtxRun r;
  r.ptx = kStrided;
  const size_t words = size_t{32} * std::max(stride, 1u) + ctas;
  r.buffers = {buffer_of("in", std::vector<uint32_t>(words), true), output_of("out", words * 4)};
  r.scalars = {stride};
  r.grid = {ctas}, r.block = {32};
  r.options.costs = costs;
  r.go();
  EXPECT_EQ(r.error, "");
  return std::move(r.result);
}

TEST(Costs, AreCountedOnlyWhereTheyAreAskedFor) {
  EXPECT_TRUE(strided(64, 8, {}).costs.empty());
  const plan::RunResult run = strided(64, 8, {.collect = true});
  ASSERT_EQ(run.costs.size(), 1u);
  const plan::LaunchCosts& c = run.costs[0];
  EXPECT_EQ(c.kernel, "k");
  EXPECT_EQ(c.ctas, 8u);
  EXPECT_EQ(c.ctas_run, 8u);
  EXPECT_EQ(c.global_load.requests, 8u);
  EXPECT_EQ(c.global_load.units, 8u * 32);
  EXPECT_EQ(c.global_load.least, 8u * 4);
  EXPECT_EQ(c.global_store.units, 8u * 32);
  EXPECT_EQ(c.cta_instructions, std::vector<uint64_t>(8, c.warp_instructions / 8));
  EXPECT_EQ(c.pipes[static_cast<size_t>(plan::Pipe::memory)], 16u);  // parameters are not memory
  ASSERT_EQ(c.sites.size(), 2u);
  EXPECT_EQ(c.sites[0].kind, "global-load");
  EXPECT_NE(c.sites[0].ptx.find("ld.global.u32"), std::string::npos);
}

TEST(Costs, ASampleOfTheGridStandsForAllOfIt) {
  const plan::RunResult all = strided(1024, 512, {.collect = true});
  const plan::RunResult some = strided(1024, 512, {.collect = true, .clusters = 16});
  const plan::LaunchCosts &a = all.costs[0], &s = some.costs[0];
  EXPECT_EQ(s.ctas, 512u);
  EXPECT_EQ(s.ctas_run, 16u);
  EXPECT_EQ(s.global_load.units * 32, a.global_load.units);
  EXPECT_EQ(s.unique_read_bytes, a.unique_read_bytes);
  const plan::RunResult few =
      strided(1024, 512, {.collect = true, .clusters = 16, .instructions = 1});
  EXPECT_EQ(few.costs[0].ctas_run, 1u);
}

TEST(Costs, TheFirstLevelCacheKeepsWhatACtaReadsAgain) {
  const plan::RunResult same = strided(0, 1, {.collect = true});
  EXPECT_EQ(same.costs[0].l2_load_sectors, 1u);
  // Neighbouring CTAs read the same sectors, but not from the cache of another.
  const plan::RunResult neighbours = strided(64, 8, {.collect = true});
  EXPECT_EQ(neighbours.costs[0].l2_load_sectors, 8u * 32);
}

TEST(Costs, AtomicsToOneAddress) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p0];
    red.global.add.u32 [%rd1], 1;
    ret; })";
  r.buffers = {buffer_of("sum", std::vector<uint32_t>(1))};
  r.grid = {4}, r.block = {64};
  r.options.costs.collect = true;
  r.go();
  ASSERT_EQ(r.error, "");
  const plan::LaunchCosts& c = r.result.costs.at(0);
  EXPECT_EQ(c.atomics.requests, 8u);
  EXPECT_EQ(c.atomics.units, 8u);
  EXPECT_EQ(c.hottest_atomic, 256u);
  EXPECT_EQ(values_of<uint32_t>(r.buffers[0])[0], 256u);
}

// Two copies of 16 bytes a lane and a product; `middle` waits for all copies or all but the last.
plan::LaunchCosts copies_and_product(const std::string& middle) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .b32 %r<20>; .reg .f32 %f<5>; .reg .b64 %rd<5>;
    .shared .align 128 .b8 buf[1024];
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4;
    cvt.u64.u32 %rd2, %r2; add.s64 %rd3, %rd1, %rd2;
    mov.u32 %r3, buf; add.u32 %r4, %r3, %r2;
    cp.async.cg.shared.global [%r4], [%rd3], 16; cp.async.commit_group;
    cp.async.cg.shared.global [%r4+512], [%rd3], 16; cp.async.commit_group;
)" + middle +
          R"(
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r4];
    mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4},
        {%r5, %r6, %r7, %r8}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
    cp.async.wait_group 0;
    ret; })";
  r.buffers = {buffer_of("in", std::vector<uint32_t>(128), true)};
  r.block = {32};
  r.options.costs.collect = true;
  r.go();
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.kinds(), "");
  return r.result.costs.empty() ? plan::LaunchCosts() : r.result.costs[0];
}

TEST(Costs, ProductsBesideCopiesInFlight) {
  const plan::LaunchCosts beside = copies_and_product("cp.async.wait_group 1;");
  EXPECT_EQ(beside.copies, 2u);
  EXPECT_EQ(beside.matrix_instructions, 1u);
  EXPECT_EQ(beside.matrix_beside_copy, 1u);
  EXPECT_EQ(beside.matrix_warps, 1u);
  ASSERT_EQ(beside.matrix.size(), 1u);
  EXPECT_EQ(beside.matrix[0].flop, 2.0 * 16 * 8 * 16);
  EXPECT_FALSE(beside.matrix[0].warpgroup);
  EXPECT_EQ(beside.shared_store.units, 8u);  // two copies of 512 bytes
  EXPECT_EQ(beside.shared_load.units, 4u);
  EXPECT_EQ(copies_and_product("cp.async.wait_group 0;").matrix_beside_copy, 0u);
}

}  // namespace
}  // namespace ptxbench::emu::test
