#include "bench/expression.h"

#include <gtest/gtest.h>

namespace ptxbench::bench {
namespace {

const Names kNames = {{"M", 200}, {"N", 1024}, {"sm_count", 4}};

TEST(Expression, Values) {
  const std::pair<const char*, int64_t> cases[] = {
      {"7", 7},
      {" M ", 200},
      {"M*N", 204800},
      {"2 + 3 * 4", 14},
      {"(2+3)*4", 20},
      {"10 - 4 - 3", 3},
      {"100 / 7 % 5", 4},
      {"-7 / 2", -3},
      {"-(M - 1)", -199},
      {"ceil_div(M, 64)", 4},
      {"ceil_div(0, 64)", 0},
      {"min(M, N) + max(sm_count, 3)", 204},
      {"9223372036854775807", INT64_MAX},
  };
  for (const auto& [text, value] : cases) {
    const auto result = evaluate_expression(text, kNames);
    ASSERT_TRUE(result.ok()) << text << ": " << result.error().message;
    EXPECT_EQ(*result, value) << text;
  }
}

TEST(Expression, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "unexpected end"},
      {"M +", "unexpected end"},
      {"K", "unknown name 'K'"},
      {"1 / (M - 200)", "division by zero"},
      {"5 % 0", "division by zero"},
      {"9223372036854775808", "64 bits"},
      {"M * N * M * N * M * N * M * N", "64 bits"},
      {"(-9223372036854775807 - 1) / -1", "64 bits"},
      {"2x", "no decimal number"},
      {"M M", "unexpected 'M'"},
      {"(M", "')'"},
      {"sqrt(M, 2)", "unknown function"},
      {"min(M)", "two arguments"},
      {"ceil_div(M, 0)", "b > 0"},
      {"system(1, 2); M", "unknown function"},
      {"M; N", "unexpected ';'"},
  };
  for (const auto& [text, why] : cases) {
    const auto result = evaluate_expression(text, kNames);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
  }
  EXPECT_FALSE(evaluate_expression(std::string(100'000, '('), kNames).ok());
  EXPECT_FALSE(evaluate_expression(std::string(900, '('), kNames).ok());
  EXPECT_FALSE(evaluate_expression(std::string(900, '-'), kNames).ok());
}

}  // namespace
}  // namespace ptxbench::bench
