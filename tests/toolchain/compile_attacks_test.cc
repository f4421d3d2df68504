// Sources that attack whoever compiles them: files of the machine pulled into products or messages,
// bombs, and ways to hand options to the compilers. Each ends in a reason of the candidate's,
// within its limits, with nothing left outside and nothing of outside inside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/build_config.h"
#include "base/files.h"
#include "base/temp_dir.h"
#include "toolchain/compiler.h"

namespace ptxbench::toolchain {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kSecret[] = "words_of_the_evaluator";

class CompileAttack : public ::testing::Test {
 protected:
  CompileAttack() : folder_(TempDir::create("compile-attack").take()) {
    for (const char* name : {"tmp", "cache", "headers"})
      fs::create_directory(folder_.path() / name);
    std::ofstream(secret()) << kSecret << "\n";
    const char* before = std::getenv("TMPDIR");
    if (before != nullptr) tmpdir_ = before;
    setenv("TMPDIR", (folder_.path() / "tmp").c_str(), 1);
  }
  ~CompileAttack() override {
    if (tmpdir_.empty())
      unsetenv("TMPDIR");
    else
      setenv("TMPDIR", tmpdir_.c_str(), 1);
  }

  std::string secret() const { return (folder_.path() / "secret.h").string(); }
  // What a candidate must not reach, as string literals.
  std::vector<std::string> outside() const {
    std::vector<std::string> out;
    for (const std::string& path :
         {secret(), std::string("/etc/passwd"), std::string("/proc/self/environ"),
          (source_dir() / "ARCHITECTURE.md").string(), (source_dir() / "src/base/hash.h").string(),
          std::string("../../../../../../etc/passwd")})
      out.push_back("\"" + path + "\"");
    return out;
  }
  CompileRequest request(const std::string& source) const {
    CompileRequest request;
    request.source = source + "\n__global__ void kernel(int* p) { *p = 1; }\n";
    request.cache_dir = folder_.path() / "cache";
    return request;
  }
  CompileRequest bomb(const std::string& source) const {
    CompileRequest out = request(source);
    out.timeout_s = 2;
    return out;
  }

  CompiledCandidate run(const CompileRequest& request) {
    auto result = compile(request);
    EXPECT_TRUE(result.ok()) << result.error().to_string();
    if (!result.ok()) return {};
    said_.clear();
    for (const Diagnostic& d : result->diagnostics) {
      EXPECT_LE(d.text.size(), 4096u);
      said_ += d.file + ":" + std::to_string(d.line) + " " + d.text + d.hint + "\n";
    }
    EXPECT_LE(result->diagnostics.size(), 400u);
    EXPECT_THAT(said_, Not(HasSubstr(kSecret)));
    EXPECT_THAT(said_, Not(HasSubstr("root:")));
    for (const auto& file : fs::recursive_directory_iterator(folder_.path() / "cache")) {
      if (!file.is_regular_file()) continue;
      const std::string text = *read_file(file.path());
      EXPECT_EQ(text.find(kSecret), std::string::npos) << file.path();
      EXPECT_EQ(text.find("root:x:"), std::string::npos) << file.path();
    }
    EXPECT_TRUE(fs::is_empty(folder_.path() / "tmp"));
    return result.take();
  }
  std::string reason(const CompileRequest& request) { return run(request).failure_reason; }

  TempDir folder_;
  std::string tmpdir_, said_;
};

TEST_F(CompileAttack, Includes) {
  for (const std::string& path : outside()) {
    EXPECT_EQ(reason(request("#include " + path)), "does-not-compile") << path;
    EXPECT_THAT(said_, HasSubstr("No such file")) << path;
  }
}

TEST_F(CompileAttack, AssemblerReadsFiles) {
  std::string source;
  const std::vector<std::string> paths = outside();
  for (const std::string& path : paths)
    for (const char* directive : {".incbin ", ".include "})
      source += "asm(R\"(" + std::string(directive) + path + ")\");\n";
  EXPECT_EQ(reason(request(source)), "does-not-compile");
  // As at that place; one error for each would be too much to ask of the assembler's order.
  EXPECT_THAT(said_, HasSubstr("secret.h"));
  EXPECT_THAT(said_, HasSubstr("/etc/passwd"));
}

TEST_F(CompileAttack, InlinePtxReadsFiles) {
  const std::string device = "__device__ int read() { int x; asm volatile(\".incbin \\\"" +
                             secret() +
                             "\\\"; mov.u32 %0, 1;\" : \"=r\"(x)); return x; }\n"
                             "__global__ void reader(int* p) { *p = read(); }";
  EXPECT_EQ(reason(request(device)), "does-not-compile");
}

TEST_F(CompileAttack, PtxReadsFiles) {
  const std::string head = ".version 8.0\n.target sm_90a\n.address_size 64\n";
  const std::string entry = ".visible .entry k() { ret; }\n";
  for (const std::string& path : outside())
    for (const char* directive : {".incbin", ".include", ".file 1"}) {
      CompileRequest ptx = request("");
      ptx.is_ptx = true;
      ptx.source = head + directive + " " + path + "\n" + entry;
      if (directive == std::string(".file 1")) ptx.source += ".loc 1 1 1\n nonsense;\n";
      EXPECT_EQ(reason(ptx), "does-not-compile") << directive << path;
    }
}

TEST_F(CompileAttack, ThroughLinks) {
  fs::create_symlink(secret(), folder_.path() / "headers/outside_link.h");
  fs::create_directory_symlink(folder_.path(), folder_.path() / "headers/up");
  for (const char* name : {"outside_link.h", "up/secret.h", "../secret.h"}) {
    CompileRequest linked = request("#include \"" + std::string(name) + "\"");
    linked.include_dirs = {folder_.path() / "headers"};
    EXPECT_EQ(reason(linked), "does-not-compile") << name;
    EXPECT_THAT(said_, HasSubstr("No such file")) << name;
  }
}

TEST_F(CompileAttack, ProbesFindNothing) {
  std::string source;
  for (const std::string& path : outside())
    source += "#if __has_include(" + path + ")\n#error present " + path + "\n#endif\n";
  EXPECT_EQ(reason(request(source + "#error all were tried")), "does-not-compile");
  EXPECT_THAT(said_, HasSubstr("all were tried"));
  EXPECT_THAT(said_, Not(HasSubstr("present")));
  source.clear();
  for (const std::string& path : outside()) source += "#pragma GCC dependency " + path + "\n";
  EXPECT_THAT(reason(request(source)), AnyOf("", "does-not-compile"));
}

// A message about a line of another file must not quote it.
TEST_F(CompileAttack, LineDirectivesQuoteNothing) {
  for (const std::string& path : {outside()[0], outside()[1]}) {
    EXPECT_EQ(
        reason(request("#line 1 " + path + "\nasm(\"nonsense\");\nint f() { return nobody; }")),
        "does-not-compile");
    EXPECT_THAT(said_, HasSubstr("nobody"));
  }
}

TEST_F(CompileAttack, OptionsFromTheSource) {
  const std::string plugin = "-fplugin=" + (folder_.path() / "plugin.so").string();
  EXPECT_THAT(reason(request("#pragma GCC optimize(\"" + plugin +
                             "\")\n"
                             "__attribute__((optimize(\"" +
                             plugin + "\"))) int f() { return 1; }\n#pragma GCC pch_preprocess \"" +
                             secret() + "\"")),
              AnyOf("", "does-not-compile"));
  EXPECT_THAT(said_, Not(HasSubstr("cannot load plugin")));
}

TEST_F(CompileAttack, OptionsFromNames) {
  for (const char* name : {"-include", "@options.cu", "a;$(id).cu"}) {
    CompileRequest named = request("#error compiled");
    named.file_name = name;
    EXPECT_EQ(reason(named), "does-not-compile") << name;
    EXPECT_THAT(said_, HasSubstr("compiled")) << name;
  }
  for (const char* name : {"../x.h", "/tmp/x.h", "-x.h", "@x", "a/../../x", "candidate.o", ".x",
                           "exports.map", "a/-o/x", "x\ny", ""}) {
    CompileRequest extra = request("");
    extra.extra_files = {{name, "text"}};
    const auto result = compile(extra);
    ASSERT_FALSE(result.ok()) << name;
    EXPECT_EQ(result.error().kind, "usage") << name;
  }
}

TEST_F(CompileAttack, PreprocessorBombs) {
  std::string doubling = "#define A0 x x x x\n";
  for (int i = 1; i < 40; ++i) {
    const std::string below = "A" + std::to_string(i - 1);
    doubling += "#define A" + std::to_string(i) + " " + below + " " + below + "\n";
  }
  EXPECT_THAT(reason(bomb(doubling + "A39")),
              AnyOf("compiler-timeout", "compiler-crash", "does-not-compile"));
  EXPECT_THAT(reason(bomb("#include __FILE__\n#include __FILE__")),
              AnyOf("compiler-timeout", "does-not-compile"));
}

TEST_F(CompileAttack, AssemblerBombs) {
  EXPECT_THAT(reason(bomb("asm(\".rept 0x7fffffff\\n.byte 1\\n.endr\");")),
              AnyOf("compiler-timeout", "compiler-crash", "does-not-compile"));
  EXPECT_THAT(reason(bomb("asm(\".macro m\\nm\\nm\\n.endm\\nm\");")),
              AnyOf("compiler-timeout", "compiler-crash", "does-not-compile"));
}

TEST_F(CompileAttack, HugeDiagnostics) {
  std::string source;
  for (int i = 0; i < 50'000; ++i) source += "#warning " + std::string(60, 'w') + "\n";
  EXPECT_THAT(reason(bomb(source + "#error at last")),
              AnyOf("compiler-timeout", "does-not-compile"));
  EXPECT_THAT(reason(request("int f() { return " + std::string(1 << 20, 'x') + "; }")),
              "does-not-compile");
}

TEST_F(CompileAttack, HugeProducts) {
  EXPECT_EQ(reason(request("asm(\".data\\n.skip 100000000, 1\\n.text\");")), "does-not-compile");
  EXPECT_THAT(said_, HasSubstr("more than"));
  EXPECT_THAT(reason(request("asm(\".data\\n.skip 3000000000, 1\\n.text\");")),
              AnyOf("does-not-compile", "compiler-crash"));
  CompileRequest ptx = request("");
  ptx.is_ptx = true;
  ptx.source =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .global .align 1 .b8 x[100000000] "
      "= "
      "{1};\n.visible .entry k() { ret; }\n";
  EXPECT_EQ(reason(ptx), "does-not-compile");
}

}  // namespace
}  // namespace ptxbench::toolchain
