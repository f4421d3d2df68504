// Where counters stand in the printed text, and that the assembler takes it without new advisories.
#include "ptx/instrument.h"

#include "ptx/assemble.h"
#include "ptx/ptx_test_util.h"
#include "ptx/verifier.h"

namespace ptxbench::ptx {
namespace {

Instrumentation instrumented(std::string_view text, std::vector<std::string> families = {}) {
  Module m = parse_ok(text);
  auto out = instrument(m, std::move(families));
  EXPECT_TRUE(out.ok()) << out.error().to_string();
  if (!out.ok()) return {};
  if (!out->ptx.empty()) {
    Module again = parse_ok(out->ptx);
    auto verified = verify(again);
    EXPECT_TRUE(verified.ok()) << verified.error().to_string() << "\n" << out->ptx;
  }
  return out.take();
}

// The opcodes of the first function in order, counting code as "[n]" with its number of counters.
std::string skeleton(const Instrumentation& i) {
  Module m = parse_ok(i.ptx);
  std::string text;
  for (const Instruction& instruction : instructions(m.functions.back())) {
    if (instruction.op == Op::activemask) {
      text += "[";
    } else if (instruction.op == Op::red) {
      if (instruction.operands[0].offset % 16 == 8)
        text += std::to_string(instruction.operands[0].offset / 16) + "] ";
    } else if (text.empty() || text.back() != '[') {
      text += std::string(name(instruction.op)) + " ";
    }
  }
  return text;
}

const std::string kWgmma =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1, "
    "0, "
    "0;";
const std::string kLoad =
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, "
    "{%r2, %r3}], [%r4];";

TEST(Instrument, OneCounterBeforeTheFenceOfAGroup) {
  auto i = instrumented(kernel("wgmma.fence.sync.aligned;" + kWgmma + kWgmma +
                               "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
                               "ret;"));
  EXPECT_EQ(skeleton(i),
            "[0] wgmma.fence wgmma.mma_async wgmma.mma_async wgmma.commit_group wgmma.wait_group "
            "ret ");
  EXPECT_EQ(i.counters, 1u);
  EXPECT_EQ(i.buffer_bytes(), 16u);
  auto counts = decode_counters(i, std::vector<uint64_t>{5, 160});
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ((*counts)["wgmma.mma_async"].sites, 2u);
  EXPECT_EQ((*counts)["wgmma.mma_async"].warps, 10u);
  EXPECT_EQ((*counts)["wgmma.mma_async"].threads, 320u);
  EXPECT_FALSE(decode_counters(i, std::vector<uint64_t>{5}).ok());
}

TEST(Instrument, BranchesWithinAGroupGetACounterEach) {
  auto i = instrumented(kernel("wgmma.fence.sync.aligned;" + kWgmma + "@%p1 bra L;" + kWgmma +
                               kWgmma + "L: wgmma.commit_group.sync.aligned; ret;"));
  EXPECT_EQ(skeleton(i),
            "[0] wgmma.fence wgmma.mma_async bra [1] wgmma.mma_async wgmma.mma_async "
            "wgmma.commit_group ret ");
  ASSERT_EQ(i.sites.size(), 3u);
  EXPECT_EQ(i.sites[2].counter, 1u);
}

TEST(Instrument, GuardedSitesCountTheirOwnLanes) {
  auto i = instrumented(kernel("@!%p2 " + kLoad + kLoad + "ret;"));
  EXPECT_EQ(i.counters, 2u);
  EXPECT_NE(i.ptx.find("vote.sync.ballot.b32 %ptxbench2, !%p2, %ptxbench2"), std::string::npos)
      << i.ptx;
  EXPECT_NE(i.ptx.find("setp.eq.and.u32 %ptxbench0, %ptxbench3, 0, !%p2"), std::string::npos);
  EXPECT_EQ(skeleton(i), "[0] cp.async.bulk.tensor [1] cp.async.bulk.tensor ret ");
}

TEST(Instrument, CallsEndAGroup) {
  const std::string text = header() + ".func f() { ret; }\n.entry k() {\n.reg .b32 %r<9>;\n" +
                           "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2]; call f;" +
                           "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2]; ret; }";
  EXPECT_EQ(instrumented(text).counters, 2u);
}

TEST(Instrument, LabelsAndTablesStayInPlace) {
  auto i = instrumented(
      kernel("T: .branchtargets A, B; brx.idx %r1, T; A: " + kLoad + "B: " + kLoad + "ret;"));
  Module m = parse_ok(i.ptx);
  const Function& f = m.functions[0];
  for (const Label& label : f.labels) EXPECT_LT(label.statement, f.body.size());
  EXPECT_EQ(skeleton(i), "brx.idx [0] cp.async.bulk.tensor [1] cp.async.bulk.tensor ret ");
}

TEST(Instrument, NamesDoNotClash) {
  auto i = instrumented(header() +
                        ".global .u32 ptxbench_counters;\n.entry k() { .reg .b32 "
                        "%ptxbench0, %r2; ldmatrix.sync.aligned.m8n8.x1.shared.b16 "
                        "{%ptxbench0}, [%r2]; ret; }");
  EXPECT_EQ(i.symbol, "ptxbench_counters_");
}

TEST(Instrument, FamiliesByName) {
  const std::string text = kernel("add.s32 %r1, %r1, 1; ld.global.u32 %r2, [%rd1]; ret;");
  EXPECT_EQ(instrumented(text).counters, 0u);
  EXPECT_TRUE(instrumented(text).ptx.empty());
  EXPECT_EQ(instrumented(text, {"add", "ld.global"}).sites.size(), 2u);
  EXPECT_EQ(instrumented(text, {"ld.*"}).sites.size(), 1u);
  Module m = parse_ok(text);
  auto unknown = instrument(m, {"wgmma.mma_asink"});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "no instruction family is called wgmma.mma_asink");
  m.version_major = 6, m.version_minor = 0;
  EXPECT_FALSE(instrument(m, {}).ok());
}

class InstrumentCorpus : public testing::TestWithParam<std::string> {};

TEST_P(InstrumentCorpus, AssemblerTakesItAsBefore) {
  if (find_assembler().empty()) GTEST_SKIP() << "no ptxas here";
  const std::string text = read_corpus(GetParam());
  const std::string target = parse_ok(text).target;
  auto i = instrumented(text);
  ASSERT_GT(i.counters, 0u);
  const Assembled before = assemble(text, target), after = assemble(i.ptx, target);
  ASSERT_TRUE(after.ok) << after.log;
  EXPECT_LE(after.advisories, before.advisories) << after.log;
  EXPECT_LE(after.spilling, before.spilling) << after.log;
}

INSTANTIATE_TEST_SUITE_P(Nvcc, InstrumentCorpus, testing::Values("hopper", "blackwell"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ptxbench::ptx
