// The mbarrier object against recorded sequences: returned values and the word after every step.
#include "emu/mbarrier.h"

#include <gtest/gtest.h>

#include "emu/hw_vectors.h"

namespace ptxbench::emu {
namespace {

struct Replay {
  Mbarrier barrier;
  std::vector<uint64_t> returned;  // of every step so far, for operands "st(of op x)"

  static bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  }

  // Runs one step; returns the fault. Compares what the instruction returned.
  Mbarrier::Fault step(const std::string& op, uint64_t x, uint64_t want) {
    uint64_t token = 0;
    auto fault = Mbarrier::Fault::none;
    bool drop = has(op, "arrive_drop");
    if (has(op, "mbarrier.init"))
      fault = barrier.init(x);
    else if (has(op, "expect_tx") && has(op, "arrive"))
      fault = barrier.arrive_expect_tx(x, 1, drop, &token);
    else if (drop)
      fault = barrier.arrive_drop(has(op, "],x") ? x : 1, &token);
    else if (has(op, "arrive"))
      fault = barrier.arrive(has(op, "],x") ? x : 1, &token);
    else if (has(op, "expect_tx"))
      fault = barrier.expect_tx(x);
    else if (has(op, "complete_tx"))
      fault = barrier.complete_tx(x);
    else if (has(op, "parity"))
      EXPECT_EQ(barrier.test_parity(x), (want & 1) != 0) << op;
    else if (has(op, "test_wait"))
      EXPECT_EQ(barrier.test_token(returned.at(x)), (want & 1) != 0) << op;
    else if (has(op, "pending_count"))
      EXPECT_EQ(Mbarrier::pending_count(returned.at(x)), want) << op;
    else
      EXPECT_TRUE(has(op, "inval")) << "unknown step " << op;
    if (has(op, "arrive")) {
      EXPECT_EQ(token >> 43, want >> 43) << op;
      EXPECT_EQ(token & ((uint64_t{1} << 43) - 1), 0u);
    }
    returned.push_back(want);  // the hardware's own token: its low bits must not matter
    return fault;
  }
};

TEST(Mbarrier, RecordedSequences) {
  int steps = 0;
  auto cases = hw::group("sync").cases("mbarrier");
  for (const hw::Json& c : cases) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    Replay replay;
    for (const hw::Json& s : c.at("steps")) {
      EXPECT_EQ(replay.step(s[0], s[1], s[2]), Mbarrier::Fault::none) << s.dump();
      EXPECT_EQ(replay.barrier.word(), s[4].get<uint64_t>()) << s.dump();
      ++steps;
    }
  }
  EXPECT_EQ(cases.size(), 26u);
  EXPECT_EQ(steps, 637);
}

TEST(Mbarrier, FaultsLeaveTheObjectAlone) {
  Mbarrier b;
  EXPECT_EQ(b.init(0), Mbarrier::Fault::bad_count);
  EXPECT_EQ(b.init(1u << 20), Mbarrier::Fault::bad_count);
  ASSERT_EQ(b.init(2), Mbarrier::Fault::none);
  uint64_t word = b.word();
  EXPECT_EQ(b.arrive(3, nullptr), Mbarrier::Fault::arrival_overflow);
  EXPECT_EQ(b.arrive(0, nullptr), Mbarrier::Fault::bad_count);
  EXPECT_EQ(b.expect_tx(1u << 20), Mbarrier::Fault::tx_overflow);
  EXPECT_EQ(b.arrive_expect_tx(1u << 20, 1, false, nullptr), Mbarrier::Fault::tx_overflow);
  EXPECT_EQ(b.word(), word);
  ASSERT_EQ(b.complete_tx(Mbarrier::kMaxTx), Mbarrier::Fault::none);
  EXPECT_EQ(b.complete_tx(1), Mbarrier::Fault::tx_overflow);
}

}  // namespace
}  // namespace ptxbench::emu
