#pragma once
// Plain text output with a little colour on a terminal, and JSON documents into files.

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace ptxbench::cli {

class Style {
 public:
  Style();  // colours only if stdout is a terminal and NO_COLOR is not set
  std::string good(const std::string& text) const { return paint(text, "32"); }
  std::string bad(const std::string& text) const { return paint(text, "31"); }
  std::string warn(const std::string& text) const { return paint(text, "33"); }
  std::string strong(const std::string& text) const { return paint(text, "1"); }
  std::string dim(const std::string& text) const { return paint(text, "2"); }

 private:
  std::string paint(const std::string& text, const char* code) const;
  bool colour_;
};

void print(const std::string& text);  // to stdout, as is

// Writes the document to `path` ("-": stdout); nothing if `path` is empty.
Result<void> write_json(const std::string& path, const nlohmann::json& document);
// The same for a document made already, with its last line feed.
Result<void> write_document(const std::string& path, const std::string& text);

// For the option parser, before any work is done: why FILE ("-": stdout) cannot be written, or "".
std::string check_output_file(std::string& path);

// 1234567 as "1,234,567".
std::string grouped(uint64_t value);

}  // namespace ptxbench::cli
