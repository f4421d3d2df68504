#include "ptx/source_map.h"

#include "ptx/ptx_test_util.h"

namespace ptxbench::ptx {
namespace {

TEST(SourceMap, ChainOfInlinedCalls) {
  Module m =
      parse_ok(header() +
               ".visible .entry k() {\n.loc 1 10 3\n.loc 1 20 5, function_name $L__info_string0, "
               "inlined_at 1 10 3\n.loc 2 30 7, function_name $L__info_string1, inlined_at 1 20 5\n"
               "ret;\n}\n.file 1 \"/src/a.cu\"\n.file 2 \"/src/b.cuh\"\n"
               ".section .debug_str\n{\n$L__info_string0:\n.b8 95,90,49,102,118,0\n"
               "$L__info_string1:\n.b8 95,90,49,103,118,0\n}\n");
  ASSERT_FALSE(m.functions.empty());
  const auto chain = source_chain(m, instructions(m.functions[0])[0]);
  ASSERT_EQ(chain.size(), 3u);
  EXPECT_EQ(chain[0], (SourceFrame{"/src/b.cuh", 30, 7, "_Z1gv"}));
  EXPECT_EQ(chain[1], (SourceFrame{"/src/a.cu", 20, 5, "_Z1fv"}));
  EXPECT_EQ(chain[2], (SourceFrame{"/src/a.cu", 10, 3, ""}));
  EXPECT_EQ(to_string(chain), "b.cuh:30 in _Z1gv, inlined at a.cu:20 in _Z1fv, inlined at a.cu:10");
}

TEST(SourceMap, NothingKnown) {
  EXPECT_TRUE(source_chain(Module{}, kNone).empty());
  EXPECT_EQ(to_string({}), "");
}

TEST(SourceMap, RingsEnd) {
  Module m;
  m.locations.resize(2);
  m.locations[0].inlined_at = 1;
  m.locations[1].inlined_at = 0;
  EXPECT_EQ(source_chain(m, 0).size(), 33u);
}

TEST(SourceMap, CompiledCodeNamesEveryInlinedFunction) {
  Module m = parse_ok(read_corpus("lines_lineinfo"));
  size_t deepest = 0;
  for (const Function& f : m.functions)
    for (const Instruction& i : instructions(f)) {
      const auto chain = source_chain(m, i);
      deepest = std::max(deepest, chain.size());
      for (size_t frame = 0; frame < chain.size(); ++frame) {
        EXPECT_FALSE(chain[frame].file.empty());
        EXPECT_EQ(chain[frame].function.empty(), frame + 1 == chain.size());
      }
    }
  EXPECT_GE(deepest, 4u);
}

}  // namespace
}  // namespace ptxbench::ptx
