#include "toolchain/diagnostics.h"

#include "toolchain/symbols.h"

namespace ptxbench::toolchain {
namespace {

using Severity = Diagnostic::Severity;
using testing::HasSubstr;

TEST(Diagnostics, FrontEnd) {
  const auto out = parse_nvcc(
      "bad.cu(2): error #20: identifier \"foo\" is undefined\n"
      "  __global__ void k(int* p) { p[0] = foo; }\n"
      "                                     ^\n\n"
      "dir/bad.cu(7): warning #177-D: variable \"unused\" was declared but never referenced\n"
      "          detected during instantiation of class \"A<T> [with T=int]\" at line 3\n"
      "1 error detected in the compilation of \"bad.cu\".\n");
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].severity, Severity::error);
  EXPECT_EQ(out[0].tool, "cudafe");
  EXPECT_EQ(out[0].file, "bad.cu");
  EXPECT_EQ(out[0].line, 2);
  EXPECT_EQ(out[0].code, "#20");
  EXPECT_EQ(out[0].text, "identifier \"foo\" is undefined");
  EXPECT_EQ(out[1].severity, Severity::warning);
  EXPECT_EQ(out[1].file, "bad.cu");
  EXPECT_EQ(out[1].code, "#177-D");
}

TEST(Diagnostics, HostCompilerLinkerAndDriver) {
  const auto out = parse_nvcc(
      "candidate.cu:1:10: fatal error: nosuch.h: No such file or directory\n"
      "    1 | #include <nosuch.h>\n"
      "compilation terminated.\n"
      "/tmp/cc1.s:12: Error: file not found: /etc/passwd\n"
      "/usr/bin/ld: candidate.o: in function `run':\n"
      "collect2: error: ld returned 1 exit status\n"
      "nvcc fatal   : Unsupported gpu architecture 'sm_77'\n"
      "nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)\n");
  ASSERT_EQ(out.size(), 6u);
  EXPECT_EQ(out[0].tool, "host-compiler");
  EXPECT_EQ(out[0].line, 1);
  EXPECT_EQ(out[0].column, 10);
  EXPECT_EQ(out[0].text, "nosuch.h: No such file or directory");
  EXPECT_EQ(out[1].text, "file not found: /etc/passwd");
  EXPECT_EQ(out[2].tool, "linker");
  EXPECT_EQ(out[4].tool, "nvcc");
  EXPECT_EQ(out[4].text, "Unsupported gpu architecture 'sm_77'");
  EXPECT_THAT(out[5].text, HasSubstr("signal 11"));
}

constexpr char kPtx[] =
    ".version 9.0\n"
    ".target sm_90a\n"
    ".visible .entry k()\n"
    "{\n"
    "\t.loc\t1 40 3\n"
    "\twgmma.fence.sync.aligned;\n"
    "\t.loc\t2 7 1\n"
    "\tret;\n"
    "}\n"
    "\t.file\t1 \"/somewhere/candidate.cu\"\n"
    "\t.file\t2 \"helper.cuh\"\n";

TEST(Diagnostics, LinesAreMappedToTheSource) {
  const LineMap lines(kPtx);
  EXPECT_EQ(lines.source_of(4).line, 0);
  EXPECT_EQ(lines.source_of(6).file, "candidate.cu");
  EXPECT_EQ(lines.source_of(6).line, 40);
  EXPECT_EQ(lines.source_of(8).file, "helper.cuh");
  EXPECT_EQ(lines.source_of(8).line, 7);
  EXPECT_EQ(lines.text_of(6), "wgmma.fence.sync.aligned;");
  EXPECT_EQ(lines.text_of(0), "");
  EXPECT_EQ(lines.text_of(1000), "");
}

TEST(Diagnostics, Assembler) {
  const AssemblerReport report = parse_ptxas(
      "ptxas candidate.ptx, line 6; error   : Instruction 'wgmma.fence' not supported on .target "
      "'sm_90'\n"
      "ptxas info    : (C7517) warpgroup.wait is injected in around line 8 by compiler to allow "
      "use of "
      "registers defined by GMMA in function 'k'\n"
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized "
      "due to insufficient register resources for the wgmma pipeline in the function 'k'\n"
      "ptxas warning : Value of threads per SM for entry k is out of range. .minnctapersm will be "
      "ignored\n"
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 3 barriers, 16 bytes stack, 1024 bytes smem\n"
      "ptxas info    : Compile time = 23.168 ms\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n",
      LineMap(kPtx), "sm_90");
  EXPECT_TRUE(report.wrong_target);
  ASSERT_EQ(report.diagnostics.size(), 5u);
  EXPECT_EQ(report.diagnostics[0].file, "candidate.cu");
  EXPECT_EQ(report.diagnostics[0].line, 40);
  EXPECT_EQ(report.diagnostics[0].ptx_line, 6);
  EXPECT_THAT(report.diagnostics[0].hint, HasSubstr("sm_90a"));
  EXPECT_EQ(report.diagnostics[1].code, "C7517");
  EXPECT_EQ(report.diagnostics[1].severity, Severity::advisory);
  EXPECT_EQ(report.diagnostics[1].line, 7);
  EXPECT_FALSE(report.diagnostics[1].hint.empty());
  EXPECT_EQ(report.diagnostics[2].code, "C7510");
  EXPECT_EQ(report.diagnostics[3].severity, Severity::warning);
  EXPECT_EQ(report.diagnostics[4].code, "spill");
  ASSERT_EQ(report.kernels.size(), 1u);
  EXPECT_EQ(report.kernels[0].name, "k");
  EXPECT_EQ(report.kernels[0].registers, 168);
  EXPECT_EQ(report.kernels[0].barriers, 3);
  EXPECT_EQ(report.kernels[0].stack, 16u);
  EXPECT_EQ(report.kernels[0].spill_stores, 8u);
  EXPECT_EQ(report.kernels[0].spill_loads, 12u);
  EXPECT_EQ(report.kernels[0].static_shared, 1024u);
}

TEST(Diagnostics, CounterpartsByTarget) {
  EXPECT_THAT(target_hint("Instruction 'tcgen05.mma' not supported on .target 'sm_90a'", "sm_90a"),
              HasSubstr("wgmma.mma_async"));
  EXPECT_THAT(target_hint("Instruction 'wgmma.fence' not supported", "sm_100a"),
              HasSubstr("tcgen05.mma"));
  EXPECT_THAT(target_hint("Instruction 'wgmma.fence' not supported", "sm_90"),
              HasSubstr("compile for sm_90a"));
  EXPECT_THAT(target_hint("Instruction 'tcgen05.alloc' not supported", "sm_120a"),
              HasSubstr("mma.sync"));
}

TEST(Diagnostics, GarbageIsNoDiagnostic) {
  for (const char* text : {"", "\n\n", "(12): error: x", "a(: error", "x(99999999999): error: y",
                           ":::::", "ptxas", "ptxas ,line ; error", "a:1:", "nvcc ",
                           "ld: ", "ptxas info    : Used , ,,", "ptxas x, line 5"}) {
    (void)parse_nvcc(text);
    (void)parse_ptxas(text, LineMap(text), "sm_90a");
  }
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "a.cu(1): error: x\n";
  EXPECT_LE(parse_nvcc(many).size(), 200u);
  EXPECT_LE(parse_nvcc("x(1): error: " + std::string(1'000'000, 'y'))[0].text.size(), 4096u);
}

TEST(Symbols, BannedByName) {
  EXPECT_EQ(banned_because("cublasGemmEx"), "the library cuBLAS");
  EXPECT_EQ(banned_because("cublasLtMatmul"), "the library cuBLASLt");
  EXPECT_EQ(banned_because("cudnnCreate"), "the library cuDNN");
  EXPECT_EQ(banned_because("ncclAllReduce"), "the library NCCL");
  EXPECT_EQ(banned_because("pthread_create"), "a host thread");
  EXPECT_EQ(banned_because("fopen"), "file access");
  EXPECT_EQ(banned_because("socket"), "network access");
  EXPECT_EQ(banned_because("system"), "a child process");
  for (const char* fine :
       {"cudaLaunchKernel", "cuTensorMapEncodeTiled", "malloc", "printf", "opening", "curandom",
        "cublasting", "__tvm_ffi_run", "pthread_mutex_lock"})
    EXPECT_EQ(banned_because(fine), "") << fine;
}

}  // namespace
}  // namespace ptxbench::toolchain
