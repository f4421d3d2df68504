#pragma once
// The part of JSON Schema (2020-12) that docs/verdict.schema.json uses. A keyword that is not known
// here is an error, so that no rule is skipped.

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"

namespace ptxbench {

class JsonSchema {
 public:
  explicit JsonSchema(Json document) : root_(std::move(document)) {}

  // What is wrong with the value, one line each; empty if it is valid.
  std::vector<std::string> errors(const Json& value) const { return errors_at(value, root_, "$"); }
  std::vector<std::string> errors(const Json& value, const std::string& definition) const {
    return errors_at(value, root_.at("$defs").at(definition), "$");
  }

 private:
  using Errors = std::vector<std::string>;

  Errors errors_at(const Json& value, const Json& schema, const std::string& place) const {
    Errors found;
    for (const auto& [keyword, rule] : schema.items()) {
      Errors more = keyword_errors(keyword, rule, value, schema, place);
      found.insert(found.end(), more.begin(), more.end());
    }
    return found;
  }

  Errors keyword_errors(const std::string& keyword, const Json& rule, const Json& value,
                        const Json& schema, const std::string& place) const {
    static const std::set<std::string> kSilent = {"$schema", "title", "description", "$defs",
                                                  "additionalProperties"};
    if (kSilent.count(keyword)) return {};
    if (keyword == "$ref") {
      const std::string name = rule.get<std::string>().substr(std::string("#/$defs/").size());
      return errors_at(value, root_.at("$defs").at(name), place);
    }
    if (keyword == "type") return check(has_type(value, rule), place, "is no " + rule.dump());
    if (keyword == "const") return check(value == rule, place, "is not " + rule.dump());
    if (keyword == "enum")
      return check(std::find(rule.begin(), rule.end(), value) != rule.end(), place,
                   "is none of the values: " + value.dump());
    if (keyword == "minimum") return check(!value.is_number() || value >= rule, place, "too small");
    if (keyword == "maximum") return check(!value.is_number() || value <= rule, place, "too large");
    if (keyword == "pattern")
      return check(!value.is_string() || std::regex_search(value.get<std::string>(),
                                                           std::regex(rule.get<std::string>())),
                   place, "does not match " + rule.dump());
    if (keyword == "required") return required_errors(rule, value, place);
    if (keyword == "properties") return property_errors(rule, value, schema, place);
    if (keyword == "items") return item_errors(rule, value, place);
    if (keyword == "anyOf") return any_errors(rule, value, place);
    return {place + ": unknown keyword " + keyword};
  }

  static Errors check(bool good, const std::string& place, const std::string& what) {
    return good ? Errors{} : Errors{place + ": " + what};
  }
  static bool has_type(const Json& value, const Json& type) {
    if (type.is_array())
      return std::any_of(type.begin(), type.end(), [&](auto& t) { return has_type(value, t); });
    const std::string name = type.get<std::string>();
    if (name == "object") return value.is_object();
    if (name == "array") return value.is_array();
    if (name == "string") return value.is_string();
    if (name == "boolean") return value.is_boolean();
    if (name == "integer") return value.is_number_integer();
    if (name == "number") return value.is_number();
    return name == "null" && value.is_null();
  }
  static Errors required_errors(const Json& names, const Json& value, const std::string& place) {
    Errors found;
    for (const Json& name : names)
      if (value.is_object() && !value.contains(name.get<std::string>()))
        found.push_back(place + "." + name.get<std::string>() + ": missing");
    return found;
  }
  Errors property_errors(const Json& properties, const Json& value, const Json& schema,
                         const std::string& place) const {
    Errors found;
    if (!value.is_object()) return found;
    for (const auto& [key, child] : value.items()) {
      const std::string at = place + "." + key;
      if (!properties.contains(key)) {
        if (schema.value("additionalProperties", Json()) == false)
          found.push_back(at + ": undocumented");
        continue;
      }
      Errors more = errors_at(child, properties[key], at);
      found.insert(found.end(), more.begin(), more.end());
    }
    return found;
  }
  Errors item_errors(const Json& rule, const Json& value, const std::string& place) const {
    Errors found;
    for (size_t i = 0; value.is_array() && i < value.size(); ++i) {
      Errors more = errors_at(value[i], rule, place + "[" + std::to_string(i) + "]");
      found.insert(found.end(), more.begin(), more.end());
    }
    return found;
  }
  // The complaints of the alternative that comes nearest.
  Errors any_errors(const Json& rules, const Json& value, const std::string& place) const {
    Errors best;
    for (const Json& rule : rules) {
      Errors found = errors_at(value, rule, place);
      if (found.empty()) return {};
      if (best.empty() || found.size() < best.size()) best = found;
    }
    return best;
  }

  Json root_;
};

}  // namespace ptxbench
