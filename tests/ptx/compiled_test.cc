// PTX that nvcc makes while the test runs: of the project's kernels (scripts/ptx_kernels.py) and of
// every wrapper in the toolkit's cuda/ptx headers (scripts/ptx_wrappers.py). Kept in the build
// folder until the script or the compiler changes.
#include <cstdio>
#include <map>
#include <set>

#include "ptx/assemble.h"
#include "ptx/round_trip.h"

namespace ptxbench::ptx {
namespace {

namespace fs = std::filesystem;

constexpr char kToolkit[] = "/usr/local/cuda";
constexpr char kWrapperHeaders[] = "/usr/local/cuda/include/cccl/cuda/__ptx/instructions/generated";

std::string read_all(const fs::path& path) {
  std::stringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

// Runs the script unless its PTX of this toolkit and these sources is there already.
std::vector<fs::path> compiled(const std::string& script, const std::string& sources = "") {
  const std::string path = PTXBENCH_SOURCE_DIR "/scripts/" + script;
  const size_t key = std::hash<std::string>{}(read_all(path) + sources +
                                              read_all(fs::path(kToolkit) / "include/cuda.h"));
  const fs::path folder =
      fs::path(PTXBENCH_BUILD_DIR) / "compiled_ptx" / (script + "_" + std::to_string(key));
  if (!fs::exists(folder / "complete")) {
    const std::string command = "python3 -B " + path + " " + folder.string();
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    if (testing::Test::HasFailure()) return {};
    std::ofstream(folder / "complete") << "";
  }
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".ptx") out.push_back(entry.path());
  return out;
}

// Round trip of a file, and ptxas on what was printed; the printed text.
std::string check_file(const fs::path& file) {
  std::string printed = expect_round_trip(read_all(file), file.filename().string());
  if (printed.empty()) return printed;
  const Assembled assembled = assemble(printed, parse_ok(printed).target);
  EXPECT_TRUE(assembled.ok) << file << assembled.log.substr(0, 2000);
  return printed;
}

TEST(Compiled, KernelsOfTheProject) {
  if (!fs::exists(fs::path(kToolkit) / "bin/nvcc"))
    GTEST_SKIP() << "NOT TESTED: no nvcc in " << kToolkit;
  std::string sources;
  for (const char* folder : {"kernels", "examples/programs", "include"})
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(PTXBENCH_SOURCE_DIR) / folder))
      if (entry.is_regular_file()) sources += read_all(entry.path());
  const std::vector<fs::path> files = compiled("ptx_kernels.py", sources);
  EXPECT_GE(files.size(), 16u);
  std::map<std::string, int> targets;
  for (const fs::path& file : files) ++targets[parse_ok(check_file(file)).target];
  for (const char* target : {"sm_80", "sm_90a", "sm_100a"}) EXPECT_GE(targets[target], 5) << target;
}

// "mbarrier.try_wait.shared::cta.b64" for everything that looks like an instruction in the asm
// statements of a header.
void collect_spellings(const std::string& text, const std::set<std::string_view>& first_words,
                       std::set<std::string>* out) {
  for (size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 1)) {
    size_t end = at + 1;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) ||
                                 text[end] == '_' || text[end] == '.' || text[end] == ':'))
      ++end;
    std::string word = text.substr(at + 1, end - at - 1);
    std::string_view first = std::string_view(word).substr(0, word.find_first_of(".:"));
    if (first_words.contains(first) && word.find('.') != std::string::npos) out->insert(word);
  }
}

std::set<std::string> spellings_in_headers() {
  std::set<std::string_view> first_words;
  for (size_t k = 0; k < kOpCount; ++k) {
    std::string_view op = name(static_cast<Op>(k));
    first_words.insert(op.substr(0, op.find('.')));
  }
  std::set<std::string> out;
  for (const auto& entry : fs::directory_iterator(kWrapperHeaders))
    collect_spellings(read_all(entry.path()), first_words, &out);
  return out;
}

TEST(Compiled, EveryWrapperOfTheToolkit) {
  if (!fs::exists(kWrapperHeaders) || !fs::exists(fs::path(kToolkit) / "bin/nvcc"))
    GTEST_SKIP() << "NOT TESTED: no nvcc with the cuda/ptx headers in " << kToolkit;
  std::set<std::string> seen;
  const std::vector<fs::path> files = compiled("ptx_wrappers.py");
  ASSERT_FALSE(files.empty());
  for (const fs::path& file : files) {
    const std::string printed = check_file(file);
    ASSERT_FALSE(printed.empty());
    Module m = parse_ok(printed);
    for (const Function& f : m.functions)
      for (const Instruction& i : instructions(f)) seen.insert(mnemonic(i));
  }
  const std::set<std::string> wanted = spellings_in_headers();
  std::string missing;
  size_t found = 0;
  for (const std::string& spelling : wanted) {
    found += seen.contains(spelling);
    if (!seen.contains(spelling)) missing += "\n" + spelling;
  }
  std::printf(
      "%zu of %zu spellings of the headers compiled, printed and read again; not reached:%s\n",
      found, wanted.size(), missing.empty() ? " none" : missing.c_str());
  EXPECT_GT(wanted.size(), 1400u) << "the headers were not understood";
  EXPECT_GE(found, wanted.size() * 99 / 100);
}

}  // namespace
}  // namespace ptxbench::ptx
