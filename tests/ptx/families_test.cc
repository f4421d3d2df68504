// tests/ptx/corpus/families: hand-written PTX, each opcode of the table at least once; taken by us,
// by ptxas 13.0 where there is one, and by ptxas again as we print it.
#include <set>

#include "ptx/assemble.h"
#include "ptx/round_trip.h"

namespace ptxbench::ptx {
namespace {

std::vector<std::string> family_files() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(PTXBENCH_SOURCE_DIR "/tests/ptx/corpus/families"))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Families : public testing::TestWithParam<std::string> {};

TEST_P(Families, RoundTrip) {
  const std::string text = read_corpus("families/" + GetParam());
  const std::string printed = expect_round_trip(text, GetParam());
  if (find_assembler().empty()) GTEST_SKIP() << "no ptxas here: only our own verdict was asked";
  Module m = parse_ok(text);
  // ptxas 13 makes no code for older targets than sm_75, but takes PTX that names them
  const std::string target = m.target == "sm_60" ? "sm_75" : m.target;
  for (const std::string& form : {text, printed}) {
    const Assembled assembled = assemble(form, target);
    EXPECT_TRUE(assembled.ok) << assembled.log;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Families, testing::ValuesIn(family_files()),
                         [](const auto& info) { return info.param; });

TEST(FamilyFiles, HoldEveryOpcode) {
  std::set<Op> seen;
  for (const std::string& name : family_files()) {
    Module m = parse_ok(read_corpus("families/" + name));
    for (const Function& f : m.functions)
      for (const Instruction& i : instructions(f)) seen.insert(i.op);
  }
  for (size_t k = 0; k < kOpCount; ++k)
    EXPECT_TRUE(seen.contains(static_cast<Op>(k))) << name(static_cast<Op>(k));
}

}  // namespace
}  // namespace ptxbench::ptx
