#pragma once
// From what a user or a model hands in to one candidate. The kind is decided by the content and by
// the file's ending, never by what the text claims about itself.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/launch_plan.h"

namespace ptxbench::bench {

constexpr uint64_t kMaxCandidateBytes = uint64_t{8} << 20;
constexpr uint64_t kMaxPlanBytes = uint64_t{4} << 30;

struct Candidate {
  enum class Kind { cuda, ptx, plan } kind = Kind::cuda;
  std::string name;                 // as the user knows it: the file's name
  std::string source;               // CUDA or PTX text
  std::string file_name;            // what compilers call it: ends in .cu or .ptx
  std::string manifest;             // kind ptx: the launch manifest, JSON text
  std::string entry_point = "run";  // kind cuda: what the host function is exported as
  // Further files of the candidate for #include, by path relative to its source.
  std::vector<std::pair<std::string, std::string>> extra_files;
  std::string definition;  // the task that the candidate itself names, "" if it names none
  // Where its own headers are; only for the project's kernels, other candidates are one file.
  std::vector<std::filesystem::path> include_dirs;
  std::string hash;       // of the source or of the plan's bytes
  int first_line = 1;     // line of the source's first line within the file handed in
  plan::LaunchPlan plan;  // kind plan
};

struct Extraction {
  bool ok = false;
  std::string reason;   // !ok: "no-code" or "truncated-answer", the candidate's fault
  std::string message;  // what was seen
  Candidate candidate;
};

// By ending: .cu; .ptx with its launch manifest beside it (NAME.launch.json or launch.json); .json,
// a launch manifest that names its PTX or a FlashInfer-Trace solution; .plan; else Markdown. A
// missing, empty, binary or oversized file and an unreadable plan are Errors ("not-found", "usage",
// "too-large", "bad-plan"); an answer without usable code is !ok.
Result<Extraction> extract_file(const std::filesystem::path& path);

// A model's answer in Markdown: the last fenced block that holds a candidate (the TVM-FFI export
// macro and device code); without any, the last block of PTX with a kernel together with the last
// block that is a launch manifest. Words in comments and strings are no evidence.
Extraction extract_markdown(const std::string& text, const std::string& name);

struct FencedBlock {
  std::string language;
  std::string text;
  int first_line = 0;  // of the text, from 1
  bool closed = false;
};
std::vector<FencedBlock> fenced_blocks(const std::string& text);

}  // namespace ptxbench::bench
