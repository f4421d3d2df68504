#include "ptx/source_map.h"

#include <fmt/format.h>

namespace ptxbench::ptx {
namespace {

constexpr int kMaxFrames = 33;

std::string_view base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

std::vector<SourceFrame> source_chain(const Module& module, uint32_t location) {
  std::vector<SourceFrame> chain;
  for (int depth = 0; depth < kMaxFrames && location < module.locations.size(); ++depth) {
    const SourceLine& line = module.locations[location];
    SourceFrame frame;
    if (line.file < module.files.size()) frame.file = module.files[line.file];
    frame.line = static_cast<int>(line.line);
    frame.column = static_cast<int>(line.column);
    if (line.function_name < module.debug_strings.size())
      frame.function = module.debug_strings[line.function_name];
    chain.push_back(std::move(frame));
    location = line.inlined_at;
  }
  return chain;
}

std::string to_string(const std::vector<SourceFrame>& chain) {
  std::string text;
  for (const SourceFrame& frame : chain) {
    if (!text.empty()) text += ", inlined at ";
    text += fmt::format("{}:{}", base_name(frame.file), frame.line);
    if (!frame.function.empty()) text += " in " + frame.function;
  }
  return text;
}

}  // namespace ptxbench::ptx
