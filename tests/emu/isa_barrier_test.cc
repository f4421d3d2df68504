// mbarrier.arrive and arrive_drop in every form: orders, scopes, spaces, counts, expected bytes.
// The oracle is arithmetic: how many arrivals are left of this phase, and how many the next
// expects.
#include <fmt/format.h>

#include "emu/ptx_runner.h"

namespace ptxbench::emu::test {
namespace {

constexpr int kExpected = 6;

struct Arrival {
  bool drops = false;
  std::string words;  // behind arrive or arrive_drop, up to .b64
  int count = 0;      // 0: not written, which is one
  int bytes = 0;      // expected with the arrival, as its last operand

  std::string text(const std::string& token, const std::string& address) const {
    std::string s = fmt::format("mbarrier.arrive{}{}.b64 {}, [{}]", drops ? "_drop" : "", words,
                                token, address);
    if (bytes) return s + fmt::format(", {};\n", bytes);
    return s + (count ? fmt::format(", {};\n", count) : ";\n");
  }
  int arrivals() const { return count ? count : 1; }
  int next() const { return kExpected - (drops ? arrivals() : 0); }
};

// Adds one to %r1 if the predicate is not as expected.
std::string expect(const std::string& test, bool want) {
  return test + fmt::format(" selp.u32 %r2, {}, {}, %p1; add.u32 %r1, %r1, %r2;\n", want ? 0 : 1,
                            want ? 1 : 0);
}

// The second phase ends with its last arrival and not before.
std::string second_phase(const Arrival& a, const std::string& bar) {
  return fmt::format("mbarrier.arrive.shared.b64 %d3, [{0}], {1};\n", bar, a.next() - 1) +
         expect(fmt::format("mbarrier.test_wait.shared.b64 %p1, [{}], %d3;", bar), false) +
         fmt::format("mbarrier.arrive.shared.b64 %d4, [{0}];\n", bar) +
         expect(fmt::format("mbarrier.test_wait.shared.b64 %p1, [{}], %d3;", bar), true);
}

PtxRun run(const std::string& body, unsigned ctas) {
  PtxRun r;
  r.ptx = R"(.visible .entry k(.param .u64 p0) {
    .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %d<20>; .shared .align 8 .b64 bar;
    ld.param.u64 %d0, [p0]; mov.u64 %d10, bar; cvta.shared.u64 %d11, %d10; mov.u32 %r1, 0;
    mov.u32 %r4, bar; mov.u32 %r5, %ctaid.x; mul.wide.u32 %d12, %r5, 4; add.s64 %d0, %d0, %d12;
)" + body +
          "st.global.u32 [%d0], %r1; ret; }";
  r.buffers = {output_of("out", 4 * ctas)};
  r.grid = r.cluster = {ctas}, r.explicit_cluster = true;
  r.go();
  EXPECT_EQ(r.error, "") << r.ptx;
  EXPECT_EQ(r.kinds(), "") << r.ptx;
  EXPECT_EQ(r.result.status, plan::RunStatus::completed) << r.result.message << r.ptx;
  for (uint32_t wrong : values_of<uint32_t>(r.buffers[0])) EXPECT_EQ(wrong, 0u) << r.ptx;
  return r;
}

const std::vector<std::string> kOrders = {"", ".release.cta", ".release.cluster", ".relaxed.cta",
                                          ".relaxed.cluster"};

TEST(IsaBarrier, EveryArrivalOnTheOwnBarrier) {
  std::vector<Arrival> all;
  for (bool drops : {false, true})
    for (const std::string space : {"", ".shared", ".shared::cta"}) {
      for (const std::string& order : kOrders) {
        for (int count : {0, 2}) all.push_back({drops, order + space, count, 0});
        all.push_back({drops, ".expect_tx" + order + space, 0, 16});
      }
      for (const std::string order : {"", ".release.cta"})
        all.push_back({drops, ".noComplete" + order + space, 2, 0});
    }
  size_t turn = 0;
  for (const Arrival& a : all) {
    const bool generic = a.words.find("shared") == std::string::npos;
    const std::string wait = kOrders[turn % 5], at = generic ? "%d11" : "bar";
    const std::string acquire = turn % 5 == 1   ? ".acquire.cta"
                                : turn % 5 == 2 ? ".acquire.cluster"
                                                : wait;
    const std::string space = generic ? "" : turn % 2 ? ".shared" : ".shared::cta";
    const std::string relaxed = turn % 3 == 0   ? ""
                                : turn % 3 == 1 ? ".relaxed.cta"
                                                : ".relaxed.cluster";
    turn++;
    std::string body =
        fmt::format("mbarrier.init.shared.b64 [bar], {};\n", kExpected) + a.text("%d2", at) +
        "mbarrier.pending_count.b64 %r3, %d2;\n" +
        expect(fmt::format("setp.eq.u32 %p1, %r3, {};", kExpected), true) +
        fmt::format("mbarrier.arrive.shared.b64 %d3, [bar], {};\n", kExpected - a.arrivals());
    if (a.bytes)  // bytes and what was expected beside them are still missing
      body += fmt::format("mbarrier.expect_tx{0}{1}.b64 [{2}], 8;\n", relaxed, space, at) +
              expect("mbarrier.test_wait.shared.b64 %p1, [bar], %d2;", false) +
              fmt::format("mbarrier.complete_tx{0}{1}.b64 [{2}], {3};\n", relaxed, space, at,
                          a.bytes + 8);
    body +=
        expect(fmt::format("mbarrier.test_wait{}{}.b64 %p1, [{}], %d2;", acquire, space, at),
               true) +
        expect(fmt::format("mbarrier.try_wait{}{}.b64 %p1, [{}], %d2;", acquire, space, at), true) +
        expect(fmt::format("mbarrier.test_wait.parity{}{}.b64 %p1, [{}], 0;", acquire, space, at),
               true) +
        expect(fmt::format("mbarrier.try_wait.parity{}{}.b64 %p1, [{}], 0;", acquire, space, at),
               true) +
        second_phase(a, "bar");
    run(body, 1);
  }
  EXPECT_EQ(all.size(), 2u * 3 * (5 * 3 + 2));
}

// The other CTA's barrier: no token; both CTAs see the same on theirs.
TEST(IsaBarrier, EveryArrivalOnARemoteBarrier) {
  std::vector<Arrival> all;
  for (bool drops : {false, true})
    for (const std::string& order : kOrders) {
      for (int count : {0, 2}) all.push_back({drops, order + ".shared::cluster", count, 0});
      all.push_back({drops, ".expect_tx" + order + ".shared::cluster", 0, 16});
    }
  size_t turn = 0;
  for (const Arrival& a : all) {
    const std::string order = turn++ % 2 ? ".relaxed.cluster" : "";
    const std::string meet =
        "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n";
    std::string body = fmt::format(
        "mbarrier.init.shared.b64 [bar], {0};\n{1}xor.b32 %r6, %r5, 1; mapa.shared::cluster.u32 "
        "%r7, "
        "%r4, %r6;\n",
        kExpected, meet);
    body += a.text("_", "%r7");
    if (a.bytes)
      body += fmt::format(
          "mbarrier.expect_tx{0}.shared::cluster.b64 [%r7], 8;\n"
          "mbarrier.complete_tx{0}.shared::cluster.b64 [%r7], {1};\n",
          order, a.bytes + 8);
    body +=
        meet +
        fmt::format("mbarrier.arrive.shared.b64 %d2, [bar], {};\n", kExpected - a.arrivals() - 1) +
        expect("mbarrier.test_wait.shared.b64 %p1, [bar], %d2;", false) +
        "mbarrier.arrive.shared.b64 %d2, [bar];\n" +
        expect("mbarrier.test_wait.acquire.cluster.shared.b64 %p1, [bar], %d2;", true) +
        second_phase(a, "bar") +
        "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n";
    run(body, 2);
  }
  EXPECT_EQ(all.size(), 2u * 5 * 3);
}

}  // namespace
}  // namespace ptxbench::emu::test
