// What nvcc 13.0 makes of tests/ptx/corpus/*.cu: parse, verify, print, parse again; ptxas where
// there is one.
#include "ptx/assemble.h"
#include "ptx/def_use.h"
#include "ptx/round_trip.h"

namespace ptxbench::ptx {
namespace {

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, RoundTrip) { expect_round_trip(read_corpus(GetParam()), "t.ptx"); }

// Every register that is read is written somewhere or is a parameter: a role that is wrong in the
// table (a destination taken for a source) would show here.
TEST_P(Corpus, RegistersReadAreWritten) {
  Module m = parse_ok(read_corpus(GetParam()));
  for (const Function& f : m.functions) {
    std::vector<bool> written(f.registers.size()), read(f.registers.size());
    for (const Variable& p : f.params)
      if (p.reg != kNone) written[p.reg] = true;
    for (const Instruction& i : instructions(f))
      for_each_register(i, [&](uint32_t r, bool w) { (w ? written : read)[r] = true; });
    for (size_t r = 0; r < f.registers.size(); ++r)
      EXPECT_TRUE(written[r] || !read[r]) << f.name << " " << f.registers[r].name;
  }
}

TEST_P(Corpus, AssemblerTakesThePrintedText) {
  if (find_assembler().empty()) GTEST_SKIP() << "no ptxas here";
  Module m = parse_ok(read_corpus(GetParam()));
  const Assembled assembled = assemble(print(m), m.target);
  EXPECT_TRUE(assembled.ok) << assembled.log;
}

INSTANTIATE_TEST_SUITE_P(Nvcc, Corpus, testing::ValuesIn(corpus()),
                         [](const auto& info) { return info.param; });

TEST(CorpusFacts, HopperKernel) {
  Module m = parse_ok(read_corpus("hopper"));
  std::map<std::string, int> families;
  const Function* gemm = nullptr;
  for (const Function& f : m.functions)
    if (f.name.find("gemm") != std::string::npos) gemm = &f;
  ASSERT_TRUE(gemm);
  for (const Instruction& i : instructions(*gemm)) ++families[family(i)];
  EXPECT_EQ(families["wgmma.mma_async"], 5);
  EXPECT_EQ(families["cp.async.bulk.tensor.load"], 2);
  EXPECT_EQ(families["setmaxnreg"], 2);
  EXPECT_EQ(families["mbarrier.try_wait"], 6);
  EXPECT_EQ(families["mbarrier.init"], 8);
  EXPECT_EQ(gemm->directives.reqnctapercluster, (std::vector<uint32_t>{2, 1, 1}));
  EXPECT_EQ(gemm->directives.maxntid[0], 256u);
  EXPECT_EQ(gemm->params[0].size, 128u);
  EXPECT_EQ(gemm->param_offsets[1], 128u);
}

TEST(CorpusFacts, LineInfoHasInliningChains) {
  Module m = parse_ok(read_corpus("lines_lineinfo"));
  size_t deepest = 0;
  for (const SourceLine& l : m.locations) {
    size_t depth = 1;
    for (uint32_t at = l.inlined_at; at != kNone && depth < 100; at = m.locations[at].inlined_at)
      ++depth;
    deepest = std::max(deepest, depth);
  }
  EXPECT_GE(deepest, 4u);
  EXPECT_LT(deepest, 100u) << "a chain of inlined_at is circular";
  ASSERT_FALSE(m.debug_strings.empty());
  EXPECT_NE(m.debug_strings[0].find("_Z"), std::string::npos);
}

}  // namespace
}  // namespace ptxbench::ptx
