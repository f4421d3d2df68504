#include "ptx/def_use.h"

#include "ptx/ptx_test_util.h"

namespace ptxbench::ptx {
namespace {

// Names of the registers read, then "->", then those written.
std::string def_use(std::string_view text, std::string_view target = "sm_90a") {
  Module m = parse_ok(kernel(text, target));
  std::string reads, writes;
  Instruction i = instructions(m.functions[0]).back();
  for_each_register(i, [&](uint32_t r, bool write) {
    (write ? writes : reads) += m.functions[0].registers[r].name + " ";
  });
  return reads + "-> " + writes;
}

TEST(DefUse, ByRole) {
  EXPECT_EQ(def_use("add.s32 %r1, %r2, %r3;"), "%r2 %r3 -> %r1 ");
  EXPECT_EQ(def_use("@%p1 mad.lo.s32 %r1, %r2, 4, %r1;"), "%p1 %r2 %r1 -> %r1 ");
  EXPECT_EQ(def_use("ld.global.v4.u32 {%r1, _, %r2, %r3}, [%rd1+8];"), "%rd1 -> %r1 %r2 %r3 ");
  EXPECT_EQ(def_use("st.global.v2.b32 [%rd1], {%r1, %r2};"), "%rd1 %r1 %r2 -> ");
  EXPECT_EQ(def_use("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;"), "%r1 %r2 %p3 -> %p1 %p2 ");
  EXPECT_EQ(def_use("shfl.sync.idx.b32 %r1|%p1, %r2, %r3, 31, %r4;"), "%r2 %r3 %r4 -> %r1 %p1 ");
  EXPECT_EQ(def_use("elect.sync _|%p1, %r1;"), "%r1 -> %p1 ");
  EXPECT_EQ(def_use("mov.b64 {%r1, %r2}, %rd1;"), "%rd1 -> %r1 %r2 ");
  EXPECT_EQ(def_use("atom.global.cas.b32 %r1, [%rd1], %r2, %r3;"), "%rd1 %r2 %r3 -> %r1 ");
  EXPECT_EQ(def_use("red.global.add.u32 [%rd1], %r2;"), "%rd1 %r2 -> ");
  EXPECT_EQ(def_use("bar.red.and.pred %p1, 0, %r1, !%p2;"), "%r1 %p2 -> %p1 ");
}

TEST(DefUse, Hopper) {
  EXPECT_EQ(def_use("mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;"),
            "%r1 %r2 -> %p1 ");
  EXPECT_EQ(def_use("mbarrier.arrive.shared::cta.b64 %rd1, [%r1];"), "%r1 -> %rd1 ");
  EXPECT_EQ(def_use("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r2;"), "%r1 %r2 -> ");
  EXPECT_EQ(
      def_use("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, "
              "%p1, 1, 1, 0, 1;"),
      "%f1 %f2 %f3 %f4 %rd1 %rd2 %p1 -> %f1 %f2 %f3 %f4 ");
  EXPECT_EQ(
      def_use(
          "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1,%r2}, {%r3,%r4,%r5,%r6}, %rd2, "
          "%p1, 1, 1, 1;"),
      "%r1 %r2 %r3 %r4 %r5 %r6 %rd2 %p1 -> %r1 %r2 ");
  EXPECT_EQ(
      def_use(
          "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r1, %r2}], [%r3];"),
      "%rd1 %r1 %r2 %r3 -> ");
  EXPECT_EQ(def_use("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];", "sm_100a"),
            "%r3 -> %r1 %r2 ");
}

TEST(DefUse, Calls) {
  Module m = parse_ok(header() +
                      ".func (.reg .b32 o) f(.reg .b32 a) { mov.b32 o, a; ret; }\n"
                      ".entry k() { .reg .b32 x, y; call (x), f, (y); }");
  std::vector<std::pair<uint32_t, bool>> seen;
  for_each_register(instructions(m.functions[1])[0],
                    [&](uint32_t r, bool w) { seen.emplace_back(r, w); });
  EXPECT_EQ(seen, (std::vector<std::pair<uint32_t, bool>>{{1, false}, {0, true}}));
}

}  // namespace
}  // namespace ptxbench::ptx
