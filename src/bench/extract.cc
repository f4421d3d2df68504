#include "bench/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/build_config.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "bench/launch_manifest.h"
#include "bench/solution.h"

namespace ptxbench::bench {
namespace {

bool contains(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}
// The code without what a compiler does not see as code: comments and literals are blanked.
std::string code_only(const std::string& text) {
  enum { code, line_comment, block_comment, string, character } state = code;
  std::string out = text;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
    switch (state) {
      case code:
        if (c == '/' && next == '/') state = line_comment;
        if (c == '/' && next == '*') state = block_comment;
        if (c == '"') state = string;
        // Between digits it separates thousands: 1'000.
        if (c == '\'' && (i == 0 || !std::isalnum(static_cast<unsigned char>(text[i - 1]))))
          state = character;
        if (state != code && state != block_comment) out[i] = ' ';
        if (state == block_comment) out[i] = out[i + 1] = ' ', ++i;
        break;
      case line_comment:
        if (c == '\n' && (i == 0 || text[i - 1] != '\\')) state = code;
        if (state != code) out[i] = ' ';
        break;
      case block_comment:
        if (c == '*' && next == '/') {
          out[i] = out[i + 1] = ' ', ++i;
          state = code;
        } else if (c != '\n') {
          out[i] = ' ';
        }
        break;
      case string:
      case character:
        if (c == '\\' && next != '\0') {
          out[i] = out[i + 1] = ' ', ++i;
          break;
        }
        if (c == (state == string ? '"' : '\'') || c == '\n') state = code;
        if (c != '\n') out[i] = ' ';
        break;
    }
  }
  return out;
}

bool has_export(const std::string& code) {
  return contains(code, "TVM_FFI_DLL_EXPORT_TYPED_FUNC") || contains(code, "__tvm_ffi_");
}
bool has_device_code(const std::string& code) {
  return contains(code, "__global__") || contains(code, "__device__") || contains(code, "<<<");
}
bool is_ptx_module(const std::string& code) {
  return contains(code, ".version") && contains(code, ".target") && contains(code, ".entry");
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

Extraction ptx_candidate(const std::string& ptx, const std::string& manifest,
                         const std::string& name, int first_line) {
  Extraction extraction = cuda_candidate(ptx, name, first_line);
  extraction.candidate.kind = Candidate::Kind::ptx;
  extraction.candidate.file_name = std::filesystem::path(name).stem().string() + ".ptx";
  extraction.candidate.manifest = manifest;
  extraction.candidate.hash = Hasher().add(ptx).add(manifest).hex();
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

namespace {

std::string describe_blocks(const std::vector<FencedBlock>& blocks) {
  std::string seen;
  for (const FencedBlock& block : blocks) {
    const std::string code = code_only(block.text);
    seen += fmt::format("{}{} (line {}{}{})", seen.empty() ? "" : ", ",
                        block.language.empty() ? "plain" : block.language.substr(0, 20),
                        block.first_line - 1, has_device_code(code) ? "" : ", no device code",
                        has_export(code) ? "" : ", no export macro");
  }
  return seen;
}

Extraction truncated(const FencedBlock& block, const char* what) {
  return failed("truncated-answer",
                fmt::format("{} in the code block that begins at line {}, which is never closed",
                            what, block.first_line - 1));
}

// PTX and its launch manifest as two blocks of one answer.
std::optional<Extraction> extract_ptx_blocks(const std::vector<FencedBlock>& blocks,
                                             const std::string& name) {
  const FencedBlock *ptx = nullptr, *manifest = nullptr;
  for (const FencedBlock& block : blocks) {
    if (is_ptx_module(code_only(block.text))) ptx = &block;
    const auto document = parse_json(block.text);
    if (document.ok() && is_launch_manifest(*document)) manifest = &block;
  }
  if (ptx == nullptr) return std::nullopt;
  if (!ptx->closed) return truncated(*ptx, "the answer ends");
  if (manifest == nullptr)
    return failed(
        "no-code",
        fmt::format("the PTX in the code block at line {} comes without a launch manifest "
                    "(a JSON block with \"launches\")",
                    ptx->first_line - 1));
  return ptx_candidate(ptx->text, manifest->text, name, ptx->first_line);
}

}  // namespace

Extraction extract_markdown(const std::string& text, const std::string& name) {
  const std::vector<FencedBlock> blocks = fenced_blocks(text);
  if (blocks.empty()) {
    const std::string code = code_only(text);
    if (has_export(code) && contains(code, "__global__")) return cuda_candidate(text, name, 1);
    return failed("no-code", "the answer has no fenced code block");
  }
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    const std::string code = code_only(block->text);
    if (!has_export(code) || !has_device_code(code)) continue;
    if (!block->closed) return truncated(*block, "the answer ends");
    return cuda_candidate(block->text, name, block->first_line);
  }
  if (auto ptx = extract_ptx_blocks(blocks, name)) return *ptx;
  const FencedBlock& last = blocks.back();
  if (!last.closed && has_device_code(code_only(last.text)))
    return truncated(last, "the answer ends before any TVM_FFI_DLL_EXPORT_TYPED_FUNC");
  return failed("no-code", fmt::format("none of the {} code blocks holds a candidate: {}",
                                       blocks.size(), describe_blocks(blocks)));
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

static Result<Extraction> extract_ptx(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::path own = path;
  own.replace_extension(".launch.json");
  for (const auto& manifest : {own, path.parent_path() / "launch.json"}) {
    std::error_code error;
    if (!std::filesystem::exists(manifest, error)) continue;
    PB_ASSIGN_OR_RETURN(const std::string json, read_file(manifest, kMaxCandidateBytes));
    return ptx_candidate(text, json, path.filename().string(), 1);
  }
  return Error{"usage", fmt::format("{}: needs a launch manifest beside it ({} or launch.json)",
                                    path.string(), own.filename().string())};
}

// A launch manifest, whose PTX lies beside it, or a FlashInfer-Trace solution.
static Result<Extraction> extract_json(const std::filesystem::path& path, const std::string& text) {
  const std::string file = path.string();
  PB_ASSIGN_OR_RETURN(const Json document, parse_json(text, file));
  if (!is_launch_manifest(document)) return extract_solution(document, file);
  PB_ASSIGN_OR_RETURN(const JsonRef named, JsonRef(document, file).at("ptx"));
  PB_ASSIGN_OR_RETURN(const std::string name, named.string());
  if (name.empty() || std::filesystem::path(name).has_parent_path())
    return Error{"usage", fmt::format("{}: ptx must name a file in the same folder", file)};
  PB_ASSIGN_OR_RETURN(const std::string ptx,
                      read_file(path.parent_path() / name, kMaxCandidateBytes));
  if (is_probably_binary(ptx)) return Error{"usage", name + " is a binary file"};
  return ptx_candidate(ptx, text, path.filename().string(), 1);
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
  if (extension == ".ptx") return extract_ptx(path, text);
  if (extension == ".json") return extract_json(path, text);
  if (extension == ".md" || extension == ".markdown" || extension == ".txt" || extension.empty())
    return extract_markdown(text, name);
  return Error{"usage",
               fmt::format("{}: expected a .cu, .ptx, .json, .md or .plan file", path.string())};
}

}  // namespace ptxbench::bench
