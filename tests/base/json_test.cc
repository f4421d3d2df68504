#include "base/json.h"

#include <gtest/gtest.h>

namespace ptxbench {
namespace {

TEST(Json, TypedGettersNameThePlace) {
  auto doc =
      parse_json(R"({"axes":{"M":{"value":"x"},"N":3.0},"list":[1,2.5,true,null]})", "d.json");
  ASSERT_TRUE(doc.ok());
  JsonRef root(*doc, "d.json:");
  auto value = root.at("axes")->at("M")->at("value")->integer();
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().message, "d.json: axes.M.value: expected an integer, found a string");
  EXPECT_EQ(*root.at("axes")->at("N")->integer(), 3);
  auto element = root.at("list")->at(1)->integer();
  ASSERT_FALSE(element.ok());
  EXPECT_EQ(element.error().message, "d.json: list[1]: expected an integer, found a number");
  auto missing = root.at("nope");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "d.json: no member \"nope\"");
  EXPECT_EQ(missing.error().kind, "json-type");
  EXPECT_FALSE(root.at("list")->at(4).ok());
  EXPECT_EQ(root.at("list")->elements()->size(), 4u);
  EXPECT_EQ(root.at("axes")->members()->at(1).first, "N");
}

TEST(Json, FallbacksAreForMissingAndNullOnly) {
  Json doc = {{"a", 1}, {"n", nullptr}, {"s", "t"}};
  JsonRef root(doc);
  EXPECT_EQ(*root.integer_or("a", 7), 1);
  EXPECT_EQ(*root.integer_or("b", 7), 7);
  EXPECT_EQ(*root.integer_or("n", 7), 7);
  EXPECT_FALSE(root.integer_or("s", 7).ok());
  EXPECT_EQ(*root.string_or("s", ""), "t");
  EXPECT_EQ(*root.boolean_or("q", true), true);
  EXPECT_EQ(*root.number_or("a", 0), 1.0);
}

TEST(Json, SyntaxErrorsHaveALocation) {
  auto r = parse_json("{\n  \"a\": 1,\n  oops\n}", "x.json");
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().kind, "json");
  EXPECT_EQ(r.error().where.line, 3);
  EXPECT_EQ(r.error().where.file, "x.json");
  EXPECT_FALSE(parse_json("").ok());
  EXPECT_FALSE(parse_json("{} x").ok());
}

TEST(Json, HostileInputIsRefused) {
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')).ok());
  EXPECT_FALSE(parse_json("[1e999999]").ok());
  EXPECT_FALSE(parse_json("\"\xff\"").ok());
  Json big = uint64_t{1} << 63;
  EXPECT_FALSE(JsonRef(big).integer().ok());
  EXPECT_EQ(dump_json(Json("\xff"), -1), "\"\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace ptxbench
