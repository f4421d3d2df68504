#pragma once
// JSON text in, typed values out, with errors that say where: "definition.json: axes.M.value:
// expected an integer, found a string". kinds: "json" (not JSON), "json-type" (missing or of
// another type).

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ptxbench {

using Json = nlohmann::json;

// Strict JSON; nesting deeper than 200 is refused. `name` is the file's name for error messages.
Result<Json> parse_json(std::string_view text, std::string_view name = "");

// A place in a document: a value and the path that led to it. Cheap to copy; the document must
// outlive it.
class JsonRef {
 public:
  explicit JsonRef(const Json& value, std::string path = "")
      : value_(&value), path_(std::move(path)) {}

  const Json& json() const { return *value_; }
  const std::string& path() const { return path_; }

  bool has(std::string_view key) const;                                  // an object with that key
  Result<JsonRef> at(std::string_view key) const;                        // of an object
  Result<JsonRef> at(size_t index) const;                                // of an array
  Result<std::vector<JsonRef>> elements() const;                         // of an array
  Result<std::vector<std::pair<std::string, JsonRef>>> members() const;  // of an object

  Result<std::string> string() const;
  Result<int64_t> integer() const;  // 3 and 3.0, not 3.5; in int64's range
  Result<double> number() const;
  Result<bool> boolean() const;

  // The member's value, or the fallback where the key is missing or null; a wrong type is an Error.
  Result<std::string> string_or(std::string_view key, std::string fallback) const;
  Result<int64_t> integer_or(std::string_view key, int64_t fallback) const;
  Result<double> number_or(std::string_view key, double fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;

  // An Error of kind "json-type" at this place, for rules that the caller checks.
  Error error(std::string_view message) const;

 private:
  Error expected(std::string_view what) const;
  std::string child_path(std::string_view key) const;

  const Json* value_;
  std::string path_;
};

// Serialises; bytes that are not UTF-8 become U+FFFD instead of an exception. indent < 0: one line.
std::string dump_json(const Json& value, int indent = 2);

}  // namespace ptxbench
