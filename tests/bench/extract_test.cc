#include <gtest/gtest.h>

#include "base/files.h"
#include "base/temp_dir.h"
#include "bench/extract.h"

namespace ptxbench::bench {
namespace {

const std::string kKernel =
    "__global__ void k() {}\nvoid run() {}\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);\n";

TEST(Extract, LastBlockThatValidates) {
  const std::string text = "Plan.\n```cuda\n" + kKernel + "// first\n```\nBetter:\n```cpp\n" +
                           kKernel + "// second\n```\nBuild with\n```sh\nnvcc x.cu\n```\n";
  const Extraction e = extract_markdown(text, "answer.md");
  ASSERT_TRUE(e.ok) << e.message;
  EXPECT_EQ(e.candidate.source, kKernel + "// second\n");
  EXPECT_EQ(e.candidate.first_line, 10);
  EXPECT_EQ(e.candidate.file_name, "answer.cu");
}
TEST(Extract, LongerFencesAndTildes) {
  const Extraction e = extract_markdown("~~~~c\n```\n" + kKernel + "~~~\n~~~~\n", "a.md");
  ASSERT_TRUE(e.ok) << e.message;
  EXPECT_EQ(e.candidate.source, "```\n" + kKernel + "~~~\n");
}
TEST(Extract, SaysWhatWasSeen) {
  const Extraction none = extract_markdown("I can't.\n", "a.md");
  EXPECT_EQ(none.reason, "no-code");
  const Extraction python = extract_markdown("```python\nprint(1)\n```\n", "a.md");
  EXPECT_EQ(python.reason, "no-code");
  EXPECT_NE(python.message.find("python"), std::string::npos);
  const Extraction cut = extract_markdown("```cuda\n__global__ void k() {\n  int a", "a.md");
  EXPECT_EQ(cut.reason, "truncated-answer");
  const Extraction unclosed = extract_markdown("```cuda\n" + kKernel, "a.md");
  EXPECT_EQ(unclosed.reason, "truncated-answer");
}
TEST(Extract, WordsInCommentsAndStringsAreNoEvidence) {
  const std::string decoy =
      "// __global__ and TVM_FFI_DLL_EXPORT_TYPED_FUNC\n/* <<<1, 1>>> __global__\n */ const char* "
      "s ="
      " \"TVM_FFI_DLL_EXPORT_TYPED_FUNC __global__ \\\" \";\nchar c = '\"'; int n = 1'000;\n";
  EXPECT_EQ(extract_markdown("```cuda\n" + decoy + "```\n", "a.md").reason, "no-code");
  EXPECT_EQ(
      extract_markdown("```cuda\n" + kKernel + "```\nNot:\n```cuda\n" + decoy + "```\n", "a.md")
          .candidate.source,
      kKernel);
  // The real thing after such words is found.
  EXPECT_TRUE(extract_markdown("```cuda\n" + decoy + kKernel + "```\n", "a.md").ok);
}
TEST(Extract, PtxWithItsManifest) {
  const std::string ptx = ".version 8.0\n.target sm_90a\n.visible .entry k() { ret; }\n";
  const std::string manifest = R"({"launches": [{"kernel": "k"}]})";
  const std::string both = "```ptx\n" + ptx + "```\n```json\n" + manifest + "\n```\n";
  const Extraction e = extract_markdown(both, "answer.md");
  ASSERT_TRUE(e.ok) << e.message;
  EXPECT_EQ(e.candidate.kind, Candidate::Kind::ptx);
  EXPECT_EQ(e.candidate.source, ptx);
  EXPECT_EQ(e.candidate.manifest, manifest + "\n");
  EXPECT_EQ(e.candidate.file_name, "answer.ptx");
  const Extraction alone = extract_markdown("```ptx\n" + ptx + "```\n", "a.md");
  EXPECT_EQ(alone.reason, "no-code");
  EXPECT_NE(alone.message.find("launch manifest"), std::string::npos);
  EXPECT_EQ(extract_markdown("```json\n" + manifest + "\n```\n```ptx\n" + ptx, "a.md").reason,
            "truncated-answer");
  TempDir dir = TempDir::create("extract").take();
  auto write = [&](const char* name, const std::string& bytes) {
    ASSERT_TRUE(write_file_atomically(dir.path() / name, std::string_view(bytes)).ok());
  };
  write("k.ptx", ptx);
  EXPECT_EQ(extract_file(dir.path() / "k.ptx").error().kind, "usage");
  write("launch.json", manifest);
  EXPECT_EQ(extract_file(dir.path() / "k.ptx")->candidate.manifest, manifest);
  write("k.launch.json", R"({"launches": [], "ptx": "k.ptx"})");
  EXPECT_NE(extract_file(dir.path() / "k.ptx")->candidate.manifest, manifest);
  EXPECT_EQ(extract_file(dir.path() / "k.launch.json")->candidate.source, ptx);
  write("k.launch.json", R"({"launches": [], "ptx": "../k.ptx"})");
  EXPECT_EQ(extract_file(dir.path() / "k.launch.json").error().kind, "usage");
  write("other.json", "{}");
  EXPECT_EQ(extract_file(dir.path() / "other.json").error().kind, "usage");
}
TEST(Extract, FilesThatAreNoCandidates) {
  TempDir dir = TempDir::create("extract").take();
  auto write = [&](const char* name, const std::string& bytes) {
    EXPECT_TRUE(write_file_atomically(dir.path() / name, std::string_view(bytes)).ok());
    return extract_file(dir.path() / name);
  };
  EXPECT_FALSE(extract_file(dir.path() / "missing.cu").ok());
  EXPECT_FALSE(extract_file(dir.path()).ok());
  EXPECT_FALSE(write("empty.cu", "").ok());
  EXPECT_FALSE(write("blank.md", " \n\n").ok());
  EXPECT_FALSE(write("binary.cu", std::string("\x7f"
                                              "ELF\0\0\1",
                                              7))
                   .ok());
  EXPECT_FALSE(write("big.cu", std::string(kMaxCandidateBytes + 1, 'x')).ok());
  EXPECT_FALSE(write("other.py", kKernel).ok());
  EXPECT_FALSE(write("bad.plan", "PTXBPLAN but not really").ok());
  auto good = write("good.cu", kKernel);
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE(good->ok);
  EXPECT_EQ(good->candidate.source, kKernel);
}

}  // namespace
}  // namespace ptxbench::bench
