#pragma once
// Plain text output with a little colour on a terminal, and JSON documents into files.

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

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

// An option that names a file to write ("-": stdout). The parser refuses, before any work is done,
// what could not be written.
CLI::Option* add_output_file(CLI::App& command, const std::string& flags, std::string& path,
                             const std::string& help = "Write JSON to FILE (-: stdout only)");

// 1234567 as "1,234,567".
std::string grouped(uint64_t value);

}  // namespace ptxbench::cli
