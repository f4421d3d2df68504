// Opcodes, modifiers and operands.
#include "ptx/instruction_table.h"
#include "ptx/ptx_test_util.h"

namespace ptxbench::ptx {
namespace {

using Kind = Operand::Kind;

TEST(Instruction, LongestOpcodeWins) {
  EXPECT_EQ(one("bar.sync 0;").op, Op::bar);
  EXPECT_EQ(one("bar.warp.sync -1;").op, Op::bar_warp_sync);
  EXPECT_EQ(one("barrier.cluster.arrive.release.aligned;").op, Op::barrier_cluster_arrive);
  EXPECT_EQ(one("cp.async.bulk.wait_group.read 0;").op, Op::cp_async_bulk_wait_group);
  EXPECT_EQ(one("cp.async.wait_all;").op, Op::cp_async_wait_all);
  EXPECT_EQ(one("shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;").op, Op::shfl_sync);
  EXPECT_EQ(
      one("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, "
          "%r1, 0, %p1, 1, 1, 0, 0;")
          .op,
      Op::wgmma_mma_async_sp);
}

// Words that ptxas 13.0 overlooks where they do not belong mean nothing, and stay in the text.
TEST(Instruction, OverlookedWords) {
  Instruction plain = one("mul.rn.f32 %f1, %f2, %f3;");
  Instruction more = one("mul.box_dim.rn.acc::f16.f32 %f1, %f2, %f3;");
  EXPECT_EQ(more.mods->flags, plain.mods->flags);
  EXPECT_EQ(more.form, plain.form);
  EXPECT_EQ(mnemonic(more), "mul.box_dim.rn.acc::f16.f32");
  EXPECT_EQ(mnemonic(one("match.any.sync.sync.b32 %r1, %r2, 1;")), "match.any.sync.sync.b32");
}

TEST(Instruction, TensorCopyModifiers) {
  Instruction i =
      one("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
          ".multicast::cluster.L2::cache_hint [%r1], [%rd1, {%r2, %r3}], [%r4], %rs1, %rd2;");
  EXPECT_EQ(i.op, Op::cp_async_bulk_tensor);
  EXPECT_TRUE(i.mods.has(Mod::dim2d));
  EXPECT_TRUE(i.mods.has(Mod::tile));
  EXPECT_TRUE(i.mods.has(Mod::mbarrier_complete_tx_bytes));
  EXPECT_TRUE(i.mods.has(Mod::multicast_cluster));
  EXPECT_TRUE(i.mods.has(Mod::L2_cache_hint));
  EXPECT_EQ(i.mods.space(0), Space::shared_cluster);
  EXPECT_EQ(i.mods.space(1), Space::global);
  ASSERT_EQ(i.operands.size(), 5u);
  const Operand& map = i.operands[1];
  EXPECT_EQ(map.kind, Kind::address);
  EXPECT_EQ(map.base, Operand::Base::reg);
  ASSERT_EQ(map.elements.size(), 1u);
  EXPECT_EQ(map.elements[0].kind, Kind::vector);
  EXPECT_EQ(map.elements[0].elements.size(), 2u);
}

TEST(Instruction, ModifierOrderIsFree) {
  Instruction a = one("ld.global.relaxed.gpu.b32 %r1, [%rd1];");
  Instruction b = one("ld.relaxed.gpu.global.b32 %r1, [%rd1];");
  EXPECT_EQ(a.mods->flags, b.mods->flags);
  EXPECT_EQ(a.mods->spaces, b.mods->spaces);
  EXPECT_NE(mnemonic(a), mnemonic(b)) << "the spelling is kept";
  EXPECT_EQ(one("stmatrix.sync.aligned.x2.m8n8.shared.b16 [%r1], {%r2,%r3};").mods->flags,
            one("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r1], {%r2,%r3};").mods->flags);
}

TEST(Instruction, FenceAndMbarrierWords) {
  Instruction fence = one("fence.proxy.async.shared::cta;");
  EXPECT_EQ(fence.op, Op::fence);
  EXPECT_TRUE(fence.mods.has(Mod::proxy) && fence.mods.has(Mod::async));
  EXPECT_EQ(fence.mods.space(), Space::shared_cta);
  Instruction arrive = one("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r1], 4096;");
  EXPECT_EQ(arrive.op, Op::mbarrier_arrive);
  EXPECT_TRUE(arrive.mods.has(Mod::expect_tx) && arrive.mods.has(Mod::cta));
  EXPECT_EQ(arrive.operands[0].kind, Kind::sink);
  Instruction wait = one("tcgen05.wait::ld.sync.aligned;", "sm_100a");
  EXPECT_EQ(wait.op, Op::tcgen05_wait);
  EXPECT_TRUE(wait.mods.has(Mod::ld_));
  EXPECT_EQ(mnemonic(wait), "tcgen05.wait::ld.sync.aligned");
}

TEST(Instruction, ShapesAndTypes) {
  Instruction mma = one(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, "
      "{%r5,%r6}, {%f1,%f2,%f3,%f4};");
  EXPECT_EQ(mma.mods->shape, (MatrixShape{16, 8, 16}));
  EXPECT_EQ(mma.mods->types, (std::vector<Type>{Type::f32, Type::bf16, Type::bf16, Type::f32}));
  Instruction ld = one("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1,%r2,%r3,%r4}, [%r5];");
  EXPECT_EQ(ld.mods->shape, (MatrixShape{8, 8, 0}));
  EXPECT_TRUE(ld.mods.has(Mod::m8n8) && ld.mods.has(Mod::x4) && ld.mods.has(Mod::trans));
  Instruction cvt = one("cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;");
  EXPECT_EQ(cvt.mods->types, (std::vector<Type>{Type::e4m3x2, Type::f32}));
}

TEST(Instruction, Immediates) {
  auto value = [](std::string text) {
    return static_cast<int64_t>(one("mov.b64 %rd1, " + text + ";").operands[1].value);
  };
  EXPECT_EQ(value("-16"), -16);
  EXPECT_EQ(value("0xFFU"), 255);
  EXPECT_EQ(value("010"), 8);
  EXPECT_EQ(value("0b101"), 5);
  EXPECT_EQ(value("(1+2)*3-4 % 3"), 8);
  EXPECT_EQ(value("1 << 4 | 3"), 19);
  EXPECT_EQ(value("-1 >> 1"), -1);
  EXPECT_EQ(value("(.u64)-1 >> 63"), 1);
  EXPECT_EQ(value("3 > 2 ? 7 : 9"), 7);
  EXPECT_EQ(value("(!0) + ~0"), 0);
  EXPECT_EQ(value("WARP_SZ * 2"), 64);
  EXPECT_EQ(value("18446744073709551615"), -1);
  Operand f = one("mov.f32 %f1, 0f3F800000;").operands[1];
  EXPECT_EQ(f.kind, Kind::floating);
  EXPECT_TRUE(f.is_f32);
  EXPECT_EQ(f.value, 0x3f800000u);
  Operand d = one("mov.f64 %fd1, -1.5;").operands[1];
  EXPECT_FALSE(d.is_f32);
  EXPECT_EQ(d.value, 0xbff8000000000000u);
}

TEST(Instruction, Addresses) {
  auto address = [](std::string text) { return one("ld.b32 %r1, " + text + ";").operands[1]; };
  EXPECT_EQ(address("[%rd1+-16]").offset, -16);
  EXPECT_EQ(address("[%rd1-4]").offset, -4);
  EXPECT_EQ(address("[%rd1]").offset, 0);
  EXPECT_EQ(address("[4096]").base, Operand::Base::none);
  Operand param = one("ld.param.b32 %r1, [q+8];").operands[1];
  EXPECT_EQ(param.base, Operand::Base::variable);
  EXPECT_TRUE(param.is_param && param.is_local);
  EXPECT_EQ(param.index, 1u);
  EXPECT_EQ(param.offset, 8);
}

TEST(Instruction, SinksPairsVectorsPredicates) {
  Instruction elect = one("elect.sync _|%p1, -1;");
  ASSERT_EQ(elect.operands[0].kind, Kind::pair);
  EXPECT_EQ(elect.operands[0].elements[0].kind, Kind::sink);
  EXPECT_EQ(elect.operands[0].elements[1].kind, Kind::reg);
  Instruction setp = one("@!%p1 setp.lt.and.s32 %p2|%p3, %r1, 5, !%p0;");
  EXPECT_TRUE(setp.guard_negated);
  EXPECT_NE(setp.guard, kNone);
  EXPECT_TRUE(setp.operands[3].negated);
  Instruction ld = one("ld.global.v4.u32 {%r1, _, %r2, %r3}, [%rd1];");
  EXPECT_EQ(ld.operands[0].elements[1].kind, Kind::sink);
}

TEST(Instruction, SpecialRegisters) {
  Operand tid = one("mov.u32 %r1, %tid.y;").operands[1];
  EXPECT_EQ(tid.kind, Kind::special);
  EXPECT_EQ(static_cast<Special>(tid.index), Special::tid);
  EXPECT_EQ(tid.component, 1);
  Operand env = one("mov.b32 %r1, %envreg2;").operands[1];
  EXPECT_EQ(static_cast<Special>(env.index), Special::envreg);
  EXPECT_EQ(env.component, 2);
  EXPECT_EQ(static_cast<Special>(one("mov.u64 %rd1, %clock64;").operands[1].index),
            Special::clock64);
}

TEST(Instruction, Families) {
  auto f = [](std::string text, std::string_view target = "sm_90a") {
    return family(one(text, target));
  };
  EXPECT_EQ(f("ld.global.L1::no_allocate.L2::128B.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1];"), "ld.global");
  EXPECT_EQ(f("st.shared::cta.b32 [%r1], %r2;"), "st.shared");
  EXPECT_EQ(f("st.shared::cluster.b32 [%r1], %r2;"), "st.shared::cluster");
  EXPECT_EQ(f("ld.b32 %r1, [%rd1];"), "ld");
  EXPECT_EQ(f("fma.rn.f32 %f1, %f2, %f3, %f4;"), "fma");
  EXPECT_EQ(f("bar.sync 0;"), "bar.sync");
  EXPECT_EQ(f("fence.proxy.async.shared::cta;"), "fence.proxy.async");
  EXPECT_EQ(f("fence.mbarrier_init.release.cluster;"), "fence.mbarrier_init.release");
  EXPECT_EQ(f("mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;"), "mbarrier.try_wait");
  EXPECT_EQ(f("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r2;"),
            "mbarrier.arrive.expect_tx");
  EXPECT_EQ(f("atom.global.add.u32 %r1, [%rd1], 1;"), "atom.global");
  EXPECT_EQ(f("tcgen05.wait::st.sync.aligned;", "sm_100a"), "tcgen05.wait::st");
  EXPECT_EQ(f("cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], "
              "[%rd1, {%r2}], "
              "[%r3];"),
            "cp.async.bulk.tensor.load");
  EXPECT_EQ(f("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r2}], [%r3];"),
            "cp.async.bulk.tensor.store");
  EXPECT_EQ(f("shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;"), "shfl.sync");
}

TEST(Instruction, EveryOpcodeHasAForm) {
  for (size_t i = 0; i < kOpCount; ++i)
    EXPECT_FALSE(info(static_cast<Op>(i)).forms.empty()) << name(static_cast<Op>(i));
}

}  // namespace
}  // namespace ptxbench::ptx
