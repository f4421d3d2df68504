// docs/verdict.schema.json against docs/verdict.md, and the checker of schemas against planted
// mistakes. Real verdicts are held against the schema where they are made (examples_test.cc).
#include <gtest/gtest.h>

#include "base/files.h"
#include "json_schema.h"

namespace ptxbench {
namespace {

const std::filesystem::path kDocs = std::filesystem::path(PTXBENCH_SOURCE_DIR) / "docs";

Json schema_document() {
  return parse_json(read_file(kDocs / "verdict.schema.json").take(), "verdict.schema.json").take();
}

// All names of fields and all values of enumerations.
void collect(const Json& schema, std::set<std::string>& words) {
  if (schema.is_array())
    for (const Json& item : schema) collect(item, words);
  if (!schema.is_object()) return;
  for (const auto& [key, value] : schema.items()) {
    if (key == "properties")
      for (const auto& [name, child] : value.items()) words.insert(name);
    if (key == "enum")
      for (const Json& item : value) words.insert(item.get<std::string>());
    collect(value, words);
  }
}

TEST(VerdictSchema, EveryFieldAndValueIsDocumented) {
  const std::string text = read_file(kDocs / "verdict.md").take();
  std::set<std::string> words;
  collect(schema_document(), words);
  EXPECT_GT(words.size(), 100u);
  for (const std::string& word : words) {
    if (word.empty() || word.rfind("latent-", 0) == 0) continue;  // described by its parts
    const std::string pattern = "(^|[^A-Za-z0-9_-])" + word + "([^A-Za-z0-9_-]|$)";
    EXPECT_TRUE(std::regex_search(text, std::regex(pattern))) << word << " is undocumented";
  }
}

TEST(VerdictSchema, VersionIsTheDocumented) {
  const Json document = schema_document();
  const int64_t version =
      document["$defs"]["verdict"]["properties"]["version"]["const"].get<int64_t>();
  const std::string text = read_file(kDocs / "verdict.md").take();
  EXPECT_NE(text.find("version " + std::to_string(version)), std::string::npos);
}

TEST(VerdictSchema, InfrastructureErrors) {
  const JsonSchema schema(schema_document());
  EXPECT_TRUE(schema.errors(Json{{"infrastructure", {{"kind", "io"}, {"message", "no"}}}}).empty());
  EXPECT_FALSE(schema.errors(Json{{"infrastructure", {{"kind", "io"}}}}).empty());
  EXPECT_FALSE(schema.errors(Json::object()).empty());
}

TEST(JsonSchemaChecker, FindsPlantedMistakes) {
  const JsonSchema schema(parse_json(R"({
    "type": "object", "required": ["a", "b"], "additionalProperties": false,
    "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 6},
                   "b": {"enum": ["x", "y"]},
                   "c": {"type": "array", "items": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/d"}]}},
                   "e": {"type": "string", "pattern": "^[0-9a-f]*$"}},
    "$defs": {"d": {"type": "object", "required": ["f"], "properties": {"f": {"const": 1}}}}})")
                              .take());
  auto errors = [&](const char* text) { return schema.errors(parse_json(text).take()).size(); };
  EXPECT_EQ(errors(R"({"a": 3, "b": "x", "c": [null, {"f": 1}], "e": "0af"})"), 0u);
  EXPECT_EQ(errors(R"({"a": 3})"), 1u);
  EXPECT_EQ(errors(R"({"a": 3.5, "b": "x"})"), 1u);
  EXPECT_EQ(errors(R"({"a": 7, "b": "x"})"), 1u);
  EXPECT_EQ(errors(R"({"a": -1, "b": "z"})"), 2u);
  EXPECT_EQ(errors(R"({"a": 3, "b": "x", "new": 1})"), 1u);
  EXPECT_EQ(errors(R"({"a": 3, "b": "x", "c": [{"f": 2}]})"), 1u);
  EXPECT_EQ(errors(R"({"a": 3, "b": "x", "c": {}})"), 1u);
  EXPECT_EQ(errors(R"({"a": 3, "b": "x", "e": "G"})"), 1u);
  EXPECT_EQ(errors("[]"), 1u);
  EXPECT_EQ(JsonSchema(Json{{"allOf", Json::array()}}).errors(1).size(), 1u);
}

}  // namespace
}  // namespace ptxbench
