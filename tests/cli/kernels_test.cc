// The expert kernels as candidates of their tasks: those of wgmma and TMA reach level 5, those of
// mma.sync are right but on the wrong instructions.
#include <gtest/gtest.h>

#include "evaluation.h"

namespace ptxbench {
namespace {

struct Kernel {
  const char *file, *task;
  int level;
  const char* reason;
};

class Kernels : public ::testing::TestWithParam<Kernel> {};

TEST_P(Kernels, HasItsLevel) {
  const Kernel& kernel = GetParam();
  const auto [exit_code, out, err, verdict] =
      evaluate(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "kernels" / kernel.file, kernel.task,
               {"--workload", "smoke"});
  EXPECT_EQ(exit_code, kernel.level >= 5 ? 0 : 1) << out << err;
  EXPECT_EQ(verdict.value("level", 0), kernel.level) << dump_json(verdict).substr(0, 4000);
  EXPECT_EQ(verdict.value("reason", ""), kernel.reason);
  EXPECT_TRUE(verdict.at("findings").empty()) << dump_json(verdict.at("findings"));
  EXPECT_TRUE(verdict.at("correctness").at("passed").get<bool>());
}

std::string test_name(const ::testing::TestParamInfo<Kernel>& info) {
  std::string name = info.param.file;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Attention, Kernels,
    ::testing::Values(
        Kernel{"sm_90a/mha_with_lse_d128.cu", "mha_with_lse_d128", 5, "not-timed"},
        Kernel{"sm_90a/mha_with_lse_d64_causal.cu", "mha_with_lse_d64_causal", 5, "not-timed"},
        Kernel{"sm_90a/mha_with_lse_d128_unspecialised.cu", "mha_with_lse_d128", 5, "not-timed"},
        Kernel{"sm_90a/mha_with_lse_d64_causal_unspecialised.cu", "mha_with_lse_d64_causal", 5,
               "not-timed"},
        Kernel{"sm_80/mha_with_lse_d128.cu", "mha_with_lse_d128", 4, "instructions-absent"},
        Kernel{"sm_90a/mha_bwd_d128.cu", "mha_bwd_d128", 5, "not-timed"},
        Kernel{"sm_90a/mha_bwd_d64.cu", "mha_bwd_d64", 5, "not-timed"},
        Kernel{"sm_90a/mha_bwd_d128_causal_split.cu", "mha_bwd_d128_causal", 5, "not-timed"},
        Kernel{"sm_90a/mha_bwd_d96_split.cu", "mha_bwd_d96", 5, "not-timed"},
        Kernel{"sm_80/mha_bwd_d64_causal.cu", "mha_bwd_d64_causal", 4, "instructions-absent"}),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    Fp8Gemm, Kernels,
    ::testing::Values(
        Kernel{"sm_90a/fp8_gemm_nt_1d2d.cu", "fp8_gemm_nt_1d2d_n4096_k7168", 5, "not-timed"},
        Kernel{"sm_90a/fp8_gemm_nt_1d2d_unspecialised.cu", "fp8_gemm_nt_1d2d_n4096_k7168", 5,
               "not-timed"},
        Kernel{"sm_80/fp8_gemm_nt_1d2d.cu", "fp8_gemm_nt_1d2d_n7168_k2048", 4,
               "instructions-absent"},
        Kernel{"sm_90a/fp8_gemm_nt_1d1d.cu", "fp8_gemm_nt_1d1d_n4096_k7168", 5, "not-timed"},
        Kernel{"sm_90a/fp8_gemm_nt_1d1d_unspecialised.cu", "fp8_gemm_nt_1d1d_n4096_k7168", 5,
               "not-timed"},
        Kernel{"sm_80/fp8_gemm_nt_1d1d.cu", "fp8_gemm_nt_1d1d_n7168_k2048", 4,
               "instructions-absent"}),
    test_name);

INSTANTIATE_TEST_SUITE_P(Fp8Attention, Kernels,
                         ::testing::Values(Kernel{"sm_90a/fp8_mha_with_lse_d128.cu",
                                                  "fp8_mha_with_lse_d128", 5, "not-timed"},
                                           Kernel{"sm_90a/fp8_mha_with_lse_d96_causal.cu",
                                                  "fp8_mha_with_lse_d96_causal", 5, "not-timed"},
                                           Kernel{"sm_80/fp8_mha_with_lse_d64_causal.cu",
                                                  "fp8_mha_with_lse_d64_causal", 4,
                                                  "instructions-absent"}),
                         test_name);

}  // namespace
}  // namespace ptxbench
