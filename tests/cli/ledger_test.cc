// The executed counts of the expert GEMM's target instructions equal the closed form for the shape.
#include <gtest/gtest.h>

#include "../../kernels/sm_90a/gemm_bf16_plan.h"
#include "evaluation.h"

namespace ptxbench {
namespace {

struct Case {
  const char* task;
  const char* workload;
  int sm_count;  // the workload's device.sm_count
};

class Ledger : public ::testing::TestWithParam<Case> {};

TEST_P(Ledger, EqualsTheClosedForm) {
  const auto [exit_code, out, err, verdict] =
      evaluate(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "kernels/sm_90a/gemm_bf16.cu",
               GetParam().task, {"--workload", GetParam().workload}, 120);
  ASSERT_EQ(exit_code, 0) << out << err;
  const Json axes = verdict["axes"];
  const sm90::GemmShape shape{axes["M"].get<int>(), axes["N"].get<int>(), axes["K"].get<int>()};
  const sm90::GemmCounts want =
      sm90::count_gemm(shape, sm90::choose_gemm(shape, GetParam().sm_count), GetParam().sm_count);
  const Json families = verdict["evidence"]["families"];
  EXPECT_EQ(families["wgmma.mma_async"]["warps"].get<int64_t>(), want.wgmma_warps);
  EXPECT_EQ(families["wgmma.mma_async"]["threads"].get<int64_t>(), want.wgmma_warps * 32);
  for (const char* count : {"warps", "threads"}) {
    EXPECT_EQ(families["cp.async.bulk.tensor.load"][count].get<int64_t>(), want.tma_loads);
    EXPECT_EQ(families["cp.async.bulk.tensor.store"][count].get<int64_t>(), want.tma_stores);
  }
  EXPECT_GT(want.wgmma_warps, 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Ledger,
                         ::testing::Values(Case{"gemm_n7168_k5120", "smoke", 4},
                                           Case{"gemm_n7168_k5120", "smoke-m70", 2},
                                           Case{"gemm_n128_k2048", "smoke", 4},
                                           Case{"gemm_n256_k7168", "smoke-m70", 1}));

}  // namespace
}  // namespace ptxbench
