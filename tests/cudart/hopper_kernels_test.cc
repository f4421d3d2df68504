// The Hopper kernels of attention and FP8 GEMM on the emulator, against their definitions in fp64
// (bench/hardware): every tile shape in use, sequences that end inside tiles, rings that wrap.
#include "cudart/live_programs.h"

namespace ptxbench::cudart {
namespace {

constexpr size_t kForward = 3 * 2, kBackward = 3 * 3, kGemms = 5;

class HopperKernels : public LivePrograms {
 protected:
  static std::string compile(const std::string& source, std::vector<std::string> defines = {}) {
    std::vector<std::string> options = {"-std=c++20",
                                        "-gencode",
                                        "arch=compute_90a,code=compute_90a",
                                        "-I",
                                        std::string(PTXBENCH_SOURCE_DIR) + "/include",
                                        "-cudart",
                                        "shared"};
    options.insert(options.end(), defines.begin(), defines.end());
    return build(source, options);
  }

  static void expect_right(const std::string& program, const std::vector<std::string>& arguments,
                           size_t results, const std::vector<std::string>& options = {}) {
    const Emulated run = emulate(program, arguments, options);
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    EXPECT_EQ(run.err, "");
    ASSERT_TRUE(run.report.is_object());
    EXPECT_TRUE(run.kinds().empty()) << run.process()["findings"].dump(1);
    size_t right = 0;
    for (size_t at = 0; (at = run.out.find("ok ", at)) != std::string::npos; ++at) ++right;
    EXPECT_EQ(right, results) << run.out;
  }

  static void check_attention(const char* head_dim, const char* causal, const char* seq,
                              size_t results, const std::vector<std::string>& options = {}) {
    const std::string program =
        compile("bench/hardware/attention_check.cu",
                {std::string("-DHEAD_DIM=") + head_dim, std::string("-DHEAD_CAUSAL=") + causal});
    expect_right(program, {"check", "2", seq}, results, options);
  }
};

TEST_F(HopperKernels, MaximaThatGrowLate) {
  const std::string program =
      compile("bench/hardware/attention_check.cu", {"-DHEAD_DIM=96", "-DHEAD_CAUSAL=false"});
  expect_right(program, {"wide", "1", "700"}, kForward);
}

// A forward pass reports two results, a gradient three; each in every variant.
TEST_F(HopperKernels, AttentionOfHeads64) {
  check_attention("64", "true", "450", kForward + kBackward);
}
TEST_F(HopperKernels, AttentionOfHeads96) {
  check_attention("96", "false", "330", kForward + kBackward);
}
TEST_F(HopperKernels, AttentionOfHeads128) {
  check_attention("128", "true", "330", kForward + kBackward);
}
TEST_F(HopperKernels, AttentionOfHeads256) { check_attention("256", "false", "270", kForward); }

TEST_F(HopperKernels, CopiesDoneAtOnceOrLateGiveTheSame) {
  check_attention("128", "true", "450", kForward + kBackward,
                  {"--async=eager", "--schedule=random:7"});
}

TEST_F(HopperKernels, Fp8Gemm) {
  const std::string program = compile("bench/hardware/fp8_gemm_check.cu");
  expect_right(program, {"check", "300", "264", "640"}, kGemms);
  expect_right(program, {"check", "70", "128", "1152"}, kGemms);
}

}  // namespace
}  // namespace ptxbench::cudart
