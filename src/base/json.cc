#include "base/json.h"

#include <fmt/format.h>

#include <cmath>

namespace ptxbench {

namespace {

constexpr int kMaxDepth = 200;

// nlohmann parses recursively only in its destructor's sibling; a depth limit keeps hostile nesting
// from costing memory out of proportion.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

SourceLocation location(std::string_view text, size_t byte, std::string_view name) {
  SourceLocation where{std::string(name), 1, 1};
  for (size_t i = 0; i < std::min(byte, text.size()); ++i) {
    if (text[i] == '\n') {
      ++where.line;
      where.column = 1;
    } else {
      ++where.column;
    }
  }
  return where;
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view name) {
  if (too_deep(text))
    return Error{
        "json", fmt::format("nested deeper than {} levels", kMaxDepth), {std::string(name)}};
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& e) {
    std::string what = e.what();  // "[json.exception...] parse error at line 1, column 2: reason"
    size_t reason = what.find(": ", what.find("column"));
    if (reason != std::string::npos) what = what.substr(reason + 2);
    return Error{"json", "not valid JSON: " + what,
                 location(text, e.byte > 0 ? e.byte - 1 : 0, name)};
  } catch (const std::exception& e) {  // e.g. a number out of range
    return Error{"json", std::string("not valid JSON: ") + e.what(), {std::string(name)}};
  }
}

std::string JsonRef::child_path(std::string_view key) const {
  // After a file name ("x.json:") comes a space, after a key a dot.
  std::string_view joint = path_.empty() ? "" : path_.back() == ':' ? " " : ".";
  return fmt::format("{}{}{}", path_, joint, key);
}

Error JsonRef::error(std::string_view message) const {
  if (path_.empty()) return Error{"json-type", std::string(message)};
  return Error{"json-type", fmt::format("{}{} {}", path_, path_.back() == ':' ? "" : ":", message)};
}

Error JsonRef::expected(std::string_view what) const {
  return error(fmt::format("expected {}, found {} {}", what,
                           value_->is_array() || value_->is_object() ? "an" : "a",
                           value_->type_name()));
}

bool JsonRef::has(std::string_view key) const {
  return value_->is_object() && value_->find(std::string(key)) != value_->end();
}

Result<JsonRef> JsonRef::at(std::string_view key) const {
  if (!value_->is_object()) return expected("an object");
  auto it = value_->find(std::string(key));
  if (it == value_->end()) return error(fmt::format("no member \"{}\"", key));
  return JsonRef(*it, child_path(key));
}

Result<JsonRef> JsonRef::at(size_t index) const {
  if (!value_->is_array()) return expected("an array");
  if (index >= value_->size())
    return error(fmt::format("no element {}, the array has {}", index, value_->size()));
  return JsonRef((*value_)[index], fmt::format("{}[{}]", path_, index));
}

Result<std::vector<JsonRef>> JsonRef::elements() const {
  if (!value_->is_array()) return expected("an array");
  std::vector<JsonRef> list;
  for (size_t i = 0; i < value_->size(); ++i)
    list.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i));
  return list;
}

Result<std::vector<std::pair<std::string, JsonRef>>> JsonRef::members() const {
  if (!value_->is_object()) return expected("an object");
  std::vector<std::pair<std::string, JsonRef>> list;
  for (const auto& [key, value] : value_->items())
    list.emplace_back(key, JsonRef(value, child_path(key)));
  return list;
}

Result<std::string> JsonRef::string() const {
  if (!value_->is_string()) return expected("a string");
  return value_->get<std::string>();
}

Result<int64_t> JsonRef::integer() const {
  if (value_->is_number_unsigned()) {
    uint64_t v = value_->get<uint64_t>();
    if (v > uint64_t{INT64_MAX}) return error("integer out of range");
    return static_cast<int64_t>(v);
  }
  if (value_->is_number_integer()) return value_->get<int64_t>();
  if (value_->is_number_float()) {
    double v = value_->get<double>();
    if (v == std::floor(v) && std::fabs(v) < 9.0e18) return static_cast<int64_t>(v);
  }
  return expected("an integer");
}

Result<double> JsonRef::number() const {
  if (!value_->is_number()) return expected("a number");
  return value_->get<double>();
}

Result<bool> JsonRef::boolean() const {
  if (!value_->is_boolean()) return expected("true or false");
  return value_->get<bool>();
}

Result<std::string> JsonRef::string_or(std::string_view key, std::string fallback) const {
  if (!has(key) || (*value_)[std::string(key)].is_null()) return fallback;
  PB_ASSIGN_OR_RETURN(JsonRef member, at(key));
  return member.string();
}

Result<int64_t> JsonRef::integer_or(std::string_view key, int64_t fallback) const {
  if (!has(key) || (*value_)[std::string(key)].is_null()) return fallback;
  PB_ASSIGN_OR_RETURN(JsonRef member, at(key));
  return member.integer();
}

Result<double> JsonRef::number_or(std::string_view key, double fallback) const {
  if (!has(key) || (*value_)[std::string(key)].is_null()) return fallback;
  PB_ASSIGN_OR_RETURN(JsonRef member, at(key));
  return member.number();
}

Result<bool> JsonRef::boolean_or(std::string_view key, bool fallback) const {
  if (!has(key) || (*value_)[std::string(key)].is_null()) return fallback;
  PB_ASSIGN_OR_RETURN(JsonRef member, at(key));
  return member.boolean();
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ptxbench
