#include "ptx/liveness.h"

#include <set>

#include "ptx/ptx_test_util.h"

namespace ptxbench::ptx {
namespace {

std::set<std::string> names_in(const Liveness& liveness, const Function& f, uint32_t block) {
  std::set<std::string> names;
  liveness.for_each_live_in(block, [&](uint32_t r) { names.insert(f.registers[r].name); });
  return names;
}

using Names = std::set<std::string>;

TEST(Liveness, LoopCarriedValues) {
  Module m = parse_ok(kernel(
      "mov.u32 %r1, 0; mov.u32 %r2, 5; mov.u32 %r3, 7; L: add.s32 %r1, %r1, %r2; mov.u32 %r4, %r1; "
      "setp.lt.s32 %p1, %r4, 9; @%p1 bra L; st.global.u32 [%rd1], %r1; ret;"));
  const Function& f = m.functions[0];
  ControlFlow flow(f);
  Liveness liveness(flow);
  EXPECT_EQ(names_in(liveness, f, 0), (Names{"%rd1"}));  // never written
  EXPECT_EQ(names_in(liveness, f, 1), (Names{"%r1", "%r2", "%rd1"}));
  EXPECT_EQ(names_in(liveness, f, 2), (Names{"%r1", "%rd1"}));
}

TEST(Liveness, GuardedWritesDoNotKill) {
  Module m =
      parse_ok(kernel("bra L; L: @%p1 mov.u32 %r1, 1; mov.u32 %r2, 2; "
                      "st.global.v2.u32 [%rd1], {%r1, %r2}; ret;"));
  ControlFlow flow(m.functions[0]);
  EXPECT_EQ(names_in(Liveness(flow), m.functions[0], 1), (Names{"%p1", "%r1", "%rd1"}));
}

TEST(Liveness, Pressure) {
  // %rd1 (2 words) throughout; %r1 and %r2 together before the sum.
  Module m =
      parse_ok(kernel("ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4]; "
                      "add.s32 %r3, %r1, %r2; st.global.u32 [%rd1], %r3; ret;"));
  ControlFlow flow(m.functions[0]);
  EXPECT_EQ(Liveness(flow).pressure(), 4u);
}

// The definition, register by register: live where some path reaches a read before a write.
bool live_by_search(const ControlFlow& flow, const Liveness& liveness, uint32_t block,
                    uint32_t reg) {
  std::vector<bool> seen(flow.blocks().size());
  std::vector<uint32_t> work{block};
  while (!work.empty()) {
    const uint32_t b = work.back();
    work.pop_back();
    if (seen[b]) continue;
    seen[b] = true;
    bool killed = false;
    for (uint32_t i = flow.blocks()[b].first; i <= flow.blocks()[b].last && !killed; ++i) {
      for (const auto& use : liveness.uses(i))
        if (use.reg == reg && !use.write) return true;
      for (const auto& use : liveness.uses(i))
        killed |= use.reg == reg && use.write && flow.instructions()[i]->guard == kNone;
    }
    if (!killed)
      for (uint32_t s : flow.blocks()[b].successors) work.push_back(s);
  }
  return false;
}

TEST(Liveness, EqualsASearchOnCompiledCode) {
  size_t live = 0;
  for (const char* name : {"hopper", "warps", "calls"}) {
    Module m = parse_ok(read_corpus(name));
    for (const Function& f : m.functions) {
      ControlFlow flow(f, &m);
      Liveness liveness(flow);
      for (uint32_t b = 0; b < flow.blocks().size(); ++b)
        for (uint32_t r = 0; r < f.registers.size(); r += 7) {
          const bool want = live_by_search(flow, liveness, b, r);
          live += want;
          ASSERT_EQ(liveness.live_in(b, r), want) << f.name << " " << b << " " << r;
        }
    }
  }
  EXPECT_GT(live, 20u);
}

}  // namespace
}  // namespace ptxbench::ptx
