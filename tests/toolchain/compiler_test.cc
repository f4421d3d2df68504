#include "toolchain/compiler.h"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>

#include "base/build_config.h"
#include "base/files.h"
#include "base/temp_dir.h"
#include "toolchain/elf.h"
#include "toolchain/fatbin.h"
#include "toolchain/toolkit.h"

namespace ptxbench::toolchain {
namespace {

namespace fs = std::filesystem;
using Severity = Diagnostic::Severity;
using testing::HasSubstr;

// One cache for the whole program, away from the user's.
const fs::path& cache_dir() {
  static TempDir dir = TempDir::create("test-cache").take();
  return dir.path();
}

std::string candidate(const std::string& name) {
  return *read_file(fs::path(PTXBENCH_SOURCE_DIR) / "tests/toolchain/candidates" / name);
}

CompileRequest request_for(const std::string& source, const std::string& name = "candidate.cu") {
  CompileRequest request;
  request.source = source;
  request.file_name = name;
  request.cache_dir = cache_dir();
  return request;
}

CompiledCandidate must_run(const CompileRequest& request) {
  auto result = compile(request);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  return result.ok() ? result.take() : CompiledCandidate{};
}

CompiledCandidate must_compile(const std::string& name) {
  CompiledCandidate out = must_run(request_for(candidate(name), name));
  EXPECT_TRUE(out.ok) << out.failure_reason;
  for (const Diagnostic& d : out.diagnostics)
    if (d.severity == Severity::error) ADD_FAILURE() << d.tool << " " << d.line << ": " << d.text;
  return out;
}

std::string errors_of(const CompiledCandidate& out) {
  std::string text;
  for (const Diagnostic& d : out.diagnostics)
    if (d.severity == Severity::error)
      text += d.file + ":" + std::to_string(d.line) + " [" + d.tool + "] " + d.text + " | " +
              d.hint + "\n";
  return text;
}

// A kernel and an entry point around the given device statement and host statement.
std::string around(const std::string& device, const std::string& host,
                   const std::string& head = "") {
  return head +
         "\n#include <tvm/ffi/container/tensor.h>\n#include <tvm/ffi/function.h>\n"
         "__global__ void k(float* p) {\n" +
         device +
         "\n  p[0] = 1; }\n"
         "void run(tvm::ffi::TensorView x) {\n" +
         host +
         "\n  k<<<1, 1>>>(static_cast<float*>(x.data_ptr())); }\n"
         "TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);\n";
}

TEST(Compiler, IsFoundHere) {
  const auto toolkit = find_toolkit();
  ASSERT_TRUE(toolkit.ok()) << "NO CUDA COMPILER ON THIS MACHINE: " << toolkit.error().message;
  bool nvcc = false, gxx = false;
  for (const ToolInfo& tool : find_tools()) {
    if (tool.name == "nvcc") nvcc = tool.found && !tool.version.empty();
    if (tool.name == "g++") gxx = tool.found && !tool.version.empty();
  }
  EXPECT_TRUE(nvcc && gxx);
}

TEST(Compiler, ProducesPtxMachineCodeAndLibrary) {
  const CompiledCandidate out = must_compile("saxpy.cu");
  EXPECT_THAT(out.ptx, HasSubstr(".target sm_90a"));
  EXPECT_THAT(out.ptx, HasSubstr("\"saxpy.cu\""));  // .file without the working folder
  EXPECT_THAT(out.ptx, testing::Not(HasSubstr("ptxbench-compile")));
  EXPECT_TRUE(is_elf(out.cubin));
  ASSERT_EQ(out.kernels.size(), 1u);
  EXPECT_THAT(out.kernels[0].name, HasSubstr("saxpy"));
  EXPECT_GT(out.kernels[0].registers, 4);
  EXPECT_FALSE(out.published_headers);
  const auto library = read_bytes(out.host_library);
  ASSERT_TRUE(library.ok());
  const auto elf = read_elf(*library);
  ASSERT_TRUE(elf.ok());
  std::vector<std::string> exported, needs;
  for (const ElfSymbol& s : elf->dynamic_symbols) {
    if (s.defined) exported.push_back(s.name);
    if (!s.defined && !s.weak && s.version.empty()) needs.push_back(s.name);
  }
  EXPECT_THAT(exported, testing::ElementsAre("__tvm_ffi_run"));
  EXPECT_THAT(needs,
              testing::UnorderedElementsAre("TVMFFIEnvGetStream", "TVMFFIErrorSetRaisedFromCStr"));
  EXPECT_THAT(elf->needed, testing::Contains("libcudart.so.13"));
  const auto code = read_device_code(*library);
  ASSERT_TRUE(code.ok());
  ASSERT_EQ(code->size(), 1u);
  EXPECT_EQ((*code)[0].arch, "sm_90a");
  EXPECT_THAT(std::string((*code)[0].bytes.begin(), (*code)[0].bytes.end()),
              HasSubstr(".visible .entry " + out.kernels[0].name));
}

TEST(Compiler, SecondTimeCompilesNothing) {
  must_compile("saxpy.cu");
  const CompiledCandidate again = must_compile("saxpy.cu");
  ASSERT_EQ(again.stages.size(), 3u);
  for (const StageTime& stage : again.stages) EXPECT_TRUE(stage.cached) << stage.name;
  EXPECT_EQ(again.kernels.size(), 1u);
  // A damaged entry is made anew.
  { std::ofstream(again.host_library, std::ios::app) << "x"; }
  const CompiledCandidate repaired = must_compile("saxpy.cu");
  for (const StageTime& stage : repaired.stages)
    EXPECT_EQ(stage.cached, stage.name != "compile.host") << stage.name;
  ASSERT_TRUE(read_elf(*read_bytes(repaired.host_library)).ok());
}

TEST(Compiler, LaunchesWithClustersTemplatesAndOptionals) {
  const CompiledCandidate out = must_compile("cluster_launch.cu");
  EXPECT_THAT(out.ptx, HasSubstr("%cluster_ctarank"));
  EXPECT_FALSE(out.published_headers);
}

TEST(Compiler, TensorMapsByBothRoutes) {
  const CompiledCandidate out = must_compile("tensor_map.cu");
  EXPECT_FALSE(out.published_headers);
  const auto bytes = read_bytes(out.host_library);
  const auto elf = read_elf(*bytes);
  std::vector<std::string> imports;
  for (const ElfSymbol& s : elf->dynamic_symbols)
    if (!s.defined) imports.push_back(s.name);
  EXPECT_THAT(imports, testing::IsSupersetOf(
                           {"cuTensorMapEncodeTiled", "cudaGetDriverEntryPointByVersion"}));
}

TEST(Compiler, FallsBackToPublishedHeaders) {
  ASSERT_FALSE(find_tvm_ffi().empty())
      << "THE PUBLISHED TVM-FFI HEADERS ARE NOT INSTALLED: run the set-up";
  const CompiledCandidate out = must_compile("published_only.cu");
  EXPECT_TRUE(out.published_headers);
}

TEST(Compiler, ErrorsNameTheLine) {
  const CompiledCandidate out = must_run(request_for(around("", "  bar();")));
  EXPECT_FALSE(out.ok);
  EXPECT_EQ(out.failure_reason, "does-not-compile");
  EXPECT_THAT(errors_of(out), HasSubstr("candidate.cu:8 [cudafe] identifier \"bar\" is undefined"));
}

TEST(Compiler, WrongTargetIsExplained) {
  const std::string tcgen05 = "  asm volatile(\"tcgen05.wait::ld.sync.aligned;\");";
  const CompiledCandidate hopper = must_run(request_for(around(tcgen05, "")));
  EXPECT_EQ(hopper.failure_reason, "wrong-target");
  EXPECT_THAT(errors_of(hopper), HasSubstr("candidate.cu:5 [ptxas]"));
  EXPECT_THAT(errors_of(hopper), HasSubstr("wgmma"));
  const std::string wgmma = "  asm volatile(\"wgmma.fence.sync.aligned;\");";
  CompileRequest request = request_for(around(wgmma, ""));
  request.arch = "sm_90";
  EXPECT_THAT(errors_of(must_run(request)), HasSubstr("compile for sm_90a"));
  request.arch = "sm_100a";
  const CompiledCandidate blackwell = must_run(request);
  EXPECT_EQ(blackwell.failure_reason, "wrong-target");
  EXPECT_THAT(errors_of(blackwell), HasSubstr("tcgen05.mma"));
}

TEST(Compiler, HostileIncludesFail) {
  auto dir = TempDir::create("secret");
  std::ofstream(dir->path() / "secret.h") << "#define SECRET 1\n";
  for (const std::string& head :
       {"#include \"" + (dir->path() / "secret.h").string() + "\"",
        std::string("#include \"/etc/passwd\""), std::string("#include \"../../../../etc/passwd\""),
        std::string("#include \"/proc/self/environ\"")}) {
    const CompiledCandidate out = must_run(request_for(around("", "", head)));
    EXPECT_EQ(out.failure_reason, "does-not-compile") << head;
    EXPECT_THAT(errors_of(out), HasSubstr("No such file")) << head;
  }
  const CompiledCandidate binary =
      must_run(request_for(around("", "", "__asm__(\".incbin \\\"/etc/passwd\\\"\");")));
  EXPECT_EQ(binary.failure_reason, "does-not-compile");
  EXPECT_THAT(errors_of(binary), HasSubstr("/etc/passwd"));
}

TEST(Compiler, EndlessTemplatesMeetTheBudget) {
  const std::string head =
      "template <int N, int M> struct Grow { static constexpr long v = Grow<N - 1, M>::v + "
      "Grow<N - 1, M + (1 << N)>::v; };\n"
      "template <int M> struct Grow<0, M> { static constexpr long v = M; };\n"
      "static constexpr long kBig = Grow<25, 0>::v;";
  CompileRequest request = request_for(around("", "", head));
  request.timeout_s = 2;
  const CompiledCandidate out = must_run(request);
  EXPECT_FALSE(out.ok);
  EXPECT_EQ(out.failure_reason, "compiler-timeout");
  for (const StageTime& stage : out.stages) EXPECT_LT(stage.ms, 5000) << stage.name;
}

TEST(Compiler, BannedCallsAreNamed) {
  struct Case {
    const char* head;
    const char* host;
    const char* named;
  };
  for (const Case& c :
       {Case{"#include <cublas_v2.h>", "  cublasHandle_t h; cublasCreate(&h);", "cuBLAS"},
        Case{"#include <thread>", "  std::thread([] {}).join();", "host thread"}}) {
    if (std::string(c.named) == "cuBLAS" &&
        !fs::exists(find_toolkit()->home / "include/cublas_v2.h"))
      continue;  // a toolkit made of the compiler's wheels alone has no such header to include
    const CompiledCandidate out = must_run(request_for(around("", c.host, c.head)));
    EXPECT_EQ(out.failure_reason, "banned-call") << c.host << errors_of(out);
    EXPECT_THAT(errors_of(out), HasSubstr(c.named));
  }
  const CompiledCandidate harmless = must_run(request_for(around(
      "  // cublasCreate, std::thread", "  printf(\"cudnnCreate fopen\");", "#include <stdio.h>")));
  EXPECT_TRUE(harmless.ok) << errors_of(harmless);
}

TEST(Compiler, UndefinedFunctionsAreFoundWithoutLoading) {
  const CompiledCandidate out =
      must_run(request_for(around("", "  missing(3);", "void missing(int);")));
  EXPECT_EQ(out.failure_reason, "undefined-symbol");
  EXPECT_THAT(errors_of(out), HasSubstr("missing(int)"));
}

TEST(Compiler, SpillsAndAdvisoriesAreKept) {
  const std::string device =
      "  float a[56];\n#pragma unroll\n  for (int i = 0; i < 56; ++i) a[i] = p[i * 32];\n"
      "  __syncthreads();\n#pragma unroll\n  for (int i = 0; i < 56; ++i)\n#pragma unroll\n"
      "    for (int j = 0; j < 56; ++j) a[i] = a[i] * a[j] + a[(i + j) % 56];\n"
      "#pragma unroll\n  for (int i = 0; i < 56; ++i) p[i * 32] = a[i];";
  std::string source = around(device, "");
  source.replace(source.find("void k("), 7, "void __launch_bounds__(1024, 2) k(");
  const CompiledCandidate out = must_run(request_for(source));
  ASSERT_TRUE(out.ok) << errors_of(out);
  ASSERT_EQ(out.kernels.size(), 1u);
  EXPECT_GT(out.kernels[0].spill_stores, 0u);
  bool told = false;
  for (const Diagnostic& d : out.diagnostics)
    told |= d.severity == Severity::advisory && d.code == "spill";
  EXPECT_TRUE(told);
}

TEST(Compiler, RefusesSenselessRequests) {
  const std::string good = candidate("saxpy.cu");
  for (const char* arch : {"", "sm_", "sm_90a -o /x", "90", "compute_90a"}) {
    CompileRequest request = request_for(good);
    request.arch = arch;
    EXPECT_EQ(compile(request).error().kind, "usage") << arch;
  }
  CompileRequest old = request_for(good);
  old.arch = "sm_35";
  EXPECT_EQ(compile(old).error().kind, "usage");
  EXPECT_EQ(compile(request_for("")).error().kind, "usage");
  EXPECT_EQ(compile(request_for(std::string(1000, '\0'))).error().kind, "usage");
  EXPECT_EQ(compile(request_for(std::string(100'000'000, ' '))).error().kind, "usage");
  CompileRequest missing = request_for(good);
  missing.include_dirs = {"/no/such/folder"};
  EXPECT_EQ(compile(missing).error().kind, "usage");
}

TEST(Compiler, IncludeFoldersCountForTheCache) {
  auto dir = TempDir::create("include");
  std::ofstream(dir->path() / "mine.cuh") << "#define VALUE 1\n";
  CompileRequest request = request_for(around("  p[1] = VALUE;", "", "#include \"mine.cuh\""));
  request.include_dirs = {dir->path()};
  EXPECT_TRUE(must_run(request).ok);
  std::ofstream(dir->path() / "mine.cuh") << "#define VALUE nonsense\n";
  EXPECT_FALSE(must_run(request).ok);
}

}  // namespace
}  // namespace ptxbench::toolchain
