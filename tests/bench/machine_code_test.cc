// Reading nvdisasm's listings. The listing is written by hand in the form that nvdisasm 13.2
// prints.
#include "bench/gpu/machine_code.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "toolchain/toolkit.h"

namespace ptxbench::bench {
namespace {

constexpr const char* kListing = R"(
	.target	sm_90a
	.section	.text.first,"ax",@progbits
.text.first:
first:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 BRA `(.L_x_1) ;
        /*0020*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4], !UPT ;
        /*0030*/                   BRA.DIV UR8, `(.L_x_4) ;
        /*0040*/                   UTMALDG.2D [UR8], [UR4] ;
        /*0050*/                   BRA `(.L_x_2) ;
.L_x_3:
        /*0060*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4] ;
        /*0070*/                   HMMA.16816.F32.BF16 R4, R4, R8, RZ ;
.L_x_1:
        /*0080*/                   LDSM.16.M88.4 R4, [R4] ;
.L_x_2:
        /*0090*/               @P1 EXIT ;
        /*00a0*/                   UTMASTG.2D [UR8], [UR4] ;
        /*00b0*/                   EXIT ;
.L_x_4:
        /*00c0*/                   STSM.16.M88 [R4], R8 ;
.L_x_5:
        /*00d0*/                   BRA `(.L_x_5);
        /*00e0*/                   QGMMA.64x256x32.F32.E4M3.E4M3 R24, gdesc[UR4] ;
	.section	.text.second,"ax",@progbits
second:
        /*0000*/                   BRX R2 -0x10 (*"BRANCH_TARGETS .L_x_6"*) ;
        /*0010*/                   HMMA.16816.F32 R4, R4, R8, RZ ;
.L_x_6:
        /*0020*/                   UTMAPF.L2.2D [UR8], [UR4] ;
        /*0030*/                   RET.REL.NODEC R2 `(second) ;
	.section	.nv.info.third
        /*0000*/        .byte 0x04
)";

TEST(MachineCode, CountsWhatControlFlowCanReach) {
  const MachineSites first = sites_in_listing(kListing, {"first"});
  EXPECT_EQ(first.kernels, std::set<std::string>{"first"});
  const std::map<std::string, uint64_t> reachable = {{"wgmma.mma_async", 1},
                                                     {"cp.async.bulk.tensor.load", 1},
                                                     {"ldmatrix", 1},
                                                     {"stmatrix", 1},
                                                     {"cp.async.bulk.tensor.store", 1}};
  const std::map<std::string, uint64_t> unreachable = {{"wgmma.mma_async", 2}, {"mma", 1}};
  EXPECT_EQ(first.reachable, reachable);
  EXPECT_EQ(first.unreachable, unreachable);
}

TEST(MachineCode, AComputedJumpReachesEveryLabel) {
  const MachineSites second = sites_in_listing(kListing, {"second", "third"});
  EXPECT_EQ(second.kernels, std::set<std::string>{"second"});
  EXPECT_EQ(second.reachable,
            (std::map<std::string, uint64_t>{{"cp.async.bulk.prefetch.tensor", 1}}));
  EXPECT_EQ(second.unreachable, (std::map<std::string, uint64_t>{{"mma", 1}}));
}

Verdict executed(const char* family, bool required) {
  Verdict v;
  v.level = Level::strategy;
  v.reason = "not-timed";
  FamilyEvidence e;
  e.family = family;
  e.threads = 128;
  e.required = required;
  v.evidence.families = {e};
  return v;
}

TEST(MachineCode, RequiredInstructionsMustBeInWhatRan) {
  MachineSites sites;
  sites.reachable["wgmma.mma_async"] = 4;
  Verdict v = executed("wgmma.mma_async", true);
  judge_machine_code(sites, v);
  EXPECT_EQ(v.level, Level::strategy);
  EXPECT_EQ(v.evidence.families[0].machine_sites, 4u);
  EXPECT_TRUE(v.notes.empty());

  sites.unreachable = std::move(sites.reachable);
  sites.reachable.clear();
  v = executed("wgmma.mma_async", true);
  judge_machine_code(sites, v);
  EXPECT_EQ(v.level, Level::instructions);
  EXPECT_EQ(v.reason, "instructions-absent");
  EXPECT_EQ(v.message,
            "the machine code that ran has no wgmma.mma_async that can be reached (4 that cannot)");
  v = executed("ldmatrix", false);
  judge_machine_code(sites, v);
  EXPECT_EQ(v.level, Level::strategy);
  EXPECT_EQ(v.notes.size(), 1u);
}

// With the tools at hand: what ptxas makes of a loop around mma.sync and of code behind a return.
TEST(MachineCode, OfAssembledPtx) {
  const auto toolkit = toolchain::find_toolkit();
  if (!toolkit.ok() || !find_program("nvdisasm").ok()) GTEST_SKIP() << "no assembler, no nvdisasm";
  const TempDir folder = TempDir::create("machine-code-test").take();
  const auto ptx = folder.path() / "k.ptx", cubin = folder.path() / "k.cubin";
  const std::string text =
      ".version 8.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %a; .reg .b32 %r<5>;\n"
      "ld.param.u64 %a, [p]; ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%a];\n"
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1, %r2, %r3}, "
      "{%r0, %r1}, {%r2, %r3};\nst.global.v2.b32 [%a], {%r0, %r1};\nret;\n}\n";
  ASSERT_TRUE(write_file_atomically(ptx, text).ok());
  ProcessSpec spec;
  spec.argv = {toolkit->ptxas.string(), "-arch=sm_90a", ptx.string(), "-o", cubin.string()};
  ASSERT_TRUE(run_process(spec).take().succeeded());
  const std::vector<std::vector<uint8_t>> images = {read_bytes(cubin).take()};
  auto sites = machine_sites(images, {"k"});
  ASSERT_TRUE(sites.ok()) << sites.error().to_string();
  EXPECT_EQ(sites->reachable, (std::map<std::string, uint64_t>{{"mma", 1}}));
  auto missing = machine_sites(images, {"j"});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "the machine code has no j");
}

}  // namespace
}  // namespace ptxbench::bench
