#include "bench/extract.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/build_config.h"
#include "base/files.h"
#include "base/hash.h"

namespace ptxbench::bench {
namespace {

bool contains(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}
bool has_export(const std::string& text) {
  return contains(text, "TVM_FFI_DLL_EXPORT_TYPED_FUNC") || contains(text, "__tvm_ffi_");
}
bool has_device_code(const std::string& text) {
  return contains(text, "__global__") || contains(text, "__device__") || contains(text, "<<<");
}

// The run of fence characters that opens or closes a block: ``` or ~~~, indented by at most 3
// blanks.
struct Fence {
  char mark = 0;
  size_t length = 0;
  std::string info;
};

Fence read_fence(const std::string& line) {
  Fence fence;
  const size_t start = line.find_first_not_of(' ');
  if (start == std::string::npos || start > 3 || (line[start] != '`' && line[start] != '~'))
    return {};
  fence.mark = line[start];
  size_t end = start;
  while (end < line.size() && line[end] == fence.mark) ++end;
  fence.length = end - start;
  if (fence.length < 3) return {};
  size_t first = line.find_first_not_of(" \t\r", end);
  size_t last = line.find_last_not_of(" \t\r");
  if (first != std::string::npos) fence.info = line.substr(first, last - first + 1);
  if (fence.mark == '`' && fence.info.find('`') != std::string::npos) return {};
  return fence;
}

Extraction failed(const char* reason, std::string message) {
  Extraction extraction;
  extraction.reason = reason;
  extraction.message = std::move(message);
  return extraction;
}

Extraction cuda_candidate(const std::string& source, const std::string& name, int first_line) {
  Extraction extraction;
  extraction.ok = true;
  extraction.candidate.name = name;
  extraction.candidate.source = source;
  extraction.candidate.file_name = std::filesystem::path(name).stem().string() + ".cu";
  extraction.candidate.hash = hash_hex(std::string_view(source));
  extraction.candidate.first_line = first_line;
  return extraction;
}

Result<Extraction> extract_plan(const std::filesystem::path& path) {
  PB_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, read_bytes(path, kMaxPlanBytes));
  auto plan = plan::deserialize(bytes);
  if (!plan.ok())
    return Error{"bad-plan", fmt::format("{}: {}", path.string(), plan.error().to_string())};
  Extraction extraction;
  extraction.ok = true;
  extraction.candidate.kind = Candidate::Kind::plan;
  extraction.candidate.name = path.filename().string();
  extraction.candidate.hash = hash_hex(std::span<const uint8_t>(bytes));
  extraction.candidate.plan = plan.take();
  return extraction;
}

}  // namespace

std::vector<FencedBlock> fenced_blocks(const std::string& text) {
  std::vector<FencedBlock> blocks;
  Fence open;
  size_t begin = 0;
  for (int line_number = 1; begin < text.size(); ++line_number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const Fence fence = read_fence(line);
    if (open.mark == 0) {
      if (fence.mark == 0) continue;
      open = fence;
      blocks.push_back(
          {fence.info.substr(0, fence.info.find_first_of(" \t{")), "", line_number + 1, false});
    } else if (fence.mark == open.mark && fence.length >= open.length && fence.info.empty()) {
      open = {};
      blocks.back().closed = true;
    } else {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

Extraction extract_markdown(const std::string& text, const std::string& name) {
  const std::vector<FencedBlock> blocks = fenced_blocks(text);
  if (blocks.empty()) {
    if (has_export(text) && contains(text, "__global__")) return cuda_candidate(text, name, 1);
    return failed("no-code", "the answer has no fenced code block");
  }
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    if (!has_export(block->text) || !has_device_code(block->text)) continue;
    if (!block->closed)
      return failed("truncated-answer",
                    fmt::format("the code block that begins at line {} is never closed",
                                block->first_line - 1));
    return cuda_candidate(block->text, name, block->first_line);
  }
  const FencedBlock& last = blocks.back();
  if (!last.closed && has_device_code(last.text))
    return failed(
        "truncated-answer",
        fmt::format("the answer ends inside the code block that begins at line {}, before "
                    "any TVM_FFI_DLL_EXPORT_TYPED_FUNC",
                    last.first_line - 1));
  std::string seen;
  for (const FencedBlock& block : blocks)
    seen += fmt::format("{}{} (line {}{}{})", seen.empty() ? "" : ", ",
                        block.language.empty() ? "plain" : block.language, block.first_line - 1,
                        has_device_code(block.text) ? "" : ", no device code",
                        has_export(block.text) ? "" : ", no export macro");
  return failed("no-code", fmt::format("none of the {} code blocks holds a candidate: {}",
                                       blocks.size(), seen));
}

// The folder of a file below <source>/kernels; nothing for others, which must not read their
// neighbours.
static std::vector<std::filesystem::path> own_headers(const std::filesystem::path& path) {
  std::error_code error;
  const auto folder = std::filesystem::canonical(path, error).parent_path();
  const auto kernels = std::filesystem::canonical(source_dir() / "kernels", error);
  if (error || folder.string().rfind(kernels.string() + "/", 0) != 0) return {};
  return {folder};
}

Result<Extraction> extract_file(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".plan") return extract_plan(path);
  PB_ASSIGN_OR_RETURN(std::string text, read_file(path, kMaxCandidateBytes));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return Error{"usage", path.string() + " is empty"};
  if (is_probably_binary(text)) return Error{"usage", path.string() + " is a binary file"};
  const std::string name = path.filename().string();
  if (extension == ".cu" || extension == ".cuh") {
    Extraction extraction = cuda_candidate(text, name, 1);
    extraction.candidate.include_dirs = own_headers(path);
    return extraction;
  }
  if (extension == ".md" || extension == ".markdown" || extension == ".txt" || extension.empty())
    return extract_markdown(text, name);
  return Error{"usage", fmt::format("{}: expected a .cu, .md or .plan file", path.string())};
}

}  // namespace ptxbench::bench
