#include "cli/output.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "base/interrupt.h"
#include "base/json.h"

namespace ptxbench::cli {
namespace {

// Why the file cannot be written, or "".
std::string check_output_file(std::string& path) {
  if (path == "-") return "";
  std::error_code ignored;
  const std::filesystem::path file = path, parent = file.parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (path.empty()) return "the name of the file to write is empty";
  if (std::filesystem::is_directory(file, ignored)) return path + " is a folder";
  if (!std::filesystem::is_directory(folder, ignored))
    return "cannot write " + path + ": there is no folder " + folder;
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return "cannot write " + path + ": " + std::strerror(errno);
  return "";
}

}  // namespace

Style::Style() : colour_(isatty(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr) {}

std::string Style::paint(const std::string& text, const char* code) const {
  return colour_ ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
}

void print(const std::string& text) {
  hold_if_interrupted();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Result<void> write_document(const std::string& path, const std::string& text) {
  hold_if_interrupted();
  if (path.empty()) return {};
  if (path == "-") {
    print(text);
    return {};
  }
  return write_file_atomically(path, std::string_view(text));
}

Result<void> write_json(const std::string& path, const nlohmann::json& document) {
  return write_document(path, dump_json(document) + "\n");
}

CLI::Option* add_output_file(CLI::App& command, const std::string& flags, std::string& path,
                             const std::string& help) {
  return command.add_option(flags, path, help)->check(CLI::Validator(check_output_file, "FILE"));
}

std::string grouped(uint64_t value) {
  std::string digits = std::to_string(value);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<size_t>(i), ",");
  return digits;
}

}  // namespace ptxbench::cli
