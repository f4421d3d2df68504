#pragma once
// The property of the front end: what is parsed verifies, and what is printed of it is the same
// module again.
#include "ptx/ptx_test_util.h"
#include "ptx/verifier.h"

namespace ptxbench::ptx {

// The printed text; empty where a step failed.
inline std::string expect_round_trip(const std::string& text, const std::string& name) {
  auto first = parse(text, name);
  EXPECT_TRUE(first.ok()) << first.error().to_string();
  if (!first.ok()) return "";
  auto verified = verify(*first, name);
  EXPECT_TRUE(verified.ok()) << verified.error().to_string();
  std::string printed = print(*first);
  auto second = parse(printed, name + " printed");
  EXPECT_TRUE(second.ok()) << second.error().to_string();
  if (!second.ok()) return "";
  strip_positions(&*first);
  strip_positions(&*second);
  EXPECT_TRUE(*first == *second) << name << " changes when it is printed and read";
  EXPECT_TRUE(print(*second) == printed) << name << " is printed differently the second time";
  return printed;
}

}  // namespace ptxbench::ptx
