// Damaged text gives a Module or one error, never a crash, a hang or a mountain of memory.
#include <random>

#include "ptx/ptx_test_util.h"
#include "ptx/verifier.h"

namespace ptxbench::ptx {
namespace {

void survive(std::string_view text) {
  auto module = parse(text, "t.ptx");
  if (!module.ok()) {
    EXPECT_FALSE(module.error().message.empty());
    EXPECT_GT(module.error().where.line, 0);
    return;
  }
  (void)verify(*module);
  auto again = parse(print(*module), "t.ptx");
  EXPECT_TRUE(again.ok()) << again.error().to_string();
}

TEST(Robustness, Truncations) {
  for (const std::string& name : corpus()) {
    std::string text = read_corpus(name);
    std::mt19937 random(1);
    for (int i = 0; i < 40; ++i) survive(std::string_view(text).substr(0, random() % text.size()));
  }
}

TEST(Robustness, Mutations) {
  constexpr std::string_view kBytes = "{}[]()<>,;:.@!%|_-+0123456789abfrxNULL\"/*\n\0\xff";
  for (const std::string& name : corpus()) {
    std::string text = read_corpus(name);
    std::mt19937 random(2);
    for (int round = 0; round < 60; ++round) {
      std::string broken = text;
      for (int k = random() % 4; k >= 0; --k) {
        size_t at = random() % broken.size();
        switch (random() % 3) {
          case 0:
            broken[at] = kBytes[random() % kBytes.size()];
            break;
          case 1:
            broken.erase(at, random() % 8);
            break;
          default:
            broken.insert(at, broken.substr(random() % broken.size(), random() % 20));
            break;
        }
      }
      survive(broken);
    }
  }
}

std::string repeat(std::string_view piece, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += piece;
  return out;
}

TEST(Robustness, DeepNesting) {
  EXPECT_FALSE(parse(kernel(repeat("{", 100000))).ok());
  EXPECT_FALSE(parse(kernel("mov.b32 %r1, " + repeat("(", 100000))).ok());
  EXPECT_FALSE(parse(kernel("mov.b32 %r1, " + repeat("-", 100000) + "1;")).ok());
  EXPECT_FALSE(parse(kernel("mov.b32 %r1, " + repeat("1?", 100000) + "1;")).ok());
  EXPECT_FALSE(parse(kernel("mov.b32 " + repeat("{", 100000))).ok());
  EXPECT_FALSE(parse(header() + ".global .b8 x[4] = " + repeat("{", 100000)).ok());
}

TEST(Robustness, HugeSizes) {
  EXPECT_FALSE(parse(kernel(".reg .b32 %q<4000000000>;")).ok());
  EXPECT_FALSE(parse(kernel(repeat(".reg .b32 %q<2000000>;{", 100))).ok());
  EXPECT_FALSE(parse(header() + ".global .b64 x[4000000000][4000000000];").ok());
  EXPECT_FALSE(parse(header() + ".global .b8 x[100][1000000000] = {{1},{2}};").ok());
  EXPECT_FALSE(parse(header() + ".file 4000000000 \"x\"").ok());
  EXPECT_FALSE(
      parse(header() + ".entry k(.param .b8 a[4000000000], .param .b8 b[4000000000]) { ret; }")
          .ok());
  EXPECT_TRUE(parse(header() + ".global .b8 x[1000000000] = {1};").ok());
}

}  // namespace
}  // namespace ptxbench::ptx
