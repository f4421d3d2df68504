// The recorded warp operations: shuffles, votes, matches, reductions, election; and groups that a
// recording of one member mask per instruction can't show.
#include <gtest/gtest.h>

#include "emu/hw_vectors.h"
#include "emu/scalar_machine.h"

namespace ptxbench::emu {
namespace {

using testing::ScalarMachine;

class ScalarWarp : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() >= scalar::available_levels().count)
      GTEST_SKIP() << "this CPU has no such level";
  }
  const scalar::Level& level() { return scalar::available_levels().level[GetParam()]; }
};

constexpr uint32_t kNotRun = 0xeeeeeeee, kNotRunPredicate = 0xee;

TEST_P(ScalarWarp, Shuffle) {
  const hw::Json test = hw::group("warp").cases("shfl").at(0);
  auto out = hw::group("warp").array(test.at("out")).as<uint32_t>();
  size_t number = 0, compared = 0;
  for (const hw::Json& c : test.at("cases")) {
    const std::string mode = c[0];
    const uint32_t mask = c[1], b = c[2], clamp = c[3];
    ScalarMachine m(".reg .pred %p; .reg .b32 %d, %a, %b, %c, %m;\nshfl.sync." + mode +
                        ".b32 %d|%p, %a, %b, %c, %m;",
                    level());
    ASSERT_EQ(m.error(), "");
    for (uint32_t lane = 0; lane < 32; ++lane) {
      m.lanes<uint32_t>("%a")[lane] = 0x1000 + lane;
      m.lanes<uint32_t>("%b")[lane] = b == 1000   ? (7 * lane + 3) % 32
                                      : b == 1001 ? 13 * lane + 40
                                                  : b;
      m.lanes<uint32_t>("%c")[lane] = clamp;
      m.lanes<uint32_t>("%m")[lane] = mask;
      m.lanes<uint32_t>("%d")[lane] = kNotRun;
    }
    m.run(mask);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const uint32_t* want = &out[(number * 32 + lane) * 2];
      const uint32_t d = m.lanes<uint32_t>("%d")[lane];
      if (!(mask >> lane & 1)) {
        EXPECT_EQ(d, kNotRun);
        continue;
      }
      const uint32_t p = m.predicate("%p") >> lane & 1;
      EXPECT_EQ(p, want[1]) << c.dump() << " lane " << lane;
      // What a lane outside the member mask would give is undefined.
      const bool defined = p == 0 || (mask >> (d - 0x1000) & 1);
      if (!defined) continue;
      EXPECT_EQ(d, want[0]) << c.dump() << " lane " << lane;
      ++compared;
    }
    ++number;
  }
  EXPECT_EQ(number, 1160u);
  EXPECT_GT(compared, 15000u);
}

struct WarpForm {
  const char* text;       // of the recording
  const char* ptx;        // %d or %p from %a (or %w, 64 bits; or %q, the lowest bit) and %m
  bool value, predicate;  // what it writes
};
constexpr WarpForm kForms[] = {
    {"vote.sync.all.pred", "vote.sync.all.pred %p, %q, %m;", false, true},
    {"vote.sync.any.pred", "vote.sync.any.pred %p, %q, %m;", false, true},
    {"vote.sync.uni.pred", "vote.sync.uni.pred %p, %q, %m;", false, true},
    {"vote.sync.ballot.b32", "vote.sync.ballot.b32 %d, %q, %m;", true, false},
    {"match.any.sync.b32", "match.any.sync.b32 %d, %a, %m;", true, false},
    {"match.all.sync.b32", "match.all.sync.b32 %d|%p, %a, %m;", true, true},
    {"match.any.sync.b64", "match.any.sync.b64 %d, %w, %m;", true, false},
    {"match.all.sync.b64", "match.all.sync.b64 %d|%p, %w, %m;", true, true},
    {"redux.sync.add.u32", "redux.sync.add.u32 %d, %a, %m;", true, false},
    {"redux.sync.min.u32", "redux.sync.min.u32 %d, %a, %m;", true, false},
    {"redux.sync.max.u32", "redux.sync.max.u32 %d, %a, %m;", true, false},
    {"redux.sync.add.s32", "redux.sync.add.s32 %d, %a, %m;", true, false},
    {"redux.sync.min.s32", "redux.sync.min.s32 %d, %a, %m;", true, false},
    {"redux.sync.max.s32", "redux.sync.max.s32 %d, %a, %m;", true, false},
    {"redux.sync.and.b32", "redux.sync.and.b32 %d, %a, %m;", true, false},
    {"redux.sync.or.b32", "redux.sync.or.b32 %d, %a, %m;", true, false},
    {"redux.sync.xor.b32", "redux.sync.xor.b32 %d, %a, %m;", true, false},
    {"elect.sync", "elect.sync %d|%p, %m;", true, true},
    {"activemask.b32", "activemask.b32 %d;", true, false},
};

void run_case(ScalarMachine& m, uint32_t mask, const uint32_t* in) {
  m.predicate("%q") = 0;
  m.predicate("%p") = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    m.lanes<uint32_t>("%a")[lane] = in[lane];
    m.lanes<uint64_t>("%w")[lane] = uint64_t{in[lane]} << 32 | (in[lane] ^ 5);
    m.predicate("%q") |= (in[lane] & 1) << lane;
    m.lanes<uint32_t>("%m")[lane] = mask;
    m.lanes<uint32_t>("%d")[lane] = kNotRun;
  }
  m.run(mask);
}

TEST_P(ScalarWarp, VotesMatchesReductions) {
  size_t tests = 0;
  for (const hw::Json& test : hw::group("warp").cases("warp")) {
    const std::string text = test.at("ptx");
    const WarpForm* form =
        std::find_if(std::begin(kForms), std::end(kForms),
                     [&](const WarpForm& f) { return text.starts_with(f.text); });
    ASSERT_NE(form, std::end(kForms)) << text;
    ScalarMachine m(
        std::string(".reg .pred %p, %q; .reg .b32 %d, %a, %m; .reg .b64 %w;\n") + form->ptx,
        level());
    ASSERT_EQ(m.error(), "") << text;
    auto in = hw::group("warp").array(test.at("in")).as<uint32_t>();
    auto out = hw::group("warp").array(test.at("out")).as<uint32_t>();
    const auto& masks = test.at("membermask");
    for (size_t c = 0; c < masks.size(); ++c) {
      const uint32_t mask = masks[c];
      run_case(m, mask, &in[c * 32]);
      for (uint32_t lane = 0; lane < 32; ++lane) {
        const uint32_t* want = &out[(c * 32 + lane) * 2];
        const uint32_t d = m.lanes<uint32_t>("%d")[lane];
        const uint32_t p = m.predicate("%p") >> lane & 1;
        if (!(mask >> lane & 1)) {
          EXPECT_EQ(d, kNotRun) << text;
          EXPECT_EQ(p, 0u) << text;
          EXPECT_EQ(want[1], kNotRunPredicate) << text;
          continue;
        }
        // A lone predicate was recorded as a value.
        if (form->value) {
          EXPECT_EQ(d, want[0]) << text << " case " << c << " lane " << lane;
        }
        if (form->predicate) {
          EXPECT_EQ(p, want[form->value ? 1 : 0]) << text << " case " << c << " lane " << lane;
        }
      }
    }
    ++tests;
  }
  EXPECT_EQ(tests, 19u);
}

// Two groups in one instruction, as cooperative-group tiles make them.
TEST_P(ScalarWarp, GroupsStayApart) {
  ScalarMachine m(
      ".reg .pred %p, %q, %u; .reg .b32 %sum, %bits, %lead, %same, %a, %m;\n"
      "redux.sync.add.u32 %sum, %a, %m;\nvote.sync.ballot.b32 %bits, %q, %m;\n"
      "elect.sync %lead|%p, %m;\nmatch.any.sync.b32 %same, %a, %m;\nvote.sync.any.pred %u, %q, %m;",
      level());
  ASSERT_EQ(m.error(), "");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    m.lanes<uint32_t>("%a")[lane] = lane % 4;
    m.lanes<uint32_t>("%m")[lane] = lane % 2 ? 0xaaaaaaaau : 0x55555555u;
  }
  m.predicate("%q") = 0x00000005;
  m.run();
  EXPECT_EQ(m.predicate("%p"), 3u);
  EXPECT_EQ(m.predicate("%u"), 0x55555555u);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(m.lanes<uint32_t>("%sum")[lane], lane % 2 ? 32u : 16u);
    EXPECT_EQ(m.lanes<uint32_t>("%bits")[lane], lane % 2 ? 0u : 5u);
    EXPECT_EQ(m.lanes<uint32_t>("%lead")[lane], lane % 2);
    EXPECT_EQ(m.lanes<uint32_t>("%same")[lane], 0x11111111u << lane % 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Level, ScalarWarp, ::testing::Range(0, 3));

}  // namespace
}  // namespace ptxbench::emu
