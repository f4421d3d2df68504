// Every example candidate gets its verdict, again and again, however many threads run it and
// whenever asynchronous work is performed.
#include <gtest/gtest.h>

#include <set>

#include "evaluation.h"
#include "json_schema.h"

namespace ptxbench {
namespace {

const std::filesystem::path kExamples =
    std::filesystem::path(PTXBENCH_SOURCE_DIR) / "examples/candidates";

Json expectations() {
  auto text = read_file(kExamples / "expected.json");
  return text.ok() ? parse_json(*text).take() : Json::object();
}

std::vector<Json> candidates() {
  const Json document = expectations();
  return document.contains("candidates") ? document["candidates"].get<std::vector<Json>>()
                                         : std::vector<Json>{};
}

class Examples : public ::testing::TestWithParam<Json> {
 protected:
  Json evaluate(const std::string& threads, const std::string& async) {
    const Json document = expectations();
    const auto [exit_code, out, err, verdict] = ptxbench::evaluate(
        kExamples / GetParam()["file"].get<std::string>(), document["task"],
        {"--workload", document["workload"], "--threads", threads, "--async", async}, 120);
    EXPECT_NE(exit_code, 2) << err;
    EXPECT_EQ(exit_code, GetParam()["level"].get<int>() >= 5 ? 0 : 1) << out;
    for (const std::string& error : schema().errors(verdict, "verdict")) ADD_FAILURE() << error;
    return verdict;
  }
  static const JsonSchema& schema() {
    static const JsonSchema kSchema(
        parse_json(
            read_file(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "docs/verdict.schema.json")
                .take())
            .take());
    return kSchema;
  }
  void expect(const std::string& threads, const std::string& async) {
    SCOPED_TRACE("threads " + threads + ", async " + async);
    const Json verdict = evaluate(threads, async);
    // A copy that is performed at once leaves nothing behind that a write could overtake.
    Json expected = GetParam();
    if (expected.contains(async)) expected.update(Json(expected[async]));
    for (const char* field : {"level", "reason", "label"})
      EXPECT_EQ(verdict.value(field, Json()), expected[field])
          << dump_json(verdict).substr(0, 4000);
    const std::string says = expected.value("says", "");
    EXPECT_NE(verdict.value("message", "").find(says), std::string::npos)
        << verdict.value("message", "");
  }
};

TEST_P(Examples, ThreeTimesInARow) {
  for (int i = 0; i < 3; ++i) expect("2", "late");
}
TEST_P(Examples, OneThread) { expect("1", "late"); }
TEST_P(Examples, Eager) {
  expect("2", "eager");
  expect("1", "eager");
}

INSTANTIATE_TEST_SUITE_P(All, Examples, ::testing::ValuesIn(candidates()), [](const auto& info) {
  std::string name = info.param["file"].template get<std::string>();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// Every candidate in the folder is judged, and every sibling is what its edits say.
TEST(ExamplesList, HoldsEveryCandidate) {
  std::set<std::string> listed, present;
  for (const Json& candidate : candidates()) listed.insert(candidate["file"].get<std::string>());
  for (const auto& entry : std::filesystem::directory_iterator(kExamples))
    if (entry.path().extension() != ".json") present.insert(entry.path().filename().string());
  EXPECT_EQ(listed, present);
  EXPECT_GE(listed.size(), 20u);
}

TEST(ExamplesList, SiblingsAreUpToDate) {
  ProcessSpec spec;
  spec.argv = {"/usr/bin/python3", std::string(PTXBENCH_SOURCE_DIR) + "/scripts/make_siblings.py",
               "--check"};
  spec.wall_s = 60;
  auto result = run_process(spec);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code, 0) << result->out << result->err;
}

}  // namespace
}  // namespace ptxbench
