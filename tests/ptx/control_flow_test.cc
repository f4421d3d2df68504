// The graph of small functions by hand, and its defining properties on compiled code.
#include "ptx/control_flow.h"

#include "ptx/ptx_test_util.h"

namespace ptxbench::ptx {
namespace {

// "0>1,2 1>3 2>3 3>x": the successors of each block, x for out of the function.
std::string edges(const ControlFlow& flow) {
  std::string text;
  for (size_t b = 0; b < flow.blocks().size(); ++b) {
    text += (b ? " " : "") + std::to_string(b) + ">";
    std::string list;
    for (uint32_t s : flow.blocks()[b].successors)
      list += (list.empty() ? "" : ",") + std::to_string(s);
    if (flow.blocks()[b].leaves) list += list.empty() ? "x" : ",x";
    text += list;
  }
  return text;
}

std::string edges(std::string_view body) {
  Module m = parse_ok(kernel(body));
  return edges(ControlFlow(m.functions[0], &m));
}

constexpr const char* kDiamond =
    "setp.eq.s32 %p1, %r1, 0; @%p1 bra A; add.s32 %r2, %r2, 1; bra B; A: add.s32 %r2, %r2, 2; "
    "B: st.global.u32 [%rd1], %r2; ret;";

TEST(ControlFlow, Edges) {
  EXPECT_EQ(edges("ret;"), "0>x");
  EXPECT_EQ(edges("@%p1 ret; add.s32 %r1, %r1, 1;"), "0>1,x 1>x");
  EXPECT_EQ(edges(kDiamond), "0>2,1 1>3 2>3 3>x");
  EXPECT_EQ(edges("L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 9; @%p1 bra L; exit;"),
            "0>0,1 1>x");
  EXPECT_EQ(edges("@%p1 trap; bra END; add.s32 %r1, %r1, 1; END:"), "0>1,x 1>x 2>x");
}

TEST(ControlFlow, BranchTable) {
  EXPECT_EQ(edges("T: .branchtargets A, B, A; brx.idx %r1, T; A: ret; B: trap; C: ret;"),
            "0>1,2 1>x 2>x 3>x");
}

TEST(ControlFlow, CallsFallThroughUnlessTheyNeverReturn) {
  const char* text =
      ".func f() { ret; }\n.func g() .noreturn { trap; }\n"
      ".entry k() { call f; call g; ret; }";
  Module m = parse_ok(header() + text);
  EXPECT_EQ(edges(ControlFlow(m.functions[2], &m)), "0> 1>x");
  EXPECT_EQ(edges(ControlFlow(m.functions[2])), "0>x");
}

TEST(ControlFlow, NoInstructions) {
  Module m = parse_ok(header() + ".entry k() { }");
  ControlFlow flow(m.functions[0]);
  EXPECT_TRUE(flow.blocks().empty());
  EXPECT_TRUE(flow.order().empty());
  EXPECT_TRUE(flow.dominators().empty());
}

TEST(ControlFlow, DominatorsAndDependence) {
  Module m = parse_ok(kernel(kDiamond));
  ControlFlow flow(m.functions[0]);
  EXPECT_EQ(flow.dominators(), (std::vector<uint32_t>{kNone, 0, 0, 0}));
  EXPECT_EQ(flow.post_dominators(), (std::vector<uint32_t>{3, 3, 3, kNone}));
  EXPECT_EQ(flow.control_dependence(), (std::vector<std::vector<uint32_t>>{{}, {0}, {0}, {}}));
}

TEST(ControlFlow, NestedLoops) {
  Module m = parse_ok(
      kernel("OUT: add.s32 %r1, %r1, 1; IN: add.s32 %r2, %r2, 1; @%p1 bra IN; @%p2 bra OUT; ret;"));
  ControlFlow flow(m.functions[0]);
  EXPECT_EQ(edges(flow), "0>1 1>1,2 2>0,3 3>x");
  EXPECT_EQ(flow.loop_depth(), (std::vector<uint32_t>{1, 2, 1, 0}));
  // A loop's body depends on its own branch.
  EXPECT_EQ(flow.control_dependence()[1], (std::vector<uint32_t>{1, 2}));
}

TEST(ControlFlow, EndlessLoopHasNoPostDominator) {
  Module m = parse_ok(kernel("@%p1 bra L; ret; L: bra L;"));
  ControlFlow flow(m.functions[0]);
  EXPECT_EQ(edges(flow), "0>2,1 1>x 2>2");
  EXPECT_EQ(flow.post_dominators(), (std::vector<uint32_t>{1, kNone, kNone}));
}

// Whether `from` reaches `to` without entering `without`; the definition behind dominance.
bool reaches(const ControlFlow& flow, uint32_t from, uint32_t to, uint32_t without) {
  if (from == without) return false;
  std::vector<bool> seen(flow.blocks().size());
  std::vector<uint32_t> work{from};
  seen[from] = true;
  while (!work.empty()) {
    const uint32_t b = work.back();
    work.pop_back();
    if (b == to) return true;
    for (uint32_t s : flow.blocks()[b].successors)
      if (s != without && !seen[s]) seen[s] = true, work.push_back(s);
  }
  return false;
}

class CompiledFlow : public testing::TestWithParam<std::string> {};

TEST_P(CompiledFlow, Partition) {
  Module m = parse_ok(read_corpus(GetParam()));
  for (const Function& f : m.functions) {
    ControlFlow flow(f, &m);
    uint32_t next = 0;
    for (uint32_t b = 0; b < flow.blocks().size(); ++b) {
      const BasicBlock& block = flow.blocks()[b];
      EXPECT_EQ(block.first, next);
      next = block.last + 1;
      EXPECT_TRUE(block.leaves || !block.successors.empty() ||
                  flow.instructions()[block.last]->op == Op::call);
      for (uint32_t s : block.successors) {
        const auto& back = flow.blocks()[s].predecessors;
        EXPECT_EQ(std::count(back.begin(), back.end(), b), 1);
      }
    }
    EXPECT_EQ(next, flow.instructions().size());
  }
}

TEST_P(CompiledFlow, ImmediateDominatorsCutEveryPath) {
  Module m = parse_ok(read_corpus(GetParam()));
  size_t checked = 0;
  for (const Function& f : m.functions) {
    ControlFlow flow(f, &m);
    if (flow.blocks().size() > 120) continue;
    const auto idom = flow.dominators(), post = flow.post_dominators();
    for (uint32_t b : flow.order()) {
      if (b == 0) continue;
      ++checked;
      EXPECT_FALSE(reaches(flow, 0, b, idom[b])) << f.name << " block " << b;
      // Immediate: nothing between idom and b is on every path.
      for (uint32_t d : flow.order()) {
        if (d == idom[b] || d == b || d == 0 || reaches(flow, 0, b, d)) continue;
        EXPECT_FALSE(reaches(flow, 0, idom[b], d)) << f.name << " block " << b << " via " << d;
      }
      for (uint32_t x = 0; x < flow.blocks().size(); ++x) {
        if (post[b] == kNone || !flow.blocks()[x].leaves || x == post[b]) continue;
        EXPECT_FALSE(reaches(flow, b, x, post[b])) << f.name << " block " << b;
      }
    }
  }
  EXPECT_GT(checked, 0u);
}

INSTANTIATE_TEST_SUITE_P(Nvcc, CompiledFlow, testing::Values("hopper", "math", "calls", "warps"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ptxbench::ptx
